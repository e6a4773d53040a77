"""Show progress and notes in a terminal or a notebook.

The first display appears before the modules of a run are imported, since importing takes more than a second.
"""

import html
import io
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from edgefl.run.progress import ProgressDisplay, Reached
from edgefl.run.results import Results, StudyResults

if TYPE_CHECKING:
    from edgefl.engine.records import Round
    from edgefl.scenario.scenario import Scenario

PREPARING = "preparing"
SHORTEST_S = 0.2  # seconds between two updates of a notebook's cell
# a bar per run: name, bar and numbers in columns, or stacked on a narrow page
ROW = (
    '<div style="display: flex; flex-wrap: wrap; gap: 0 .8em; align-items: center">'
    '<span style="min-width: {width}ch">{label}</span><progress style="width: 9em"{value}></progress>'
    "<span>{latest}</span></div>"
)


def showing(wanted: bool) -> "Showing":
    """Return a display of progress for a notebook or a terminal, or one that shows nothing."""
    if wanted and _in_notebook():
        return _InNotebook()
    return _InTerminal() if wanted and sys.stderr is not None and sys.stderr.isatty() else Showing()


def _in_notebook() -> bool:
    """Return whether a Jupyter kernel runs this code; IPython in a terminal has no kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class Showing:
    """Base class of all progress displays, which shows nothing."""

    _bars: ProgressDisplay | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def begin(self, runs: "Mapping[str, Scenario]") -> None:
        """Show runs, given by label, in place of the runs shown before."""

    def update(self, label: str, row: "Round | Reached") -> None:
        """Show that a round has ended, or that the run is complete, with its time and scores."""
        if self._bars is not None:
            self._bars.update(label, row)
            self._show(at_once=False)

    def failed(self, label: str) -> None:
        """Show that a run failed."""
        if self._bars is not None:
            self._bars.failed(label)
            self._show()

    def _show(self, *, at_once: bool = True) -> None:
        """Update the display."""

    def note(self, text: str) -> None:
        """Show a note of the run above the progress bars."""

    def end(self, results: Results | StudyResults) -> None:
        """Show a run's notes that have not been shown yet, and a last line."""


class _InTerminal(Showing):
    """A progress display with bars on a terminal's stderr, and notes above the bars."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._waiting = self._console.status(PREPARING)
        self._noted: set[str] = set()

    def __enter__(self) -> Self:
        self._waiting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.stop()
        if self._bars is not None:
            self._bars.__exit__()

    def begin(self, runs: "Mapping[str, Scenario]") -> None:
        self.__exit__()
        self._bars = ProgressDisplay(self._console, runs)
        self._bars.start()

    def note(self, text: str) -> None:
        self._noted.add(text)
        self._console.print(f"note: {text}", soft_wrap=True)

    def end(self, results: Results | StudyResults) -> None:
        self.__exit__()
        for note in results.notes:
            if note not in self._noted:
                self.note(note)
        self._console.print(results.line(), soft_wrap=True)


class _InNotebook(Showing):
    """A progress display in one output of a notebook's cell, which is updated while runs are in progress."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._line = PREPARING
        self._shown_s = time.monotonic()
        self._output: Any = None

    def __enter__(self) -> Self:
        from IPython.display import display

        self._output = display(_Shown(self._html()), display_id=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._line = "" if self._line == PREPARING else self._line
        self._show()

    def begin(self, runs: "Mapping[str, Scenario]") -> None:
        self._bars, self._line = ProgressDisplay(_unseen(), runs), ""
        self._show()

    def note(self, text: str) -> None:
        self._notes.append(text)
        self._show()

    def end(self, results: Results | StudyResults) -> None:
        self._notes = list(dict.fromkeys([*self._notes, *results.notes]))
        self._line = results.line()

    def _show(self, *, at_once: bool = True) -> None:
        if not at_once and time.monotonic() <= self._shown_s + SHORTEST_S:
            return
        self._shown_s = time.monotonic()
        self._output.update(_Shown(self._html()))

    def _html(self) -> str:
        rows = self._bars.rows() if self._bars is not None else []
        width = max((len(row.label) for row in rows), default=0)
        bars = (
            ROW.format(
                width=width,
                label=html.escape(row.label),
                value="" if row.share is None else f' max="1" value="{row.share:.3f}"',
                latest=html.escape(f"{row.latest} · {row.left}" if row.left else row.latest),
            )
            for row in rows
        )
        notes = (f"<div>note: {html.escape(note)}</div>" for note in self._notes)
        return "".join([*bars, *notes, f"<div>{html.escape(self._line)}</div>" * bool(self._line)])


class _Shown:
    """HTML for a notebook, with plain text for programs that cannot show HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "progress of edgefl"

    def _repr_html_(self) -> str:
        return self._text


def _unseen() -> Any:
    from rich.console import Console

    return Console(file=io.StringIO(), force_terminal=False, force_jupyter=False, width=120)
