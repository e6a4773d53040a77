"""Your own samples in a table of numbers."""

import csv
import re
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.config import foreign_files
from edgefl.errors import EdgeflError, clipped
from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.datasets._tables import (
    FILL,
    SCALE,
    Scale,
    complete,
    divided,
    grouped,
    labelled,
    require_file,
    require_filled,
)

Rows = list[list[str]]


class Csv(Dataset):
    """A CSV file with a header line, a column of targets, columns of numbers, and optionally a column of groups.

    `partition: natural` needs groups (for example persons or places). Without a file of test samples, a random share
    of the samples, the same in all runs, is split off for testing. Numbers are scaled column by column (`scale`).
    """

    path: Path = Field(description="path of the CSV file, relative to the scenario's file")
    columns: dict[Literal["label", "group"], str] = Field(
        {},
        description="columns by role, e.g. {label: kind, group: person}; without label, the last column is used",
    )
    targets: Literal["labels", "numbers"] = Field(
        "labels", description="labels: the class of a sample; numbers: the value that a regression learns"
    )
    test_path: Path | None = Field(
        None, description="CSV file of test samples in the same columns; null: samples of path are split off"
    )
    test_share: float = Field(
        0.2, gt=0, lt=1, description="share of the samples split off for testing if there is no test_path"
    )
    scale: Scale = SCALE

    @property
    def task(self) -> str:
        return "classification" if self.targets == "labels" else "regression"

    def check(self) -> None:
        for path in filter(None, (self.path, self.test_path)):
            require_file(path, "name a CSV file whose first line has the column names")

    def load(self) -> Data:
        self.check()
        head, rows = _read(self.path)
        parts = [(self.path, rows)]
        if self.test_path is not None:
            test_head, tests = _read(self.test_path)
            if test_head != head:
                raise EdgeflError(f"{self.test_path} has the columns {test_head}, but {self.path} has {head}")
            parts.append((self.test_path, tests))
        found = {held: self._column(head, name) for held, name in self.columns.items()}
        label, group = found.get("label", len(head) - 1), found.get("group")
        heads = [(path, head, rows) for path, rows in parts]
        features = [column for column in range(len(head)) if column not in (label, group)]
        if not features:
            raise EdgeflError(f"{self.path} has only the columns {', '.join(head)}: add columns of numbers")
        if self.targets == "labels":
            y, names = labelled([word for part in heads for word in _words(*part, label)])
        else:
            y, names = np.concatenate([_numbers(*part, [label])[:, 0] for part in heads]), (head[label],)
        origins = [] if group is None else [word for part in heads for word in _words(*part, group)]
        groups, group_names = grouped(origins)
        inputs = [(str(path), _numbers(path, head, rows, features)) for path, head, rows in heads]
        _refuse_sample_as_header(self.path, head, features, inputs[0][1])
        train, test = divided(inputs, y, groups, self.test_share, "csv")
        return complete(train, test, names, group_names, self.scale)

    def _column(self, head: list[str], name: str) -> int:
        if name not in head:
            raise EdgeflError(f"{self.path} has no column {name!r}; its columns are {', '.join(head)}")
        return head.index(name)


def _read(path: Path) -> tuple[list[str], Rows]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(foreign_files.lines(file))
            head = next(reader, [])
            _refuse_header(path, head)
            rows = []
            for row in reader:
                if row and len(row) != len(head):
                    raise EdgeflError(
                        f"{path}:{reader.line_num}: {len(head)} values expected, not {len(row)}"
                    )
                rows += [row] if row else []
    except UnicodeDecodeError as error:
        raise EdgeflError(f"{path} cannot be read as a CSV file ({error}); save the file as UTF-8") from error
    except (OSError, csv.Error) as error:
        raise EdgeflError(f"{path} cannot be read as a CSV file ({error})") from error
    if len(head) < 2 or not rows:
        raise EdgeflError(f"{path} needs a line of at least two column names, and samples below this line")
    return head, rows


def _refuse_header(path: Path, head: list[str]) -> None:
    """Raise an error if the names of columns are not separated by commas, or if two columns have the same name."""
    if len(head) == 1 and (between := next((one for one in ";\t|" if one in head[0]), "")):
        raise EdgeflError(
            f"{path}: the first line has {between!r} between values; separate values by commas, and write decimals"
            " with a point"
        )
    # equal numbers are more likely a sample, which another check finds
    twice = next((name for name in head if head.count(name) > 1 and re.search(r"[^\W\d]", name)), "")
    if twice:
        raise EdgeflError(
            f"{path}: the first line has two columns {clipped(repr(twice))}; rename one of them"
        )


def _refuse_sample_as_header(path: Path, head: list[str], columns: list[int], x: np.ndarray) -> None:
    """Raise an error if the names of columns of numbers x [n, columns] are numbers such as those below them."""
    try:
        names = np.array([float(head[column]) for column in columns])
    except ValueError:
        return
    steps = np.diff(names)
    numbered = np.array_equal(steps, np.ones(len(steps))) or np.array_equal(steps, np.diff(columns))
    if not numbered and np.mean((x.min(0) <= names) & (names <= x.max(0))) > 0.5:
        raise EdgeflError(
            f"{path}: the first line, {clipped(', '.join(head))}, looks like a sample instead of column names; add"
            " a line of names above it"
        )


def _words(path: Path, head: list[str], rows: Rows, column: int) -> list[str]:
    words = [row[column] for row in rows]
    require_filled(words, f"{path}: column {head[column]!r}")
    return words


def _numbers(path: Path, head: list[str], rows: Rows, columns: list[int]) -> np.ndarray:
    x = np.empty((len(rows), len(columns)), np.float32)
    for line, row in enumerate(rows):
        for place, column in enumerate(columns):
            try:
                x[line, place] = float(row[column])
            except ValueError as error:
                require_filled([one[column] for one in rows[: line + 1]], f"{path}: column {head[column]!r}")
                raise EdgeflError(
                    f"{path}: column {head[column]!r} has {row[column]!r} instead of a number in sample {line + 1};"
                    " if it is a label or a group, name it in `columns`; otherwise correct the value, or remove the"
                    " sample or the column"
                ) from error
    if not np.isfinite(x).all():
        line, place = np.argwhere(~np.isfinite(x))[0].tolist()
        raise EdgeflError(
            f"{path}: column {head[columns[place]]!r} has {rows[line][columns[place]]!r} instead of a finite number"
            f" in sample {line + 1}; {FILL}"
        )
    return x
