"""Read CIFAR's files for Python, which are pickles, without running code in the pickles."""

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets._files import Archive, FileDataset, FileSet
from edgefl.learning.datasets._images import image_data, labelled_images

# functions that a Python 2 pickle of an array names, to rebuild the array, its type and its bytes
ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): __import__("_codecs").encode,
}


class Cifar(FileDataset):
    """Base class of CIFAR's data sets, which consist of training files, a test file and a file of label names.

    LABELS, NAMES: keys of the labels in a file of samples, and of the label names in the file of names.
    """

    LABELS: ClassVar[bytes]
    NAMES: ClassVar[bytes]

    def parse(self, paths: Mapping[str, Path]) -> Data:
        *batches, meta = self.read(paths, unpickle)
        *files, last = (paths[name] for name in self.FILES.md5)
        names = self.made(last, _read_names, meta, self.NAMES)
        *train, test = (
            self.made(path, read_batch, batch, self.LABELS, len(names))
            for path, batch in zip(files, batches, strict=True)
        )
        return image_data(Split.joined(train), test, names)


def cifar_files(name: str, folder: str, archive: str, archive_md5: str, md5: Mapping[str, str]) -> FileSet:
    """Return the file set of a CIFAR data set; `md5` lists training files, test file and label names in order."""
    home = "https://www.cs.toronto.edu/~kriz/"
    return FileSet(
        name=name,
        md5=md5,
        folders=(folder, f"{name.replace('-', '')}/{folder}"),
        archive=Archive(archive, folder, url=home + archive, md5=archive_md5),
    )


class _Unpickler(pickle.Unpickler):
    """A reader of pickles with arrays, lists, dictionaries, numbers and strings, which refuses all other content."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise ValueError(f"the pickle tries to load {module}.{name}") from None


def unpickle(content: bytes) -> dict[bytes, Any]:
    """Read the dictionary in a pickle of Python 2; keys and strings become bytes.

    Raises:
        Exception: the content is not a dictionary pickled by Python 2, or would run code.
    """
    unpickled = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    if not isinstance(unpickled, dict):
        raise ValueError(f"the pickle holds a {type(unpickled).__name__}, not a dictionary")
    return unpickled


def read_batch(batch: dict[bytes, Any], labels: bytes, classes: int) -> Split:
    """Return a CIFAR file's images [n, 3, 32, 32] uint8 and labels [n] int64; `labels` is the key of the labels."""
    x = np.asarray(batch[b"data"]).reshape(-1, 3, 32, 32)
    return labelled_images(x, np.asarray(batch[labels]), (3, 32, 32), classes)


def _read_names(meta: dict[bytes, Any], key: bytes) -> tuple[str, ...]:
    return tuple(name.decode("ascii") for name in meta[key])
