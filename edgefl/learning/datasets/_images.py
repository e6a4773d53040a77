"""Make data sets of images, with mean and standard deviation of the pixels."""

import math

import numpy as np

from edgefl.learning.datasets import Data, Split

CHUNK = 1 << 16  # number of pixels summed at a time: as doubles, they fit in a core's second-level cache
DIGITS = tuple("0123456789")


def image_data(
    train: Split, test: Split, names: tuple[str, ...], *, group_names: tuple[str, ...] = ()
) -> Data:
    """Make a data set from training and test images [n, (channels,) height, width] uint8."""
    return Data(train, test, len(names), *moments(train.x), names, group_names)


def labelled_images(
    x: np.ndarray, y: np.ndarray, shape: tuple[int, ...], classes: int, first: int = 0
) -> Split:
    """Check and copy images [n, *shape] uint8 with labels [n] from `first` to `first` + classes - 1.

    Raises:
        ValueError: images or labels have a wrong type, shape or range.
    """
    if x.dtype != np.uint8 or x.shape[1:] != shape or y.shape != x.shape[:1] or y.dtype.kind not in "iu":
        raise ValueError(
            f"images {x.dtype} {x.shape} and labels {y.dtype} {y.shape}, not uint8 (n, {str(shape)[1:]} and (n,)"
        )
    if len(y) and not first <= y.min() <= y.max() < first + classes:
        raise ValueError(f"labels are {y.min()} to {y.max()} instead of {first} to {first + classes - 1}")
    # a copy, because PyTorch warns about read-only arrays
    return Split(np.array(x, order="C"), y.astype(np.int64))


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute mean and standard deviation of uint8 images' pixels, exact up to the last rounding.

    Args:
        x: images, [n, height, width] or [n, channels, height, width].

    Returns:
        float32 mean and standard deviation: scalars [] over all pixels, or [channels, 1, 1].
    """
    if x.ndim == 3:
        return _moments(x)
    mean, std = zip(*(_moments(x[:, channel]) for channel in range(x.shape[1])), strict=True)
    shape = (-1, 1, 1)
    return np.stack(mean).reshape(shape), np.stack(std).reshape(shape)


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pixels, count, total, squares = x.reshape(-1), x.size, 0, 0
    for begin in range(0, count, CHUNK):
        # sums of integers below 2^53 are exact in double precision
        part = pixels[begin : begin + CHUNK].astype(np.float64)
        total, squares = total + int(part.sum()), squares + int(part @ part)
    variance = (count * squares - total**2) / count**2
    return np.array(total / count, np.float32), np.array(math.sqrt(variance), np.float32)
