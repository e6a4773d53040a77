"""Numbers of a scenario that have to fit one another: devices, participants, updates, members of sessions.

Checked when a scenario is read, and for a density again when the devices have been dropped.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from edgefl import registry
from edgefl.engine.selectors import Selector
from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.scenario import Scenario

MIN_UPDATES = ("rounds", "min_updates")


def check_numbers(scenario: "Scenario", devices: int) -> None:
    """Refuse numbers with which no round could be as the scenario wants it.

    Args:
        devices: how many there are.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    where = "devices.count" if scenario.devices.count else "the devices dropped by devices.density_per_km2:"
    populations = scenario.devices.populations
    together = -(-devices // populations)  # in the largest population
    them = f"{where} {devices}" + (f" / {populations} populations" if populations > 1 else "")
    _check_participants(scenario, together, them)
    _check_members(scenario, devices)
    for most, who in _largest_rounds(scenario, together):
        if scenario.rounds.min_updates > most:
            raise EdgeflError(
                f"{scenario.rounds.min_updates} exceeds {most}, {who}: no update would ever be aggregated there;"
                " lower it",
                MIN_UPDATES,
            )


def _check_participants(scenario: "Scenario", devices: int, them: str) -> None:
    selector: Selector = scenario.rounds.selector
    count = getattr(selector, "count", None)
    if count and count > devices:
        raise EdgeflError(
            f"{count} exceeds {them}: a round could never have its participants",
            ("rounds", "selector", "count"),
        )
    factor = scenario.rounds.over_selection
    if factor > 1 and selector.wanted(devices) >= devices:
        name = registry.name_of("selectors", selector)
        raise EdgeflError(
            f"{factor:g} selects nobody more: {name} takes {selector.wanted(devices)} of {devices} devices as it is;"
            " take a selector with a smaller count, or 1",
            ("rounds", "over_selection"),
        )


def _check_members(scenario: "Scenario", devices: int) -> None:
    for number, ids in _members(scenario):
        unknown = [id_ for id_ in sorted(ids) if id_ >= devices]
        if unknown:
            raise EdgeflError(
                f"session {number} names device {unknown[0]}, but there are {devices}, 0 to {devices - 1}",
                ("devices", "churn", "sessions", str(number - 1)),
            )


def _largest_rounds(scenario: "Scenario", devices: int) -> Iterator[tuple[int, str]]:
    """Yield the most updates that can arrive in the rounds of some kind, and of which."""
    selector: Selector = scenario.rounds.selector
    warm_start = scenario.learning.warm_start if scenario.learning else None
    pilots = scenario.learning.pilot_sessions if scenario.learning else 0
    for number, ids in (*_members(scenario), (0, range(devices))):
        present = min(len(ids), devices)
        wanted = selector.wanted(present)
        of = f" of session {number}" if number else ""
        yield wanted, f"the participants of a round{of}"
        if warm_start is not None and warm_start.probes and scenario.sessions.count > pilots:
            most = max(1, round(warm_start.probe_participants * present))
            yield most, f"the participants of a probe round{of}"


def _members(scenario: "Scenario") -> Iterator[tuple[int, list[int]]]:
    """Yield session numbers and the ids of those that may take part in it, where they are listed."""
    listed = getattr(scenario.devices.churn, "sessions", None)
    if listed and scenario.devices.churn.members(1) is not None:
        yield from enumerate(listed[: scenario.sessions.count], start=1)
