"""Read from their directories how runs of another process stand; nothing is written."""

import csv
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from edgefl.engine.federation.seat import FEDERATION
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.progress import RunProgress, wall_time
from edgefl.run_directory import status
from edgefl.run_directory.score import ACCURACY, field_name
from edgefl.scenario.scenario import load

BAR = 10  # characters
GAP, EDGES = 3, 2  # blanks between columns and around the table, as rich draws it
SHORTEST = 12  # characters of a name, however narrow the terminal is
SILENT_S = 60.0  # since the last sign of life, of which there is one every 10 s while rounds end
OVER = ("completed", "failed", "interrupted")


@dataclass
class Standing:
    """The state of a watched run: its status, rounds and accuracy.

    Attributes:
        share: of it that is over. left_s: wall time left if the rest goes on like that; NaN: not known.
        silent_s: wall time since its process gave a sign of life, while it runs.
    """

    label: str
    status: str
    share: float
    rounds: int
    where: str
    accuracy: float | None
    joules: float
    left_s: float
    silent_s: float
    error: str | None
    score: str = ACCURACY

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.status in OVER


class Watched:
    """A run directory that is read again and again; each time only what is new."""

    def __init__(self, path: Path, label: str) -> None:
        self.path, self.label = path, label
        self._progress = RunProgress(load(path / "scenario.yaml"))
        self._read = 0  # bytes of rounds.csv
        self._head: list[str] = []
        self._accuracies: dict[tuple[int, str | None], float] = {}  # cell and federation -> the latest
        self._joules, self._where = 0.0, ""

    def look(self) -> Standing:
        """Read what is new, and say how the run stands.

        Raises:
            EdgeflError: the directory cannot be read.
        """
        about = status.read(self.path)
        self._follow(about.get("score", ACCURACY))
        running = about["status"] == "running"
        share = 1.0 if about["status"] == "completed" else self._progress.share
        heartbeat = (about.get("process") or {}).get("heartbeat") if running else None
        silent = datetime.now(UTC) - datetime.fromisoformat(heartbeat) if heartbeat else timedelta()
        wall_s = time.time() - (self.path / "scenario.yaml").stat().st_mtime
        return Standing(
            label=self.label,
            status=about["status"],
            share=share,
            rounds=self._progress.rounds,
            where=self._where,
            accuracy=fmean(self._accuracies.values()) if self._accuracies else None,
            score=about.get("score", ACCURACY),
            joules=self._joules,
            left_s=wall_s * (1 / share - 1) if running and 0.01 < share < 1 else math.nan,
            silent_s=silent.total_seconds(),
            error=about.get("error"),
        )

    def _follow(self, score: str) -> None:
        """Take in the rounds that have been written since."""
        table = self.path / "rounds.csv"
        if not table.exists():
            return
        with table.open("rb") as file:
            head = next(csv.reader([file.readline().decode()]), [])
            # it was resumed, and its tables began anew, or another federation's first round brought columns
            if table.stat().st_size < self._read or (self._head and len(head) != len(self._head)):
                self.__init__(self.path, self.label)  # type: ignore[misc]
            file.seek(self._read)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]  # the last line may be under way
        self._read += len(new)
        for cells in csv.reader(new.decode().splitlines()):
            if not self._head:
                self._head = [field_name(name, score) for name in cells]
                continue
            named = dict(zip(self._head, cells, strict=True))
            row = _round(named)
            self._progress.follow(row)
            self._joules += row.energy_j
            if row.accuracy is not None:
                self._accuracies[row.cell, named.get(FEDERATION)] = row.accuracy
            self._where = self._progress.text(row).partition(" · ")[0]


def find(path: Path) -> list[Watched]:
    """The run directories of a study, or the one that this is.

    Raises:
        EdgeflError: there is none.
    """
    variants = list(_study(path).get("variants") or [])

    def place(run: Path) -> tuple[str, int, str, int]:
        """As the study's file has its variants, and seeds by their number."""
        folder, variant, seed = ("", "", "", *run.relative_to(path).parts)[-3:]
        number = seed.rpartition("-")[2]
        index = variants.index(variant) if variant in variants else len(variants)
        return folder, index, str(run.parent), int(number) if number.isdecimal() else 0

    runs = sorted((file.parent for file in path.rglob(status.FILE)), key=place) if path.is_dir() else []
    if not runs:
        raise EdgeflError(
            f"{path}: no run directory in or below it; give one that `edgefl run` or `study` made"
        )
    return [Watched(one, one.name if one == path else str(one.relative_to(path))) for one in runs]


def planned(path: Path) -> int | None:
    """How many runs a study has at most, with those that its question may add; None: this is no study's folder."""
    data = _study(path)
    try:
        settings = math.prod(map(_points, (data.get("grid") or {}).values()))
        listed = len(data["seeds"])
        further = (data["question"]["budget"] - listed) * 2 if data.get("question") else 0
        return (len(data["variants"]) * listed + further) * settings
    except (KeyError, TypeError, AttributeError):
        return None


def _points(axis: Any) -> int:
    """How many points an axis of a grid has."""
    together = list(axis) == ["zip"]
    return len(next(iter(axis["zip"].values()))) if together else len(axis)


def _study(path: Path) -> dict[str, Any]:
    """What the study's file in a folder says; nothing: there is none."""
    try:
        data = yaml.safe_load((path / "study.yaml").read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return {}
    return data if isinstance(data, dict) else {}


def table(runs: Iterable[Standing], of: int | None = None, width: int = 80) -> Group:
    """All runs as a table that needs no colour: names and numbers first, bars where there is room for them.

    Args:
        of: how many there will be at most; None: not known.
        width: of the terminal, in columns. Names that do not fit are shortened in the middle.
    """
    runs = list(runs)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    shown.add_column("run", no_wrap=True)
    scores = {run.score for run in runs}
    for name in ("done", "rounds", scores.pop() if len(scores) == 1 else "score", "joules"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("", no_wrap=True)
    cells = [
        (
            f"{100 * run.share:.0f} %",
            f"{run.rounds:,}",
            "–" if run.accuracy is None else f"{100 * run.accuracy:.1f} %",
            f"{run.joules:,.4g}",
            _state(run),
        )
        for run in runs
    ]
    longest = max((len(run.label) for run in runs), default=0)
    heads = [len(str(column.header)) for column in shown.columns[1:]]
    room = _room(width, heads, cells)
    if room < longest:  # how far a run has come is seen in percent too
        cells = [(*row[:-1], row[-1].rpartition(", ")[2]) for row in cells]
        room = _room(width, heads, cells)
    bars = room >= longest + GAP + BAR
    if bars:
        shown.add_column("", no_wrap=True)
    for run, row in zip(runs, cells, strict=True):
        full = round(BAR * run.share)
        shown.add_row(
            Text(shortened(run.label, max(SHORTEST, room))),
            *row[:-1],
            Text(row[-1], style={"failed": "red", "interrupted": "yellow"}.get(run.status, "")),
            *(["━" * full + "·" * (BAR - full)] if bars else []),
        )
    lines = [Text(f"{run.label}: {' '.join(str(run.error).split())}"[:400]) for run in runs if run.error]
    return Group(shown, *lines, Text(_all(runs, of), style="dim"))


def _room(width: int, heads: Sequence[int], cells: Sequence[Sequence[str]]) -> int:
    """Return how many characters of a line are left for a name."""
    widths = [max(own) for own in zip(heads, *(map(len, row) for row in cells), strict=True)]
    return width - EDGES - sum(GAP + taken for taken in widths)


def shortened(name: str, most: int) -> str:
    """Leave out the middle of a name that is too long: its beginning and its end tell runs apart."""
    if len(name) > most:
        name = name.replace("/seed-", "/")
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def _state(run: Standing) -> str:
    if run.status != "running":
        return run.status
    if run.silent_s > SILENT_S:
        return f"silent for {wall_time(run.silent_s)}"
    left = f", {wall_time(run.left_s)} left" if math.isfinite(run.left_s) else ""
    return f"{run.where or 'begins'}{left}"


def _all(runs: list[Standing], of: int | None) -> str:
    counts = {word: sum(run.status == word for run in runs) for word in ("running", *OVER)}
    counted = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return counted if of is None else f"{counted}; of at most {of} of the study"


def _round(cells: dict[str, str]) -> Round:
    """A row of rounds.csv as a Round."""
    numbers: dict[str, Any] = {}
    for column in fields(Round):
        text = cells.get(column.name, "")
        if column.name == "phase":
            numbers[column.name] = text
        elif column.type in ("int", int):
            numbers[column.name] = int(text or 0)
        else:
            numbers[column.name] = float(text) if text else None
    return Round(**numbers)
