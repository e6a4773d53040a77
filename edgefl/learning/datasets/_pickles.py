"""CIFAR's Python files: reading pickles without trusting them."""

import io
import pickle
from typing import Any

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Split

# what Python 2 wrote into these files, and nothing else: an array, its type, its bytes
ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): __import__("_codecs").encode,
}


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


def read_names(content: bytes, key: bytes, place: str) -> tuple[str, ...]:
    """Read the label names of a meta file.

    Raises:
        EdgeflError: not such a file; `place` names it.
    """
    try:
        return tuple(name.decode("ascii") for name in unpickle(content, place)[key])
    except (KeyError, AttributeError, TypeError, UnicodeDecodeError) as error:
        raise EdgeflError(f"{place}: no label names under {key!r}: {error}") from error
