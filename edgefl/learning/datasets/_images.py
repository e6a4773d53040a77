"""Data sets of images: their mean and standard deviation belong to them."""

import numpy as np

from edgefl.learning.datasets import Data, Split

CHUNK = 4096  # images counted at a time: bincount widens them to int64
DIGITS = tuple("0123456789")


def image_data(
    train: Split, test: Split, names: tuple[str, ...], *, group_names: tuple[str, ...] = ()
) -> Data:
    """Make a data set of uint8 images [n, (channels,) height, width] of both splits."""
    return Data(train, test, len(names), *moments(train.x), names, group_names)


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the mean and standard deviation of uint8 images, exact up to the last rounding.

    Args:
        x: [n, height, width] or [n, channels, height, width].

    Returns:
        float32 mean and standard deviation: scalars [] over all pixels, or [channels, 1, 1].
    """
    if x.ndim == 3:
        return _moments(x)
    mean, std = zip(*(_moments(x[:, channel]) for channel in range(x.shape[1])), strict=True)
    shape = (-1, 1, 1)
    return np.stack(mean).reshape(shape), np.stack(std).reshape(shape)


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    counts = np.zeros(256, np.int64)
    for begin in range(0, len(x), CHUNK):
        counts += np.bincount(x[begin : begin + CHUNK].ravel(), minlength=256)
    values = np.arange(256)
    mean = (counts @ values) / counts.sum()
    variance = (counts @ (values - mean) ** 2) / counts.sum()
    return np.array(mean, np.float32), np.array(np.sqrt(variance), np.float32)
