"""CIFAR's files for Python: pickles, read without trusting them."""

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import Archive, FileDataset, FileSet, root_of
from edgefl.learning.datasets._images import image_data

# what Python 2 wrote into these files, and nothing else: an array, its type, its bytes
ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): __import__("_codecs").encode,
}


class Cifar(FileDataset):
    """Base of CIFAR's data sets, whose files are batches of training samples, one of test samples, and label names.

    LABELS, NAMES: keys of the labels in a batch, and of their names in the last file.
    """

    LABELS: ClassVar[bytes]
    NAMES: ClassVar[bytes]

    root: Path | None = root_of("the files or their archive")

    def parse(self, paths: Mapping[str, Path]) -> Data:
        *files, meta = self.read(paths)
        names = _read_names(meta[0], self.NAMES, meta[1])
        *train, test = (read_batch(content, self.LABELS, len(names), place) for content, place in files)
        whole = Split(
            np.concatenate([batch.x for batch in train]), np.concatenate([batch.y for batch in train])
        )
        return image_data(whole, test, names)


def cifar_files(name: str, folder: str, archive: str, archive_md5: str, md5: Mapping[str, str]) -> FileSet:
    """Return the files of one of the two data sets, in their order: training batches, test batch, label names."""
    home = "https://www.cs.toronto.edu/~kriz/"
    return FileSet(
        name=name,
        md5=md5,
        folders=(folder, f"{name.replace('-', '')}/{folder}"),
        archive=Archive(archive, folder, url=home + archive, md5=archive_md5),
    )


class _Unpickler(pickle.Unpickler):
    """An unpickler of arrays, lists, dictionaries, numbers and strings that refuses every other class or function."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it wants to load {module}.{name}") from None


def unpickle(content: bytes, place: str) -> dict[bytes, Any]:
    """Read the dictionary in a pickle of Python 2: keys and strings are bytes.

    Raises:
        EdgeflError: not such a pickle, or one that would run code; `place` names it.
    """
    try:
        unpickled = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    # a damaged pickle can raise nearly anything
    except Exception as error:
        raise EdgeflError(f"{place}: not a CIFAR pickle: {error}") from error
    if not isinstance(unpickled, dict):
        raise EdgeflError(
            f"{place}: not a CIFAR pickle: it holds a {type(unpickled).__name__}, not a dictionary"
        )
    return unpickled


def read_batch(content: bytes, labels: bytes, classes: int, place: str) -> Split:
    """Read the samples of a batch file: [n, 3, 32, 32] uint8 and [n] int64.

    Args:
        content: the file.
        labels: key of the labels, `labels` or `fine_labels`.
        classes: C; labels are 0 to C-1.

    Raises:
        EdgeflError: not such a file; `place` names it.
    """
    batch = unpickle(content, place)
    try:
        x, y = np.asarray(batch[b"data"]), np.asarray(batch[labels])
    except KeyError as error:
        raise EdgeflError(f"{place}: not a CIFAR batch: it has no {error}") from error
    if x.dtype != np.uint8 or x.shape != (len(y), 3 * 32 * 32) or y.ndim != 1 or y.dtype.kind != "i":
        raise EdgeflError(f"{place}: data {x.dtype} {x.shape} and labels {y.dtype} {y.shape} are not CIFAR's")
    if len(y) and not 0 <= y.min() <= y.max() < classes:
        raise EdgeflError(f"{place}: labels from {y.min()} to {y.max()}, expected 0 to {classes - 1}")
    return Split(x.reshape(-1, 3, 32, 32).copy(), y.astype(np.int64))


def _read_names(content: bytes, key: bytes, place: str) -> tuple[str, ...]:
    """Read the label names of a meta file.

    Raises:
        EdgeflError: not such a file; `place` names it.
    """
    try:
        return tuple(name.decode("ascii") for name in unpickle(content, place)[key])
    except (KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise EdgeflError(f"{place}: no label names under {key!r}: {error}") from error
