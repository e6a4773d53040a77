"""Work out the completed share of a run from its rounds and limits."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict

from edgefl.config.scenario_fields import Section
from edgefl.config.yaml_source import Source
from edgefl.engine.records import Round
from edgefl.run_directory.circumstances import SCENARIO
from edgefl.run_directory.files import reading

PROBE = "probe"
SEED = re.compile(r"^seed: .*$", re.MULTILINE)  # the seed in a run's scenario.yaml


class Length(NamedTuple):
    """The limits of a run: simulated seconds, sessions per cell, rounds per session; None if there is no limit."""

    duration_s: float | None
    sessions: int | None
    rounds: int | None


class Completion:
    """The completed share of a run.

    Attributes:
        rounds: how many rounds are completed so far, in all cells.
    """

    def __init__(self, length: Length) -> None:
        self._length = length
        self._cells: dict[int, float] = {}  # cell -> completed share of its sessions
        self._time_s = 0.0
        self.rounds = 0

    def follow(self, row: Round) -> None:
        """Update the share with a finished round."""
        _, sessions, longest = self._length
        self.rounds += 1
        self._time_s = max(self._time_s, row.end_s)
        if sessions:
            # each session counts equally, since sessions may end early
            rounds = 0 if row.phase == PROBE else row.round
            within = rounds / longest if longest else 0.0
            self._cells[row.cell] = (row.session - 1 + within) / sessions

    @property
    def share(self) -> float:
        """The completed share of the run's duration, or of its sessions averaged over cells."""
        duration_s = self._length.duration_s
        of_time = self._time_s / duration_s if duration_s else 0.0
        of_sessions = sum(self._cells.values()) / len(self._cells) if self._cells else 0.0
        return min(1.0, max(of_time, of_sessions))

    def session(self, row: Round) -> str:
        """Return a round's session and the number of sessions: `session 2/4`."""
        count = self._length.sessions
        return f"session {row.session}/{count}" if count else f"session {row.session}"


class _Sessions(Section):
    """The limits in a session policy's keys, which policies share; other keys are ignored."""

    model_config = ConfigDict(extra="ignore")
    count: int | None = None
    rounds: Any = None
    max_rounds: Any = None

    @property
    def longest(self) -> int | None:
        """Maximum number of rounds in a session, if one of the keys states it."""
        stated = (self.rounds, self.max_rounds)  # in a policy from outside edgefl they may be anything
        return next((one for one in stated if isinstance(one, int) and one > 0), None)


class _Limits(Section):
    """The limits of a run in its scenario.yaml; own components are not loaded, since watching needs no code."""

    model_config = ConfigDict(extra="ignore")
    duration_s: float | None = None
    sessions: _Sessions


class Lengths:
    """The lengths of a study's runs; scenarios that differ only by seed are read once."""

    def __init__(self) -> None:
        self._read: dict[str, Length] = {}

    def of(self, run: Path) -> Length:
        """Return the limits of a run, as far as they are known without the run's code.

        Raises:
            EdgeflError: the scenario's file cannot be read.
        """
        file = run / SCENARIO
        with reading(file):
            text = file.read_bytes().decode(errors="replace")
        key = SEED.sub("", text, count=1)
        if key not in self._read:
            limits = Source(file).validate(_Limits)
            sessions = limits.sessions
            self._read[key] = Length(limits.duration_s, sessions.count, sessions.longest)
        return self._read[key]
