"""Read images from IDX files, the format of the MNIST family of data sets."""

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

from edgefl.learning.datasets import Split
from edgefl.learning.datasets._files import FileDataset
from edgefl.learning.datasets._images import labelled_images

IDX_UINT8 = 0x08  # type code of unsigned bytes, the only type that image sets use


def read_idx(
    dataset: FileDataset, paths: Mapping[str, Path], classes: int, first: int = 0
) -> tuple[Split, Split]:
    """Read samples of 28x28 pixels from four files: training images and labels, test images and labels.

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
    if len(content) - start != prod(shape):
        raise ValueError(f"{len(content) - start} bytes of data do not fit the IDX dimensions {shape}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
