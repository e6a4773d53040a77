"""Your own samples in a NumPy file."""

from pathlib import Path

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.datasets._tables import complete, divided, grouped, labelled, require_file


class Npz(Dataset):
    """Arrays of a .npz file: x_train, y_train, x_test, y_test; or x and y, of which a share is split off for testing.

    x: [n, ...] numbers, uint8 for images; y: [n] integer labels or words. groups_train and groups_test, or groups:
    [n] the origin of each sample, for `partition: natural`. Written by `np.savez(path, x_train=..., ...)`. Objects
    are not read: they could run code.
    """

    path: Path = Field(description="the file; relative to the current folder")
    test_share: float = Field(
        0.2, gt=0, lt=1, description="share split off for testing, if the file has x and y"
    )

    def check(self) -> None:
        require_file(
            self.path, "write it with np.savez(path, x_train=..., y_train=..., x_test=..., y_test=...)"
        )

    def load(self) -> Data:
        self.check()
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except Exception as error:  # whatever a damaged or foreign file makes of it
            raise EdgeflError(
                f"{self.path} cannot be read as a .npz file without objects ({error})"
            ) from error
        parts = ("_train", "_test") if "x_train" in arrays else ("",)
        lacking = [f"{axis}{part}" for part in parts for axis in "xy" if f"{axis}{part}" not in arrays]
        if lacking:
            raise EdgeflError(
                f"{self.path} lacks {', '.join(lacking)}; it has {', '.join(arrays) or 'nothing'}"
            )
        y = [_labels(arrays[f"y{part}"], f"{self.path}: y{part}") for part in parts]
        numbers, names = labelled([str(value) for each in y for value in each.tolist()])
        for part, each in zip(parts, y, strict=True):
            x = arrays[f"x{part}"]
            if x.ndim < 2 or len(x) != len(each) or x.dtype.kind not in "buif":
                raise EdgeflError(
                    f"{self.path}: x{part} is {x.dtype} {list(x.shape)}, y{part} has {len(each)} labels: x is"
                    " [samples, ...] numbers, a row for each label"
                )
        inputs = [arrays[f"x{part}"] for part in parts]
        inputs = [x if x.dtype in (np.uint8, np.int16) else x.astype(np.float32) for x in inputs]
        groups, group_names = self._groups(arrays, parts)
        return complete(*divided(inputs, numbers, groups, self.test_share, "npz"), names, group_names)

    def _groups(
        self, arrays: dict[str, np.ndarray], parts: tuple[str, ...]
    ) -> tuple[np.ndarray | None, tuple[str, ...]]:
        if f"groups{parts[0]}" not in arrays:
            return None, ()
        words = [str(value) for part in parts for value in arrays.get(f"groups{part}", np.empty(0)).tolist()]
        if len(words) != sum(len(arrays[f"y{part}"]) for part in parts):
            raise EdgeflError(f"{self.path}: groups do not name one group for each sample")
        return grouped(words)


def _labels(y: np.ndarray, where: str) -> np.ndarray:
    if y.ndim != 1 or y.dtype.kind not in "biuUS":
        raise EdgeflError(
            f"{where} is {y.dtype} {list(y.shape)}: a target is one label per sample, an integer or a word"
            " (regression and a label per token are not supported)"
        )
    return y
