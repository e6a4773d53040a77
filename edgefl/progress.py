"""A live display of runs under way."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from edgefl.engine.records import Round
from edgefl.scenario import Scenario

MOST_BARS = 12  # more runs show only what is under way, and how many are done


class RunProgress:
    """A live display with one bar per run: session and accuracy of the latest round, or the simulated time."""

    def __init__(self, console: Console, runs: Mapping[str, Scenario]) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[latest]}", markup=False),
            TimeElapsedColumn(),
            console=console,
        )
        self._sessions = {label: scenario.sessions.count for label, scenario in runs.items()}
        self._longest = {label: scenario.sessions.longest for label, scenario in runs.items()}
        self._many = len(runs) > MOST_BARS
        self._done = self._failed = 0
        self._all = self._progress.add_task("all runs", total=len(runs), latest="", visible=self._many)
        self._tasks: dict[str, TaskID] = {
            label: self._progress.add_task(
                label, total=1.0, start=False, latest="waiting", visible=not self._many
            )
            for label in runs
        }

    def update(self, label: str, row: Round | None) -> None:
        """Show that a round of a run has ended, or with None that the run is complete."""
        # started late, so that an error before the first round stands alone
        self._progress.start()
        task = self._tasks[label]
        if row is None:
            self._done += 1
            self._progress.update(task, completed=1.0)
            self._end(task)
            return
        if self._progress.tasks[task].start_time is None:
            self._progress.start_task(task)
            self._progress.update(task, visible=True)
        # sessions may end early: each counts for its share of the whole
        rounds = 0 if row.phase == "probe" else row.round
        done = (row.session - 1 + rounds / self._longest[label]) / self._sessions[label]
        accuracy = (
            f"accuracy {row.accuracy:.3f}" if row.accuracy is not None else f"{row.end_s:.4g} s simulated"
        )
        latest = f"session {row.session}/{self._sessions[label]} {accuracy}"
        self._progress.update(task, completed=done, latest=latest)

    def failed(self, label: str) -> None:
        """Show that a run has failed."""
        self._failed += 1
        self._progress.update(self._tasks[label], latest="failed")
        self._end(self._tasks[label])

    def _end(self, task: TaskID) -> None:
        ended = self._done + self._failed
        some_failed = f", {self._failed} failed" if self._failed else ""
        latest = f"{ended}/{len(self._tasks)}{some_failed}"
        self._progress.update(self._all, completed=ended, latest=latest)
        self._progress.update(task, visible=not self._many)
        self._progress.stop_task(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
