"""The results of a run or a study: its directory, which is a path, with its tables."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from edgefl.analysis import Runs
    from edgefl.analysis.reports.question import Answer

    _Path = Path
else:
    _Path = type(Path())  # before Python 3.12 Path itself cannot be extended


class _Directory(_Path):
    """A directory of runs: a path (`results / "rounds.csv"`), with tables that are pandas data frames."""

    def __truediv__(self, key: Any) -> Path:  # type: ignore[override]  # what is inside is not a run directory
        return Path(self) / key

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
        """One row per session: why it began, its devices and labels, its warm start."""
        return self._runs.sessions

    @property
    def events(self) -> "pd.DataFrame":
        """One row per arrival, departure, handover, switch, and beginning and end of a session."""
        return self._runs.events

    @property
    def ledger(self) -> "pd.DataFrame":
        """One row per device: its joules by activity, and those wasted."""
        return self._runs.ledger

    @property
    def positions(self) -> "pd.DataFrame":
        """One row per device and time: place, serving cell, gain; written with record.positions_s."""
        return self._runs.positions

    @property
    def evaluation(self) -> "pd.DataFrame":
        """One row per device and round: the device's accuracy and loss on its own test data; see `scores_every`."""
        return self._runs.evaluation

    @cached_property
    def _runs(self) -> "Runs":
        from edgefl.analysis.runs.load import load_as_variants

        return load_as_variants(self)


class Results(_Directory):
    """A run directory. It is a path (`results / "rounds.csv"`), and its tables are pandas data frames.

    Columns carry their units: `_s` simulated seconds since the run's beginning, `_j` joules, `_bits`, `_m` metres,
    `_db` and `_dbm`; accuracies and shares are 0 to 1. `wall_s` alone is this machine's time. docs/run-directory.md
    explains each column. Tables are read on first use; an EdgeflError or a ValueError names what a directory
    lacks.

    Example:
        results = edgefl.simulate(scenario)
        results.rounds.plot(x="end_s", y="accuracy")
    """

    @cached_property
    def info(self) -> dict[str, Any]:
        """What run.json says: status, versions, model, wall time, notes."""
        from edgefl.run_directory.reading import about_of

        return about_of(self)

    @property
    def notes(self) -> list[str]:
        """The run's notes, one sentence each."""
        return list(self.info.get("notes") or ())


class StudyResults(_Directory):
    """The directory of a study, a path. Its tables cover all its runs, by variant (with its setting) and seed.

    Example:
        results = edgefl.study("study.yaml")
        results.rounds.groupby("variant").accuracy.mean()
        print(results.answer.sentence)
    """

    @property
    def answer(self) -> "Answer | None":
        """The answer to the study's question (`.sentence`, `.table`, `.notes`), or None without a question."""
        from edgefl.analysis.reports.question import read

        return read(self)
