"""The results of a run or a study: its directory as a path object with tables, figures and a page."""

import html
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from edgefl.errors import EdgeflError, in_python
from edgefl.run.views import Page, PathView

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from edgefl.analysis import Comparison, Runs
    from edgefl.analysis.reports.question import Answer


class _Directory(PathView):
    """A directory of runs as a path object (`results / "rounds.csv"`), with its tables as pandas data frames."""

    def __new__(cls, *parts: Any, **options: Any) -> Self:
        folder = Path(*parts)
        if not (folder / "run.json").is_file():  # analysis, which imports pandas, may find runs below
            from edgefl.analysis.runs.run_folders import directories_in

            cls._check(folder, in_python(directories_in)(folder))
        return super().__new__(cls, *parts, **options)

    @classmethod
    def _check(cls, folder: Path, runs: Sequence[Path]) -> None:
        """Refuse a folder without run.json if the class cannot read the runs below it."""

    def with_segments(self, *parts: Any) -> Self:
        """Make other paths, such as the parent, without the check of `__new__` (from Python 3.12 on)."""
        made = object.__new__(type(self))
        PathView.__init__(made, *parts)
        return made

    def __truediv__(self, key: Any) -> Path:  # type: ignore[override]  # what is inside is not a run directory
        return Path(self) / key

    def __dir__(self) -> list[str]:
        """Return the names that Path lacks, so that completion offers tables and figures, not Path's methods."""
        return sorted(set(super().__dir__()) - {name for name in dir(Path) if not name.startswith("_")})

    def __repr__(self) -> str:
        path, colon, about = self.line().partition(": ")
        return f"{type(self).__name__}({path!r}{colon}{about})"

    def _repr_html_(self) -> str:
        return _if_readable(self._html) or f"<p>{self!r}</p>"

    def line(self) -> str:
        """Return the directory's path and, if it can be read, a description of its content, on one line."""
        about = _if_readable(self._about)
        return f"{self.as_posix()}: {about}" if about else self.as_posix()

    @property
    def notes(self) -> list[str]:
        """The run's notes, one sentence each; empty for a study."""
        return []

    def _about(self) -> str:
        """Describe the runs and their costs."""
        raise NotImplementedError

    def _html(self) -> str:
        """Return the HTML that a notebook shows."""
        raise NotImplementedError

    @property
    def rounds(self) -> "pd.DataFrame":
        """One row per round: start, end, latency, joules, accuracy, loss."""
        return self._runs.rounds

    @property
    def devices(self) -> "pd.DataFrame":
        """One row per device and round: start and end of downlink, compute and uplink, bits, joules, outcome."""
        return self._runs.devices

    @property
    def sessions(self) -> "pd.DataFrame":
        """One row per session: the reason for its start, its devices and labels, its warm start."""
        return self._runs.sessions

    @property
    def events(self) -> "pd.DataFrame":
        """One row per arrival, departure, handover, switching on or off, and start or end of a session."""
        return self._runs.events

    @property
    def ledger(self) -> "pd.DataFrame":
        """One row per device: joules by activity, and wasted joules."""
        return self._runs.ledger

    @property
    def positions(self) -> "pd.DataFrame":
        """One row per device and time: position, serving cell, gain; written if record.positions_s is set."""
        return self._runs.positions

    @property
    def evaluation(self) -> "pd.DataFrame":
        """One row per device and round: the device's accuracy and loss on its own test data; see `scores_every`."""
        return self._runs.evaluation

    @in_python
    def report(self, out: str | Path | None = None) -> Page:
        """Write the report: one HTML file with text, tables, charts and a replay. A notebook shows the file.

        Args:
            out: file of the report, .html or .htm, or None for report.html in this directory.

        Returns:
            Path of the report: `webbrowser.open(results.report().as_uri())` opens the report.

        Raises:
            EdgeflError: no run is completed, the file's name has a wrong ending, or the report cannot be written.
        """
        from edgefl.analysis.html import write_report

        return Page(write_report(self, out).absolute())

    @in_python
    def replay(self) -> Page:
        """Write the report; a notebook shows only its replay of devices and cells over time."""
        page = self.report()
        page.only = "replay"
        return page

    @cached_property
    def _runs(self) -> "Runs":
        from edgefl.analysis.runs.load import load_as_variants

        try:
            return load_as_variants(self, partial=None)  # a table has no argument `partial` to suggest
        except ValueError as error:
            raise EdgeflError(str(error)) from error

    @cached_property
    def _compared(self) -> "Comparison":
        """The comparison of all runs in the directory; nothing is written."""
        from edgefl.analysis import compare

        found: Comparison = in_python(unwrap(compare))(self._runs)
        return found


class Results(_Directory):
    """A run directory as a path object (`results / "rounds.csv"`), with its tables as pandas data frames.

    Several runs in a directory, such as those of a study, are `StudyResults`.

    Column names end with units: `_s` simulated seconds since the run's beginning, `_j` joules, `_bits`, `_m` metres,
    `_db` and `_dbm`; accuracies and shares are 0 to 1. Only `wall_s` is wall time, as measured on this machine.
    Tables are read on first use; an EdgeflError or a ValueError names what is missing in a directory. A notebook
    shows the run's answer in words, a table and a figure. The page on run directories explains each column.

    Example:
        results = edgefl.simulate(scenario)
        results.rounds.plot(x="end_s", y="accuracy")
        results.time_to(0.8), results.energy()
    """

    @classmethod
    def _check(cls, folder: Path, runs: Sequence[Path]) -> None:
        if len(runs) > 1:
            raise EdgeflError(
                f"{folder} holds {len(runs)} runs: read them with edgefl.StudyResults, or name one, such as {runs[0]}"
            )

    @cached_property
    def info(self) -> dict[str, Any]:
        """The content of run.json: status, versions, model, wall time, notes."""
        from edgefl.run_directory.reading import about_of

        return about_of(self)

    @property
    def notes(self) -> list[str]:
        return list(self.info.get("notes") or ())

    @in_python
    def energy(self) -> "pd.DataFrame":
        """Return the run's joules by class of device and use; see `Comparison.energy`."""
        return self._compared.energy().droplevel("variant")

    @in_python
    def time_to(self, target: str | float) -> float:
        """Return the mean simulated seconds from a session's start to a target accuracy: 0.8, or `95%` of the best.

        The mean is over the sessions that `edgefl.compare` compares: those whose labels return, or else those after
        the pilot, or else the pilot, from scratch. At least one training round counts, even if a session's opening
        model has the accuracy; inf if a session misses it. `results.rounds` has the accuracy at all times of the run.
        """
        return float(self._compared.time_to(target).iloc[0])

    @in_python
    def plot(self) -> "Figure":
        """Draw accuracy over simulated time and over joules; without training, latency and energy of rounds."""
        return self._compared.plot("comparison_curves" if self._runs.trained else None)

    @cached_property
    def _compared(self) -> "Comparison":
        if several := self._federations():
            raise EdgeflError(
                f"{self.as_posix()} holds several federations: ask one of them, such as"
                f" edgefl.Results({several[0].as_posix()!r})"
            )
        return super()._compared

    def _federations(self) -> list["Results"]:
        """Return the results of each of several federations; empty if the run has one alone."""
        return [Results(self / name) for name in self.info.get("federations") or ()]

    def _about(self) -> str:
        from edgefl.analysis.html.words import in_short

        if several := self._federations():
            return "; ".join(f"{one.name}: {one._about()}" for one in several)
        return in_short(self._runs) if self.info["status"] == "completed" else str(self.info["status"])

    def _html(self) -> str:
        from edgefl.analysis.html.words import in_cell

        return in_cell(self._runs, self.plot())


class StudyResults(_Directory):
    """A study's directory as a path object. Its tables contain all runs, by variant (with the setting) and seed.

    A notebook shows the verdicts, a table and a figure; `edgefl.compare` has further options.

    Example:
        results = edgefl.study("study.yaml")
        results.rounds.groupby("variant").accuracy.mean()
        print(results.answer.sentence)
    """

    @property
    def answer(self) -> "Answer | None":
        """The answer to the study's question (`.sentence`, `.table`, `.notes`), or None if there is no question."""
        return answer_in(self)

    @in_python
    def energy(self) -> "pd.DataFrame":
        """Return the joules of a run by variant, class of device and use, as `Comparison.energy` does."""
        return self._compared.energy()

    @in_python
    def time_to(self, target: str | float) -> "pd.Series":
        """Return each variant's simulated seconds to a target accuracy, as `Comparison.time_to` does."""
        return self._compared.time_to(target)

    @in_python
    def plot(self) -> "Figure":
        """Draw the figure of the study's comparison or, if its grid sweeps a key, costs as a function of that key."""
        return self._found.plot()

    @cached_property
    def _found(self) -> Any:
        from edgefl.analysis.reports.study import answers

        return answers(self, write=False)[0]

    def _about(self) -> str:
        info = self._runs.info
        counts = {"run": len(info), "variant": info["variant"].nunique(), "seed": info["seed"].nunique()}
        return ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items())

    def _html(self) -> str:
        answer = self.answer
        above = [answer.sentence, *(f"Note: {note}." for note in answer.notes)] if answer else []
        return "".join(f"<p><b>{html.escape(line)}</b></p>" for line in above) + str(
            self._found._repr_html_()
        )


def answer_in(directory: Path) -> "Answer | None":
    """Return the answer to the question of the study in a directory, which may have no runs yet."""
    from edgefl.analysis.reports.question import read

    return read(directory)


def _if_readable(write: Callable[[], str]) -> str:
    """Return a directory's description, or '' if the directory cannot be read, since repr() must not raise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes name omitted runs too
            return write()
    except (ValueError, OSError):
        return ""
