"""Read a data set of your own from an .npz file."""

from pathlib import Path

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Dataset, Split


class Npz(Dataset):
    """Read x_train and x_test (uint8 or float32), and y_train and y_test (labels 0 to C-1), from a file."""

    path: Path = Field(description="the .npz file, relative to the scenario's file")

    def check(self) -> None:
        if not self.path.is_file():
            arrays = "x_train=..., y_train=..., x_test=..., y_test=..."
            raise EdgeflError(
                f"{self.path} does not exist: write it with `np.savez({str(self.path)!r}, {arrays})`"
            )

    def load(self) -> Data:
        self.check()
        try:
            with np.load(self.path) as file:
                train, test = (
                    Split(file[f"x_{part}"], file[f"y_{part}"].astype(np.int64, casting="safe"))
                    for part in ("train", "test")
                )
        except (
            KeyError,
            ValueError,
            TypeError,
            OSError,
        ) as error:  # a missing array, labels that are not integers, ...
            raise EdgeflError(f"{self.path} cannot be read ({error}): write it again") from error
        mean, std = np.array(train.x.mean(), np.float32), np.array(train.x.std(), np.float32)
        names = tuple(str(label) for label in range(train.y.max() + 1))
        return Data(train, test, len(names), mean, std, names)
