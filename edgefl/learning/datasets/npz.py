"""Your own samples in a NumPy file."""

import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.datasets._tables import (
    SCALE,
    Scale,
    complete,
    divided,
    grouped,
    labelled,
    require_file,
    require_filled,
)
from edgefl.learning.finite import require_finite
from edgefl.learning.memory import Need, require

LABEL_BYTES = 24  # bytes that a label or group takes besides its array: two list entries and a Python integer


class Npz(Dataset):
    """Arrays in a .npz file: x_train, y_train, x_test, y_test; or x and y, with a share split off for testing.

    x: numbers [n, ...], uint8 for images; y: integer labels or words [n], floats for `task: regression`, and 0 or 1
    [n, L] for `multi_label`. groups_train and groups_test, or groups: the origin of each sample [n], for `partition:
    natural`. Columns of a table [n, features], and channels of images [n, channels, height, width], are scaled
    separately (`scale`); token ids need `scale: none`. Write the file with `np.savez(path, x_train=..., ...)`.
    Object arrays are errors, since they could run code.
    """

    path: Path = Field(description="path of the NumPy file, relative to the scenario's file")
    test_share: float = Field(
        0.2, gt=0, lt=1, description="share of the samples split off for testing if the file has only x and y"
    )
    scale: Scale = SCALE

    def check(self) -> None:
        require_file(
            self.path, "write it with np.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)"
        )

    def load(self) -> Data:
        self.check()
        try:
            headers = _headers(self.path)
        except Exception as error:  # a damaged or foreign file may raise anything
            raise self._unreadable(error) from error
        parts = ("_train", "_test") if "x_train" in headers else ("",)
        self._check_shapes(headers, parts)
        wanted, others = (
            [f"{axis}{part}" for axis in ("x", "y", "groups") for part in some]
            for some in (parts, {"", "_train", "_test"}.difference(parts))
        )
        wanted = [name for name in wanted if name in headers]
        if left := sorted({*headers}.intersection(others)):
            raise EdgeflError(
                f"{self.path} holds {', '.join(left)} beside {', '.join(wanted)}: name training samples x_train,"
                " y_train and test samples x_test, y_test, or remove the others"
            )
        require([Need((), sum(_bytes_of(headers[name]) for name in wanted), f"the arrays of {self.path}")])
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in wanted}
        except Exception as error:
            raise self._unreadable(error) from error
        for name in wanted:
            if arrays[name].dtype.kind == "U" and arrays[name].ndim == 1:
                require_filled(arrays[name].tolist(), f"{self.path}: {name}")
        for part in parts:
            require_finite(arrays[f"y{part}"], f"y{part} of {self.path}")
        numbers, names = _targets([arrays[f"y{part}"] for part in parts])
        inputs = [arrays[f"x{part}"] for part in parts]
        inputs = [x if x.dtype in (np.uint8, np.int16) else x.astype(np.float32) for x in inputs]
        named = [(f"x{part} of {self.path}", x) for part, x in zip(parts, inputs, strict=True)]
        groups, group_names = self._groups(arrays, parts)
        train, test = divided(named, numbers, groups, self.test_share, "npz")
        y = f"y{parts[0]}"
        shape, kind = headers[y]
        data = complete(train, test, names, group_names, self.scale)
        return replace(data, source=f"{self.path}: {y} is {kind} {list(shape)}")

    def _unreadable(self, error: Exception) -> EdgeflError:
        return EdgeflError(
            f"{self.path} is not a readable .npz file, or it holds Python objects, which edgefl does not load"
            f" ({error})"
        )

    def _check_shapes(self, headers: Mapping[str, "_Header"], parts: Sequence[str]) -> None:
        """Check shapes and types of a file's arrays before the arrays are read.

        Raises:
            EdgeflError: the arrays cannot be samples and labels.
        """
        lacking = [f"{axis}{part}" for part in parts for axis in "xy" if f"{axis}{part}" not in headers]
        if lacking:
            raise EdgeflError(
                f"{self.path} lacks {', '.join(lacking)}; its arrays are {', '.join(headers) or 'none'}"
            )
        first, *others = (f"y{part}" for part in parts)
        for other in others:
            if (headers[first][1].kind == "f") != (headers[other][1].kind == "f"):
                raise EdgeflError(
                    f"{self.path}: {first} is {headers[first][1]}, but {other} is {headers[other][1]}: convert labels"
                    " by y.astype(int), or the values of a regression by y.astype(float)"
                )
        for part in parts:
            (x_shape, x_type), (y_shape, y_type) = headers[f"x{part}"], headers[f"y{part}"]
            kinds = {1: "biufUS", 2: "biuf"}.get(len(y_shape), "")
            if y_type.kind not in kinds:
                column = "; one column becomes a list by y.ravel()" if y_shape[1:] == (1,) else ""
                raise EdgeflError(
                    f"{self.path}: y{part} is {y_type} {list(y_shape)}: y needs one label per sample, an integer or "
                    "a word; for a regression, one float per sample; for several labels per sample, an array [n, L] "
                    f"of 0 and 1{column}"
                )
            if len(x_shape) < 2 or x_shape[0] != y_shape[0] or x_type.kind not in "buif":
                raise EdgeflError(
                    f"{self.path}: x{part} is {x_type} {list(x_shape)}, but y{part} has {y_shape[0]} labels: x must "
                    "be a numeric array [samples, ...] with one row per label in y"
                )
            if len(headers.get(f"groups{part}", ((1,), None))[0]) != 1:
                raise EdgeflError(f"{self.path}: groups{part} is not a list of one group per sample")

    def _groups(
        self, arrays: dict[str, np.ndarray], parts: tuple[str, ...]
    ) -> tuple[np.ndarray | None, tuple[str, ...]]:
        if f"groups{parts[0]}" not in arrays:
            return None, ()
        words = [str(value) for part in parts for value in arrays.get(f"groups{part}", np.empty(0)).tolist()]
        if len(words) != sum(len(arrays[f"y{part}"]) for part in parts):
            raise EdgeflError(f"{self.path}: groups must name one group per sample")
        return grouped(words)


def _targets(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the targets of all parts, integers for labels and otherwise float32, and the outputs' names."""
    if parts[0].ndim == 2:
        return np.concatenate(parts).astype(np.float32), tuple(map(str, range(parts[0].shape[1])))
    if parts[0].dtype.kind == "f":
        return np.concatenate(parts).astype(np.float32), ("y",)
    return labelled([str(value) for part in parts for value in part.tolist()])


_Header = tuple[tuple[int, ...], np.dtype[Any]]


def _headers(path: Path) -> dict[str, _Header]:
    """Read the shapes and types of the arrays in a .npz file without reading the arrays."""
    headers = {}
    with zipfile.ZipFile(path) as packed:
        for entry in (name for name in packed.namelist() if name.endswith(".npy")):
            with packed.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0
                if version != (1, 0):
                    read = np.lib.format.read_array_header_2_0
                shape, _, kind = read(file)
            if kind.hasobject:
                raise ValueError(f"{entry} holds objects")
            headers[entry.removesuffix(".npy")] = (shape, kind)
    return headers


def _bytes_of(header: _Header) -> int:
    """Return a lower bound of an array's memory in bytes, including the array's converted copy."""
    shape, kind = header
    made = LABEL_BYTES if len(shape) == 1 else 0 if kind in (np.uint8, np.int16) else 4
    return math.prod(shape) * (kind.itemsize + made)
