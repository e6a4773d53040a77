"""What does not go together with rounds that overlap: refused when a scenario is read, with the remedy."""

from collections.abc import Iterator

from edgefl.config import registry
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.selectors import CountedSelector
from edgefl.engine.selectors.all import All
from edgefl.engine.servers import OverlappingServer
from edgefl.engine.servers.tiers import Tiers
from edgefl.engine.settings import RoundSettings
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.settings import LearningSettings

# keys of `rounds` about rounds that follow one another, and what they are where they say nothing
OF_SYNCHRONOUS = {"every_s": None, "pause_s": 0.0, "deadline_s": None, "over_selection": 1.0}


def check(
    rounds: RoundSettings, radio: RadioSettings, learning: LearningSettings | None, devices: int | None
) -> None:
    """Refuse a scenario whose rounds overlap, and that asks for something which needs rounds one after the other.

    Args:
        devices: how many there are; None: not known yet.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    server = rounds.server
    if isinstance(server, OverlappingServer):
        for place, problem in _problems(server, rounds, radio, learning, devices):
            raise EdgeflError(problem, place)


def _problems(
    server: OverlappingServer,
    rounds: RoundSettings,
    radio: RadioSettings,
    learning: LearningSettings | None,
    devices: int | None,
) -> Iterator[tuple[tuple[str, ...], str]]:
    name = registry.name_of("servers", server)
    if radio.sharing != "dynamic":
        yield (
            ("radio", "sharing"),
            f"with the server {name} devices begin while others transfer, and static shares of the band belong to a"
            " round: set sharing: dynamic",
        )
    if radio.downlink != "unicast":
        yield (
            ("radio", "downlink"),
            f"with the server {name} devices receive models of different versions: set downlink: unicast",
        )
    for key, default in OF_SYNCHRONOUS.items():
        if getattr(rounds, key) != default:
            yield (
                ("rounds", key),
                f"is about rounds that follow one another, and with the server {name} they overlap: leave it out",
            )
    yield from _counts(name, server, rounds, devices)
    if learning is None:
        return
    algorithm = registry.name_of("algorithms", learning.algorithm)
    if learning.algorithm.one_round:
        yield (
            ("learning", "algorithm"),
            f"{algorithm} needs updates that all began from the same model, and with the server {name} they are"
            " stale: take another, such as fedavg, fedprox or fedadam, or rounds.server: synchronous",
        )
    if learning.algorithm.as_sent and not _takes_as_sent(server):
        yield (
            ("rounds", "server"),
            f"{algorithm} counts on updates that weigh alike whatever their staleness: set staleness: constant, and"
            " leave server_lr, divisor and base as they are (fedbuff or semi_synchronous)",
        )
    if isinstance(server, Tiers) and not is_a_mean(learning.algorithm):
        yield (
            ("learning", "algorithm"),
            f"{algorithm} makes a model in its own way, and with the server tiers it is the mean of the tiers' means:"
            " take fedavg, fedprox or moon",
        )
    if learning.theory is not None:
        yield (
            ("learning", "theory"),
            f"its terms are those of rounds that all begin together: leave it out with the server {name}",
        )


def _counts(
    name: str, server: OverlappingServer, rounds: RoundSettings, devices: int | None
) -> Iterator[tuple[tuple[str, ...], str]]:
    counted = isinstance(rounds.selector, CountedSelector)
    if not counted and not isinstance(rounds.selector, All):
        yield (
            ("rounds", "selector"),
            f"the server {name} fills single places: take a selector with a count (one of your own extends"
            " edgefl.engine.selectors.CountedSelector), or all",
        )
    if counted and isinstance(server, Tiers):
        yield (
            ("rounds", "selector"),
            "with the server tiers all devices of a tier begin together: take the selector all",
        )
    if counted and server.places is not None:
        yield (
            ("rounds", "server", "concurrency"),
            "rounds.selector.count says how many devices work at the same time: leave one of them out",
        )
    buffer = getattr(server, "buffer", None)
    for key in ("concurrency", "buffer", "count"):
        many = getattr(server, key, None)
        if many is not None and devices is not None and many > devices:
            yield ("rounds", "server", key), f"{many} exceeds the number of devices, {devices}: lower it"
    if buffer is not None and rounds.min_updates > buffer:
        yield (
            ("rounds", "min_updates"),
            f"{rounds.min_updates} exceeds rounds.server.buffer {buffer}: no model would ever be made; lower it",
        )


def _takes_as_sent(server: OverlappingServer) -> bool:
    """Return whether updates count as they were sent, in their mean by data."""
    how = server.learning
    return (how.law, how.divisor, how.base, how.scale) == ("constant", "buffer", "received", 1.0)


def is_a_mean(algorithm: Algorithm) -> bool:
    """Return whether an algorithm sends the model as it is and makes the mean of what comes back."""
    cls = type(algorithm)
    return cls.aggregate is Algorithm.aggregate and cls.receive is Algorithm.receive and not cls.knows_drift
