"""Make data sets of images, with mean and standard deviation of the pixels, and read images from IDX files."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgefl.learning.datasets import Data, Split

if TYPE_CHECKING:
    from edgefl.learning.datasets._files import FileDataset

CHUNK = 1 << 16  # number of pixels summed at a time: as doubles, they fit in a core's second-level cache
DIGITS = tuple("0123456789")
IDX_UINT8 = 0x08  # type code of unsigned bytes, the only type that image sets use


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


def read_idx(
    dataset: "FileDataset", paths: Mapping[str, Path], classes: int, first: int = 0
) -> tuple[Split, Split]:
    """Read samples of 28x28 pixels from four IDX files: training images and labels, test images and labels.

    Raises:
        EdgeflError: a file is damaged, or images and labels do not match.
    """
    x, y, test_x, test_y = dataset.read(paths, parse_idx)
    images, _, test_images, _ = (paths[name] for name in dataset.files().md5)
    options = ((28, 28), classes, first)
    return (
        dataset.made(images, labelled_images, x, y, *options),
        dataset.made(test_images, labelled_images, test_x, test_y, *options),
    )


def parse_idx(content: bytes) -> np.ndarray:
    """Parse the content of an IDX file into an array [d1, d2, ...] of unsigned bytes.

    The format is two zero bytes, the type code, the number of dimensions, the dimensions as big-endian uint32, then
    the values, with the last dimension varying fastest. Left out: types other than unsigned bytes.

    Raises:
        ValueError: the content is not exactly an IDX file of unsigned bytes.
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise ValueError("not an IDX file: it must begin with two zero bytes")
    code, dimensions = content[2], content[3]
    if code != IDX_UINT8:
        raise ValueError(f"IDX type code 0x{code:02x}, expected 0x{IDX_UINT8:02x} (unsigned bytes)")
    start = 4 + 4 * dimensions
    if dimensions == 0 or len(content) < start:
        raise ValueError(f"the IDX header of {dimensions} dimensions is cut off, or states no dimension")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=dimensions, offset=4))
    if len(content) - start != math.prod(shape):
        raise ValueError(f"{len(content) - start} bytes of data do not fit the IDX dimensions {shape}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
