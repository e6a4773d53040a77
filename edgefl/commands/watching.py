"""Read the state of runs in progress from their directories, without writing anything."""

import csv
import math
import platform
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from edgefl.analysis.page.formatting import amount
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.completion import Completion, Lengths
from edgefl.run.progress import wall_time
from edgefl.run_directory.circumstances import SCENARIO
from edgefl.run_directory.files import reading
from edgefl.run_directory.reading import FILE, RoundRows, about_of, resume_command, study_of
from edgefl.run_directory.score import ACCURACY
from edgefl.run_directory.status import is_gone

BAR = 10  # width of a bar in characters
GAP, EDGES = 3, 2  # spaces between columns and around the table that rich draws
SHORTEST = 12  # minimum number of characters of a name
SILENT_S = 60.0  # a run that is silent for longer may be dead; heartbeats follow rounds, at most every 10 s
DAMAGED = "damaged"
KILLED = "killed"  # run.json has the status running, but the run's process on this machine has ended
OVER = ("completed", "failed", "interrupted", KILLED, DAMAGED)


@dataclass
class Standing:
    """The status, rounds and accuracy of a watched run.

    Attributes:
        share: completed share of the run. left_s: estimated wall time until the run ends; NaN if unknown.
        silent_s: wall time since the run's last heartbeat. From the first new heartbeat on, the watching process
            measures this time by its own clock, because the clocks of machines differ and are adjusted.
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
        """Whether the run has ended."""
        return self.status in OVER


class _Watched:
    """A run directory that is read repeatedly, each time from where the previous read ended.

    Args:
        lengths: object that reads the limits of the run, shared by the runs of a study.
    """

    def __init__(self, path: Path, label: str, lengths: Lengths) -> None:
        self.path, self.label = path, label
        self._lengths = lengths
        # last heartbeat, and the monotonic time when it was seen
        self._heard: tuple[str, float] | None = None
        self._begin()

    def _begin(self) -> None:
        """Start reading a run's rounds from the first round."""
        self._rows = RoundRows(self.path)
        self._progress: Completion | None = None
        self._latest: Round | None = None
        self._rounds = 0
        self._accuracies: dict[int, float] = {}  # cell -> latest accuracy
        self._joules = 0.0

    def standing(self) -> Standing:
        """Read a run's new rounds and return its state; if its files are damaged, the state describes the fault."""
        try:
            return self.look()
        except EdgeflError as error:
            return Standing(self.label, DAMAGED, 0.0, 0, "", None, 0.0, math.nan, 0.0, str(error))

    def look(self) -> Standing:
        """Read a run's new rounds and return its state.

        Raises:
            EdgeflError: the directory cannot be read, or is damaged; the error names the file.
        """
        about = about_of(self.path)
        if gone := _is_killed(about):
            about = about_of(self.path)  # read again: meanwhile the run may have ended properly
            gone = _is_killed(about)
        score = about.get("score") or ACCURACY
        complete, running = (about["status"] == word for word in ("completed", "running"))
        running = running and not gone
        if self._rows.began_anew():
            self._begin()
        progress = None if complete else self._begun()
        self._follow(score)
        share = progress.share if progress else 1.0
        heartbeat = (about.get("process") or {}).get("heartbeat") if running else None
        silent_s = self._silent_s(heartbeat) if heartbeat else 0.0
        left_s = math.nan
        if running and 0.01 < share < 1:
            with reading(self.path / SCENARIO):
                lasted_s = time.time() - (self.path / SCENARIO).stat().st_mtime
            left_s = lasted_s * (1 / share - 1) if lasted_s > 0 else math.nan  # NaN if a clock was set back
        return Standing(
            label=self.label,
            status=KILLED if gone else about["status"],
            share=share,
            rounds=self._rounds,
            where=progress.session(self._latest) if progress and self._latest else "",
            accuracy=fmean(self._accuracies.values()) if self._accuracies else None,
            score=score,
            joules=self._joules,
            left_s=left_s,
            silent_s=silent_s,
            error=about.get("error") or self._remedy(about, gone, silent_s),
        )

    def _remedy(self, about: dict[str, Any], gone: bool, silent_s: float) -> str | None:
        """Return how to continue a run if its process ended, or may have ended on another machine; otherwise None."""
        process = about.get("process") or {}
        elsewhere = silent_s > SILENT_S and process["host"] != platform.node()
        if not gone and not elsewhere:
            return None
        whole = self.path.parent if about.get("federation") else self.path
        how = resume_command(whole, about)
        if about.get("study"):
            how = f"the study's command, or {how}"
        if gone:
            return f"its process {process['pid']} is gone; continue with: {how}"
        who = f"process {process['pid']} on {process['host']}"
        return f"{who} may have been killed; if so, continue there with: {how}"

    def _silent_s(self, heartbeat: str) -> float:
        """Return the seconds since a run's last heartbeat, by the wall clock if no earlier heartbeat was seen."""
        now_s = time.monotonic()
        if self._heard is None:
            ago = datetime.now(UTC) - datetime.fromisoformat(heartbeat)
            self._heard = heartbeat, now_s - max(0.0, ago.total_seconds())
        elif self._heard[0] != heartbeat:
            self._heard = heartbeat, now_s
        return now_s - self._heard[1]

    def _begun(self) -> Completion:
        """Return the run's progress, reading the limits of the run if needed."""
        if self._progress is None:
            self._begin()
            self._progress = Completion(self._lengths.of(self.path))
        return self._progress

    def _follow(self, score: str) -> None:
        """Read the rounds that the run has written since the last call."""
        for row in self._rows.new(score):
            self._latest = row
            self._rounds += 1
            if self._progress is not None:
                self._progress.follow(row)
            self._joules += row.energy_j
            if row.accuracy is not None:
                self._accuracies[row.cell] = row.accuracy


def _is_killed(about: dict[str, Any]) -> bool:
    """Return whether a run's process on this machine has ended without recording the run's end."""
    return about["status"] == "running" and is_gone(about.get("process") or {})


def find(path: Path) -> list[_Watched]:
    """Find the run directories at a path: a study's runs, or one run, or the federations of one run.

    Raises:
        EdgeflError: no run was found.
    """
    variants = list(study_of(path).get("variants") or [])

    def place(run: Path) -> tuple[str, int, str, int]:
        """Return the key that sorts runs: variants in the order of the study's file, seeds by number."""
        outer = run.parent if run.parent in found else run
        folder, variant, seed = ("", "", "", *outer.relative_to(path).parts)[-3:]
        number = seed.rpartition("-")[2]
        index = variants.index(variant) if variant in variants else len(variants)
        return folder, index, str(run.parent), int(number) if number.isdecimal() else 0

    found = {file.parent for file in path.rglob(FILE)} if path.is_dir() else set()
    # leave out runs that hold the runs of federations; the parent of `.` is `.`
    whole = {one.parent for one in found if one != path}
    runs = sorted(sorted(found - whole), key=place)  # federations by name
    if not runs:
        raise EdgeflError(
            f"{path}: no run directory in or below it; give a directory made by `edgefl run` or `edgefl study`"
        )
    lengths = Lengths()
    return [
        _Watched(one, one.resolve().name if one == path else str(one.relative_to(path)), lengths)
        for one in runs
    ]


def planned(path: Path) -> int | None:
    """Return the maximum number of runs of a study, or None if it is unknown or the study's question is answered."""
    data = study_of(path)
    try:
        with suppress(OSError), (path / "question.csv").open(encoding="utf-8", errors="replace") as answer:
            if all(setting["why"] for setting in csv.DictReader(answer)):
                return None  # an answered question adds no more seeds
        settings = math.prod(map(_points, (data.get("grid") or {}).values()))
        listed = len(data["seeds"])
        further = (data["question"]["budget"] - listed) * 2 if data.get("question") else 0
        return (max(1, len(data.get("variants") or ())) * listed + further) * settings
    except (KeyError, TypeError, AttributeError):
        return None


def _points(axis: Any) -> int:
    """Return the number of points on an axis of a grid."""
    together = list(axis) == ["zip"]
    return len(next(iter(axis["zip"].values()))) if together else len(axis)


def table(runs: Iterable[Standing], of: int | None = None, width: int = 80) -> Group:
    """Show all runs in a table that is readable without colour: names and numbers first, bars if there is room.

    Args:
        of: maximum number of runs, or None if unknown.
        width: the terminal's width, in columns. Long names are shortened in the middle.
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
            amount(run.joules),
            _state(run),
        )
        for run in runs
    ]
    longest = max((len(run.label) for run in runs), default=0)
    heads = [len(str(column.header)) for column in shown.columns[1:]]
    room = _room(width, heads, cells)
    if room < longest:  # without room for bars, only percentages are shown
        cells = [(*row[:-1], row[-1].rpartition(", ")[2]) for row in cells]
        room = _room(width, heads, cells)
    bars = room >= longest + GAP + BAR
    if bars:
        shown.add_column("", no_wrap=True)
    for run, row in zip(runs, cells, strict=True):
        full = round(BAR * run.share)
        shown.add_row(
            Text(_shortened(run.label, max(SHORTEST, room))),
            *row[:-1],
            Text(
                row[-1],
                style={"failed": "red", DAMAGED: "red", "interrupted": "yellow", KILLED: "yellow"}.get(
                    run.status, ""
                ),
            ),
            *(["━" * full + "·" * (BAR - full)] if bars else []),
        )
    lines = [Text(f"{run.label}: {' '.join(str(run.error).split())}"[:400]) for run in runs if run.error]
    return Group(shown, *lines, Text(_all(runs, of), style="dim"))


def _room(width: int, heads: Sequence[int], cells: Sequence[Sequence[str]]) -> int:
    """Return the number of characters that a line of the table leaves for a run's name."""
    widths = [max(own) for own in zip(heads, *(map(len, row) for row in cells), strict=True)]
    return width - EDGES - sum(GAP + taken for taken in widths)


def _shortened(name: str, most: int) -> str:
    """Shorten a long name in the middle: its beginning and end distinguish runs."""
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
    return counted if len(runs) >= (of or 0) else f"{counted}; the study has at most {of} runs"
