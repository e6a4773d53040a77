"""What does not go together with several federations: refused when a scenario is read, with the remedy."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edgefl.config import registry
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.selectors import Decider
from edgefl.engine.settings import DeviceSettings, RoundSettings
from edgefl.errors import EdgeflError
from edgefl.scenario.federation_settings import OF_ALL, FederationSettings, check_members


def check(
    federations: Mapping[str, FederationSettings],
    devices: DeviceSettings,
    radio: RadioSettings,
    rounds: RoundSettings,
    cloud: Any,
    energy_excess: bool,
) -> None:
    """Refuse federations that do not make up all devices, and what several of them cannot have.

    Args:
        radio, rounds, cloud: of the scenario.
        energy_excess: whether rounds are compared with their least joules.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    check_members(federations, tuple(devices.classes or ()))
    for place, problem in _problems(radio, cloud, energy_excess):
        raise EdgeflError(problem, place)
    for name, own in federations.items():
        for place, problem in _problems_of(name, own, rounds):
            raise EdgeflError(problem, place)


def _problems(radio: RadioSettings, cloud: Any, energy_excess: bool) -> Iterator[tuple[tuple[str, ...], str]]:
    if cloud is not None:
        yield ("cloud",), "is over the cells of one federation, and here there are several: leave it out"
    if radio.sharing != "dynamic":
        yield (
            ("radio", "sharing"),
            "static shares of the band belong to a round, and rounds of several federations overlap: set sharing:"
            " dynamic",
        )
    if radio.downlink != "unicast":
        yield (
            ("radio", "downlink"),
            "a broadcast takes the whole band, which several federations share: set downlink: unicast",
        )
    if radio.background is not None:
        yield (
            ("radio", "background"),
            "other users have no weight beside federations: leave background out, or give them a federation",
        )
    if energy_excess:
        yield (
            ("record", "energy_excess"),
            "the least joules of a round are for one that has the band alone: leave it out",
        )


def _problems_of(
    name: str, own: FederationSettings, of_scenario: RoundSettings
) -> Iterator[tuple[tuple[str, ...], str]]:
    rounds = own.rounds or of_scenario
    where: Sequence[str] = ("federations", name) if own.rounds is not None else ()
    for key in OF_ALL:
        if getattr(rounds, key) != getattr(of_scenario, key):
            yield (
                ("federations", name, "rounds", key),
                f"is the same for all federations: set rounds.{key} at the top level",
            )
    if isinstance(rounds.selector, Decider):
        chosen = registry.name_of("selectors", rounds.selector)
        yield (
            (*where, "rounds", "selector"),
            f"{chosen} reckons with the whole band, which several federations share: take another selector",
        )
