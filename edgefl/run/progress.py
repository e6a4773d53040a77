"""Show runs in a live display; without a terminal, print a line when a run ends."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from edgefl.run.completion import Completion, Length
from edgefl.run_directory.score import ACCURACY

if TYPE_CHECKING:
    from edgefl.engine.records import Round
    from edgefl.scenario.scenario import Scenario

MOST_BARS = 12  # with more runs, only the running ones and a total are shown
WIDE = 110  # minimum columns of a terminal in which a line shows everything
SHORTEST_S = 2.0  # minimum wall time from which the remaining time is estimated
Reached = Callable[[], Sequence[str]]  # reads a completed run's simulated time and scores


class Row(NamedTuple):
    """A displayed run; `share` is the completed share of the run, None before the run begins."""

    label: str
    share: float | None
    latest: str
    left: str


class ProgressDisplay:
    """A live display with a bar per run, and the run's session, rounds, accuracy, time of day and wall time left.

    Without a terminal, such as in a log, each finished run prints a line.
    """

    def __init__(self, console: Console, runs: "Mapping[str, Scenario]") -> None:
        self._console, self._live = console, console.is_terminal
        self._latest: dict[str, Round] = {}
        self._narrow = self._live and console.width < WIDE
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8 if self._narrow else 16),
            TextColumn("{task.fields[latest]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=console,
        )
        self._of_runs = {label: RunProgress(scenario) for label, scenario in runs.items()}
        self._many = len(runs) > MOST_BARS
        self._done = self._failed = 0
        self._all = self._progress.add_task(
            "all runs", total=len(runs), latest="", left="", visible=self._many
        )
        self._tasks: dict[str, TaskID] = {
            label: self._progress.add_task(
                label, total=1.0, start=False, latest="waiting", left="", visible=not self._many
            )
            for label in runs
        }

    def start(self) -> None:
        """Show the bars before the first round ends."""
        if self._live:
            self._progress.start()

    def rows(self) -> list[Row]:
        """Return the contents of the progress bars, a row per run, for another kind of display."""
        return [
            Row(
                task.description,
                None
                if task.start_time is None and not task.completed
                else task.completed / (task.total or 1),
                task.fields["latest"],
                task.fields["left"],
            )
            for task in self._progress.tasks
            if task.visible
        ]

    def update(self, label: str, row: "Round | Reached") -> None:
        """Show that a round of a run has ended, or that the run is complete, with time and scores."""
        if self._live:  # the display starts late, so that an error before the first round is printed alone
            self._progress.start()
        task = self._tasks[label]
        progress = self._of_runs[label]
        if callable(row):
            self._done += 1
            if label in self._latest:
                latest = progress.text(self._latest[label], self._narrow, row())
                self._print(label, latest)
            else:  # complete before: omit the scores, since reading long tables takes time
                latest = "complete"
                self._print(label, "complete before")
            self._progress.update(task, completed=1.0, latest=latest)
            self._end(task)
            return
        if self._progress.tasks[task].start_time is None:
            self._progress.start_task(task)
            self._progress.update(task, visible=True)
        progress.follow(row)
        left = progress.left(self._progress.tasks[task].elapsed or 0.0)
        self._latest[label] = row
        self._progress.update(
            task, completed=progress.share, latest=progress.text(row, self._narrow), left=left
        )

    def failed(self, label: str) -> None:
        """Show that a run failed."""
        self._failed += 1
        self._print(label, "failed")
        self._progress.update(self._tasks[label], latest="failed")
        self._end(self._tasks[label])

    def _print(self, label: str, how: str) -> None:
        """Print the line of a finished run, if there is no terminal."""
        if self._live:
            return
        ended, elapsed = self._done + self._failed, self._progress.tasks[self._tasks[label]].elapsed
        took = f" in {wall_time(elapsed)} of wall time" if elapsed else ""
        number = f"{ended}/{len(self._tasks)} " if len(self._tasks) > 1 else ""
        self._console.print(f"{number}{label}: {how}{took}", soft_wrap=True)
        self._console.file.flush()  # a log is read while the study runs, so do not buffer it

    def _end(self, task: TaskID) -> None:
        ended = self._done + self._failed
        some_failed = f", {self._failed} failed" if self._failed else ""
        latest = f"{ended}/{len(self._tasks)}{some_failed}"
        self._progress.update(self._all, completed=ended, latest=latest)
        self._progress.update(task, left="", visible=not self._many)
        self._progress.stop_task(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress.live.is_started:  # otherwise stop() would print an empty line
            self._progress.stop()


class RunProgress(Completion):
    """Progress of a run, as text for the display."""

    def __init__(self, scenario: "Scenario") -> None:
        policy = scenario.sessions
        super().__init__(Length(scenario.duration_s, policy.count, policy.longest))
        self._day = scenario.day
        trained = [one.learning for one in scenario.by_federation.values() if one.learning]
        scores = {learning.learned.score for learning in trained} or {ACCURACY}
        self._score = scores.pop() if len(scores) == 1 else "score"  # federations differ in their scores

    def text(self, row: "Round", short: bool = False, reached: Sequence[str] = ()) -> str:
        """Describe the run's state for the display.

        Args:
            short: whether the text must fit next to a bar in 80 columns.
            reached: simulated time and scores of the completed run, shown in place of those of `row`.
        """
        session, day = self.session(row), self._day
        rounds = f"{self.rounds:,} round{'s' * (self.rounds > 1)}"
        if reached:
            time, *scores = reached
            shown = [time.removesuffix(" simulated")] if short else [session, rounds, time]
            return " · ".join([*shown, *scores])
        time = day.clock(row.end_s) if day else f"{simulated_time(row.end_s)} simulated"
        score = [f"{100 * row.accuracy:.1f} %"] if row.accuracy is not None else []
        if short:
            return " · ".join([session, time.removesuffix(" simulated"), *score])
        return " · ".join([session, rounds, time, *(f"{self._score} {one}" for one in score)])

    def left(self, wall_s: float) -> str:
        """Return the estimated wall time left after `wall_s`, or '' if unknown."""
        if wall_s < SHORTEST_S or not 0 < self.share < 1:
            return ""
        return f"{wall_time(wall_s * (1 / self.share - 1))} left"


def three_digits(value: float) -> str:
    """Write a number with at most three significant digits, thousands separated: `4`, `0.0395`, `1,130`."""
    return f"{float(f'{value:.3g}'):,g}"


def simulated_time(seconds: float) -> str:
    """Write a simulated time in seconds with four digits, or all digits before the decimal point: `86,400 s`."""
    return f"{seconds:,.0f} s" if seconds >= 1000 else f"{seconds:.4g} s"


def wall_time(seconds: float) -> str:
    """Format a duration for people: `45 s`, `12 min`, `3.4 h`, `2.1 days`."""
    for unit, length_s in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length_s:
            return f"{seconds / length_s:.{0 if unit == 'min' else 1}f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 9.5 else f"{seconds:.1g} s"


def size(count: float) -> str:
    """Format a number of bytes for people: `3.4 MB`."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.{1 if count < 10 * length else 0}f} {unit}"
    return f"{count:.0f} bytes"
