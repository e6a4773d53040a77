"""Check that a scenario's numbers of devices, participants, updates and members of sessions are consistent.

The check runs when a scenario is read and, if the number of devices is random, again once this number is drawn.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from edgefl.config import registry
from edgefl.engine.selectors import CountedSelector, Selector
from edgefl.engine.settings import DeviceSettings
from edgefl.errors import EdgeflError
from edgefl.scenario.own_sections import OwnSections


@dataclass(frozen=True)
class Numbers:
    """The sections of a scenario with numbers that must be consistent: `devices`, and a federation's sections."""

    devices: DeviceSettings
    own: OwnSections

    def check(self, devices: int) -> None:
        """Check that the given number of devices permits rounds with the required participants and updates.

        Args:
            devices: how many devices the scenario has.
        """
        where = "devices.count" if self.devices.count else "the number of devices at devices.density_per_km2,"
        populations = self.devices.populations
        together = -(-devices // populations)  # number of devices in the largest population
        them = f"{where} {devices}" + (f" / {populations} populations" if populations > 1 else "")
        self._check_participants(together, them)
        self._check_members(devices)
        self._check_updates(self._largest_rounds(together))

    def check_part(self, devices: int, name: str) -> None:
        """Check that a federation with a given number of devices can have the rounds that the scenario requires."""
        if devices == 0:
            raise EdgeflError(
                f"{name} gets no device: raise its share, or devices.count", ("federations", name)
            )
        self._check_participants(devices, f"the number of devices of {name}, {devices}")
        self._check_updates(self._rounds_of(devices, f" of {name}"))

    def check_server(self, devices: int | None) -> None:
        """Check that a server's buffer, concurrency and count can be reached; `devices` is None if unknown."""
        server, selector = self.own.rounds.server, self.own.rounds.selector
        if isinstance(selector, CountedSelector) and getattr(server, "places", None) is not None:
            raise EdgeflError(
                "rounds.selector.count already sets how many devices work at the same time: leave out one key",
                ("rounds", "server", "concurrency"),
            )
        for key in ("concurrency", "buffer", "count"):
            many = getattr(server, key, None)
            if many is not None and devices is not None and many > devices:
                raise EdgeflError(
                    f"{many} exceeds the number of devices, {devices}: lower it", ("rounds", "server", key)
                )
        buffer = getattr(server, "buffer", None)
        if buffer is not None and self.own.rounds.min_updates > buffer:
            raise EdgeflError(
                f"{self.own.rounds.min_updates} exceeds rounds.server.buffer {buffer}: no model would ever be made;"
                " lower min_updates",
                ("rounds", "min_updates"),
            )

    def _check_updates(self, rounds: Iterator[tuple[int, str]]) -> None:
        updates = self.own.rounds.min_updates
        for most, who in rounds:
            if updates > most:
                raise EdgeflError(
                    f"{updates} exceeds the number of {who}, {most}: no update of such a round could ever "
                    "be aggregated; lower min_updates",
                    ("rounds", "min_updates"),
                )

    def _check_participants(self, devices: int, them: str) -> None:
        selector: Selector = self.own.rounds.selector
        count = getattr(selector, "count", None)
        if count and count > devices:
            raise EdgeflError(
                f"{count} exceeds {them}: no round could ever have so many participants; lower it",
                ("rounds", "selector", "count"),
            )
        factor = self.own.rounds.over_selection
        if factor > 1 and selector.wanted(devices) >= devices:
            name = registry.name_of("selectors", selector)
            raise EdgeflError(
                f"{factor:g} adds no devices: {name} already takes {selector.wanted(devices)} of {devices}; "
                "use a selector with a smaller count, or set over_selection to 1",
                ("rounds", "over_selection"),
            )

    def _check_members(self, devices: int) -> None:
        for number, ids in self._members():
            unknown = [id_ for id_ in sorted(ids) if id_ >= devices]
            if unknown:
                raise EdgeflError(
                    f"session {number} names device {unknown[0]}, but there are {devices} devices, 0 to"
                    f" {devices - 1}: raise devices.count, or leave the device out",
                    ("devices", "churn", "sessions", str(number - 1)),
                )

    def _largest_rounds(self, devices: int) -> Iterator[tuple[int, str]]:
        """Yield the maximum number of updates in a round of each listed session, and of any other session."""
        for number, ids in (*self._members(), (0, range(devices))):
            yield from self._rounds_of(min(len(ids), devices), f" of session {number}" if number else "")

    def _rounds_of(self, present: int, of: str) -> Iterator[tuple[int, str]]:
        """Yield the maximum number of updates in a training round and a probe round of `present` devices."""
        yield self.own.rounds.selector.wanted(present), f"participants of a round{of}"
        warm_start = self.own.learning.warm_start if self.own.learning else None
        pilots = self.own.learning.pilot_sessions if self.own.learning else 0
        if warm_start is not None and warm_start.probes and (self.own.sessions.count or math.inf) > pilots:
            most = max(1, round(warm_start.probe_participants * present))
            yield most, f"participants of a probe round{of}"

    def _members(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each session's number and the ids of its possible members, if churn lists them."""
        listed = getattr(self.devices.churn, "sessions", None)
        if listed and self.devices.churn.members(1) is not None:
            yield from enumerate(listed[: self.own.sessions.count], start=1)
