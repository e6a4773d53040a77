"""The sections of a scenario that apply to one federation: its own sections, and those shared by all federations."""

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from edgefl.engine.federation.cloud import CloudSettings
from edgefl.engine.federation.deciding.choice import Reports
from edgefl.engine.federation.ending import StopSettings
from edgefl.engine.sessions import BoundedPolicy, SessionPolicy
from edgefl.engine.sessions.schedule import Schedule
from edgefl.engine.settings import RoundSettings, WorkloadSettings
from edgefl.errors import moved
from edgefl.learning.settings import LearningSettings
from edgefl.scenario.federation_settings import OWN_SECTIONS, FederationSettings


@dataclass(frozen=True)
class OwnSections:
    """The task, sessions and rounds of one federation, which shares the band with the other federations.

    Attributes:
        name: the federation's name; empty for a single federation.
        duration_s: the scenario's duration.
        settings: the federation's devices and weight, or None for a single federation, which has all devices.
    """

    name: str
    duration_s: float | None
    sessions: SessionPolicy
    rounds: RoundSettings
    learning: LearningSettings | None
    workload: WorkloadSettings | None
    cloud: CloudSettings | None
    stop: StopSettings | None
    settings: FederationSettings | None = None

    @property
    def reports(self) -> Reports:
        """The reports that each participant sends with its update."""
        return Reports.of(self.rounds.selector, self.sessions)

    @property
    def latest_end_s(self) -> float:
        """The latest simulated time at which the run ends, by its duration or last session; inf if unbounded."""
        until_s, end_s = self.duration_s or math.inf, 0.0
        for _ in range(self.sessions.count or 0):
            end_s = self.sessions.until_s(end_s)
            if end_s >= until_s:
                break
        return min(until_s, end_s if self.sessions.count else math.inf)

    @property
    def known_end_s(self) -> float:
        """The latest end if it is bounded; otherwise a time before which the run cannot complete, 0 if unknown.

        The k-th round after the first round begins at k x every_s or later.
        """
        latest_s, policy, every_s = self.latest_end_s, self.sessions, self.rounds.every_s
        if latest_s < math.inf:
            return latest_s
        least = {Schedule: "rounds", BoundedPolicy: "min_rounds"}
        rounds = next((getattr(policy, key) for kind, key in least.items() if isinstance(policy, kind)), 0)
        if self.stop is not None or every_s is None:
            return 0.0
        return max(0, rounds * (policy.count or 0) - 1) * every_s

    def place(self, section: str, *keys: str) -> tuple[str, ...]:
        """Return the place of a section, which is below the federation if the federation has its own section."""
        has_own = section in OWN_SECTIONS and getattr(self.settings, section, None) is not None
        return (*(("federations", self.name) if has_own else ()), section, *keys)

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Make errors raised in a `with` block name the federation if the faulty section is the federation's own."""
        with ExitStack() as places:
            for section in OWN_SECTIONS:
                places.enter_context(moved((section,), self.place(section)))
            yield

    def named(self, notes: Iterable[str]) -> Iterator[str]:
        """Yield notes, with the federation's name in front if the scenario has several federations."""
        yield from (f"federation {self.name}: {note}" if self.name else note for note in notes)
