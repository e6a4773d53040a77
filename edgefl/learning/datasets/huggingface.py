"""Data sets of the Hugging Face Hub."""

import hashlib
import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.datasets._tables import (
    SCALE,
    SIZE,
    Scale,
    Size,
    complete,
    divided,
    grouped,
    known_labels,
    labelled,
    require_filled,
)
from edgefl.learning.finite import require_finite

SCALED_BY = 10_000  # number of samples whose statistics scale the inputs if samples are read on demand


Columns = dict[Literal["inputs", "label", "group"], str]


class HuggingFace(Dataset):
    """A data set from the Hugging Face Hub or a local folder, with a column of inputs and a column of labels.

    Inputs are images, resized to one size, or lists of numbers of equal length, scaled by channel or column
    (`scale`). Needs the package `datasets`: `pip install edgefl-cosim[huggingface]`. A run downloads missing data;
    `edgefl validate` downloads nothing.
    """

    path: str = Field(
        min_length=1, description="name on the Hub, e.g. ylecun/mnist, or a folder on this machine"
    )
    config: str | None = Field(None, description="name of a configuration; null: the only configuration")
    columns: Columns = Field(
        {},
        description="columns by role, e.g. {inputs: x, label: kind, group: person}; if left out, the columns image"
        " and label, without groups",
    )
    on_demand: bool = Field(
        False,
        description="read a group's training samples when the group's device takes part, for data that exceed the"
        " memory; inputs are then scaled by statistics of the first 10,000 samples; needs groups and a test split",
    )
    train: ClassVar[str] = "train"  # name of the training split
    test: str | None = Field(
        "test", description="test split; null: a share of the training split is held out"
    )
    test_share: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="share of the training split held out for testing if there is no test split",
    )
    scale: Scale = SCALE
    size: Size = SIZE

    @model_validator(mode="after")
    def _knows_groups_and_tests(self) -> Self:
        if self.on_demand and not ("group" in self.columns and self.test):
            raise ValueError(
                "on_demand reads the samples of a group and needs a test split: set columns.group and test"
            )
        return self

    @property
    def _named(self) -> Columns:
        return {"inputs": "image", "label": "label", **self.columns}

    def check(self) -> None:
        self._splits(download=False)

    def load(self) -> Data:
        splits = self._splits(download=True)
        names = getattr(splits[0].features.get(self._named["label"]), "names", None)
        words = self._words(splits, self._named["label"])
        if names and set(words) <= {str(label) for label in range(len(names))}:
            y, label_names = np.array(words, np.int64), tuple(names)
        else:
            y, label_names = labelled(words)
        if self.on_demand:
            train, test = splits
            return self._on_demand(train, test, y, label_names)
        grouping = [self.columns["group"]] if "group" in self.columns else []
        origins = [word for column in grouping for word in self._words(splits, column)]
        groups, group_names = grouped(origins)
        mode = self._mode(splits[0])
        inputs = [
            (f"split {name} of {self.path}", self._inputs(split, mode))
            for name, split in zip((self.train, self.test), splits, strict=False)
        ]
        train, test = divided(inputs, y, groups, self.test_share, "huggingface")
        return complete(train, test, label_names, group_names, self.scale)

    def _on_demand(self, train: Any, test: Any, y: np.ndarray, label_names: tuple[str, ...]) -> Data:
        """Read the test samples, and the training samples' labels, groups and scale; inputs are read on demand."""
        groups, group_names = grouped(self._words([train], self.columns["group"]))
        assert groups is not None
        mode = self._mode(train)
        numbers, left_out = known_labels(y[: len(groups)], y[len(groups) :], label_names)
        y = numbers[y]
        label_names = tuple(name for name in label_names if name not in left_out)
        samples = _Groups(self, train, mode, y[: len(groups)], groups)
        some = train.select(range(min(SCALED_BY, len(train))))
        scaled = Split(self._inputs(some, mode), y[: len(some)])
        known = np.flatnonzero(y[len(groups) :] >= 0)
        tests = Split(self._inputs(test.select(known), mode), y[len(groups) :][known])
        require_finite(scaled.x, f"split {self.train} of {self.path}")
        require_finite(tests.x, f"split {self.test} of {self.path}")
        made = complete(scaled, tests, label_names, group_names, self.scale, trained=y[: len(groups)])
        return replace(made, train=samples.of(0), by_group=samples, left_out=left_out)

    def _splits(self, download: bool) -> list[Any]:
        try:
            hub = importlib.import_module("datasets")
        except ImportError as error:
            raise EdgeflError(
                "data of the Hugging Face Hub need the package datasets: pip install 'edgefl-cosim[huggingface]'"
            ) from error
        options = {} if download else {"download_config": hub.DownloadConfig(local_files_only=True)}
        wanted = [name for name in (self.train, self.test) if name]
        try:
            splits = [hub.load_dataset(self.path, self.config, split=name, **options) for name in wanted]
        except Exception as error:  # network errors, Hub errors and wrong names raise various exceptions
            why = "" if download else " on this machine (a run would try to download it)"
            raise EdgeflError(
                f"{self.path} is not available{why}: {type(error).__name__}: {error}"
            ) from error
        for column in self._named.values():
            if column not in splits[0].column_names:
                known = ", ".join(splits[0].column_names)
                raise EdgeflError(f"{self.path} has no column {column!r}; its columns are {known}")
        return splits

    def _words(self, splits: Sequence[Any], column: str) -> list[str]:
        """Return the labels or groups of all samples, from all splits."""
        words = ["" if value is None else str(value) for split in splits for value in split[column]]
        require_filled(words, f"{self.path}: column {column!r}")
        return words

    def _mode(self, split: Any) -> str | None:
        """Return the images' mode, L (grey) or RGB, as the first sets it; None if the inputs are not images."""
        first: Any = split[0][self._named["inputs"]] if len(split) else None
        if not hasattr(first, "convert"):
            return None
        return "L" if first.mode in ("1", "L") else "RGB"

    def _inputs(self, split: Any, mode: str | None) -> np.ndarray:
        if mode is not None:
            images = split[self._named["inputs"]]
            pixels = [np.asarray(image.convert(mode).resize(self.size[::-1])) for image in images]
            x = np.stack(pixels).astype(np.uint8)
            return x if mode == "L" else x.transpose(0, 3, 1, 2)
        try:
            x = np.array(split[self._named["inputs"]], np.float32)
        except (ValueError, TypeError) as error:
            raise EdgeflError(
                f"column {self._named['inputs']!r} of {self.path} has neither images nor lists of numbers of equal"
                " length: convert texts to tokens, and use npz with scale: none"
            ) from error
        return x.reshape(len(x), -1) if x.ndim < 2 else x


class _Groups:
    """Training samples of a Hugging Face data set, read on demand; the checksum covers labels and groups."""

    def __init__(
        self, dataset: HuggingFace, split: Any, mode: str | None, y: np.ndarray, groups: np.ndarray
    ) -> None:
        self._dataset, self._split, self._mode, self._y = dataset, split, mode, y
        self._order = np.argsort(groups, kind="stable")
        self.sizes = np.bincount(groups)
        self._ends = np.cumsum(self.sizes)
        self.content = hashlib.sha256(y.tobytes() + groups.tobytes()).hexdigest()

    def of(self, group: int) -> Split:
        rows = self._order[self._ends[group] - self.sizes[group] : self._ends[group]]
        return Split(self._dataset._inputs(self._split.select(rows), self._mode), self._y[rows])
