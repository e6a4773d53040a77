"""Totals of a run's rows, counted as they are written."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edgefl.engine.parts import Activity, Outcome
from edgefl.engine.records import OUT_OF_COVERAGE, DeviceRound, Event, EventName, Round, Session
from edgefl.run.explosions import Extremes

GIVEN_UP = (Outcome.FAILED_DOWNLINK, Outcome.FAILED_UPLINK)
OF_GLOBAL_MODEL = ("pilot", "train")  # phases


@dataclass
class Counts:
    """Totals of a run's rows, over all cells unless a cell is named.

    of: federation, or '' -> its own totals.
    """

    events: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)  # why sessions ended
    sessions: int = 0  # the highest session number
    warm: int = 0  # sessions that began with saved models
    rounds: Counter[int] = field(default_factory=Counter)  # cell -> rounds
    models: dict[int, int] = field(default_factory=dict)  # cell -> global models made
    participants: int = 0
    completed: int = 0
    trained: Counter[int] = field(default_factory=Counter)  # cell -> rounds of its global model
    longest: int = 0  # most rounds of the global model in a session
    uncovered: list[int] = field(default_factory=list)  # per round: devices without a link when it began
    extremes: Extremes = field(default_factory=Extremes)
    timers: int = 0  # rounds whose last upload or download was given up because its link failed
    of: dict[str, "Counts"] = field(default_factory=dict)

    @classmethod
    def of_several(cls, federations: Iterable[str]) -> "Counts":
        """Return a run's counts, with those of each federation in `of`; a single federation shares the run's."""
        counts = cls()
        counts.of = {name: cls() if name else counts for name in federations}
        return counts

    def see(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        """Count rows as they are written, with values of extra columns."""
        if further and OUT_OF_COVERAGE in further:
            self.uncovered.append(further[OUT_OF_COVERAGE])
        for row in rows:
            self.extremes.see(row, further)
            if isinstance(row, Event):
                self.events[row.event] += 1
                self.ends[row.detail] += row.event == EventName.SESSION_END
            elif isinstance(row, Round):
                self.rounds[row.cell] += 1
                self.models[row.cell] = row.version
                self.participants += row.participants
                self.completed += row.completed
                if row.phase in OF_GLOBAL_MODEL:
                    self.trained[row.cell] += 1
                    self.longest = max(self.longest, row.round)
            elif isinstance(row, Session):
                self.sessions = max(self.sessions, row.session)
                self.warm += bool(row.weights)

    def see_columns(self, row_type: type, columns: dict[str, Any]) -> None:
        """Count rows written as columns: handovers, and the devices of a round."""
        self.extremes.see_columns(row_type, columns)
        if row_type is Event:
            self.events[columns["event"]] += len(columns["device"])
        elif row_type is DeviceRound:
            ends_s = [
                max(end_s for end_s in ends if end_s is not None)
                for ends in zip(*(columns[f"{activity}_end_s"] for activity in Activity), strict=True)
            ]
            last = max(range(len(ends_s)), key=ends_s.__getitem__)
            self.timers += columns["outcome"][last] in GIVEN_UP
