"""Images in IDX files, the form of all data sets of the MNIST family."""

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Split
from edgefl.learning.datasets._files import FileSet, read_set

IDX_UINT8 = 0x08  # type code of unsigned bytes, the only one that image sets use


def read_idx(files: FileSet, paths: Mapping[str, Path]) -> tuple[Split, Split]:
    """Read training and test samples from four files: images, labels, images, labels.

    Raises:
        EdgeflError: a file is damaged, or two do not belong together.
    """
    names = list(files.md5)
    return read_idx_split(files, paths, *names[:2]), read_idx_split(files, paths, *names[2:])


def read_idx_split(files: FileSet, paths: Mapping[str, Path], images: str, labels: str) -> Split:
    """Read samples from two files as `read_idx` does."""
    content = read_set(files, paths, images, labels)
    x, y = (parse_idx(content[name], str(paths[name])) for name in (images, labels))
    if y.ndim != 1 or x.ndim < 2 or len(x) != len(y):
        raise EdgeflError(f"{paths[images]}: shape {x.shape} does not fit the labels' shape {y.shape}")
    return Split(x, y.astype(np.int64))


def parse_idx(content: bytes, place: str) -> np.ndarray:
    """Parse an array of unsigned bytes in IDX format: [d1, d2, ...] uint8, writable.

    The format: two zero bytes, type code, number of dimensions, the dimensions as big-endian uint32, then
    the values, last dimension fastest. Other type codes than unsigned bytes are left out.

    Raises:
        EdgeflError: not exactly such a file; `place` names it.
    """
    if len(content) < 4 or content[:2] != b"\0\0":
        raise EdgeflError(f"{place}: not an IDX file: it must begin with two zero bytes")
    code, dimensions = content[2], content[3]
    if code != IDX_UINT8:
        raise EdgeflError(f"{place}: IDX type code 0x{code:02x}, expected 0x{IDX_UINT8:02x} (unsigned bytes)")
    start = 4 + 4 * dimensions
    if dimensions == 0 or len(content) < start:
        raise EdgeflError(f"{place}: IDX header of {dimensions} dimensions is cut off or empty")
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", count=dimensions, offset=4))
    if len(content) - start != prod(shape):
        raise EdgeflError(f"{place}: {len(content) - start} bytes of data, but IDX dimensions {shape}")
    # a copy, because PyTorch warns of arrays that it must not write to
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()
