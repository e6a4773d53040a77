"""What does not go together: one table of what parts of a scenario need, and what keeps them from having it.

Components declare what they need and give on their base classes (`Algorithm.uses`, `one_round`, `Decider.sets`, ...),
so an own subclass inherits it. Checks of one section's own numbers stay in that section.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from edgefl.config import registry
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.selectors import CountedSelector, Decider
from edgefl.engine.servers import OverlappingServer
from edgefl.engine.sessions import SessionPolicy
from edgefl.engine.settings import RoundSettings
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.codecs import Sizes, fed_back
from edgefl.learning.settings import LearningSettings
from edgefl.learning.warm_starts import WarmStart

Place = tuple[str, ...]
Asked = Iterator[str]
Broken = Iterator[tuple[Place, str, str]]

# keys of `rounds` about rounds that follow one another, and what they are where they say nothing
OF_SYNCHRONOUS = {"every_s": None, "pause_s": 0.0, "deadline_s": None, "over_selection": 1.0}
# keys of `learning` that have to be unset for the theorem, and what they do to a local step or to what travels
BEYOND_THEORY = {
    "weight_decay": "adds to each gradient",
    "clip_norm": "shortens gradients",
    "augmentation": "trains on other samples than those of the loss",
    "label_smoothing": "changes the loss",
    "class_weights": "changes the loss",
    "privacy": "clips and noises what devices send",
    "uplink_codec": "sends another change than the one that was trained",
    "downlink_codec": "lets devices begin with another model than the global one",
}


@dataclass(frozen=True)
class Sections:
    """The sections of a scenario, as one federation has them.

    sessions: a policy. energy_excess: whether rounds are compared with their least joules. several: whether other
    federations share the band.
    """

    radio: RadioSettings
    rounds: RoundSettings
    sessions: SessionPolicy
    learning: LearningSettings | None
    cloud: Any = None
    energy_excess: bool = False
    several: bool = False

    @property
    def algorithm(self) -> Algorithm | None:
        """The algorithm, if anything is trained."""
        return None if self.learning is None else self.learning.algorithm

    @property
    def codecs(self) -> list[str]:
        """The keys of `learning` with a codec."""
        return [
            key for key in ("uplink_codec", "downlink_codec") if getattr(self.learning, key, None) is not None
        ]

    @property
    def overlaps(self) -> bool:
        """Whether updates may be stale."""
        return isinstance(self.rounds.server, OverlappingServer)

    @property
    def server(self) -> str:
        """The server in words."""
        return f"the server {registry.name_of('servers', self.rounds.server)}"

    def named(self, kind: str, key: str) -> str:
        """Return the name of a component of `learning`."""
        return registry.name_of(kind, getattr(self.learning, key))


@dataclass(frozen=True)
class Row:
    """One need: its code, who asks for it, in words, what it is, and what keeps them from it.

    broken: yields the place, the words for what is there, and the remedy.
    """

    code: str
    asked: Callable[[Sections], Asked]
    needs: str
    broken: Callable[[Sections], Broken]


class Clash(EdgeflError):
    """An error about two parts of a scenario that do not go together; code: of the row that refuses them."""

    def __init__(self, message: str, place: Place = (), code: str = "") -> None:
        super().__init__(message, place)
        self.args = (message, place, code)
        self.code = code


def check(sections: Sections, only: Collection[str] = ()) -> None:
    """Refuse what does not go together; of several clashes the first in the table is told.

    Args:
        only: codes of the rows to look at; none: all.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    for row in ROWS:
        if only and row.code not in only:
            continue
        for who in row.asked(sections):
            for place, what, remedy in row.broken(sections):
                raise Clash(f"{who} needs {row.needs}, and {what}: {remedy}", place, row.code)
    learning = sections.learning
    if learning is not None and not only:
        differences = learning.algorithm.sends_differences
        for one in fed_back(learning.uplink_codec, learning.downlink_codec, differences=differences):
            if one.is_silent:
                one.check(Sizes(()))


def fitting(suits: Callable[[Algorithm], bool]) -> str:
    """Return the names of the shipped algorithms that suit, as a remedy lists them."""
    made = {name: registry.get("algorithms", name)() for name in registry.names("algorithms")}
    names = [name for name, one in made.items() if isinstance(one, Algorithm) and suits(one)]
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else "".join(names)


def notes(rounds: RoundSettings, sessions: SessionPolicy, learning: LearningSettings | None) -> Iterator[str]:
    """Yield what the account of privacy leaves out."""
    if learning is None or learning.privacy is None or not learning.privacy.noise:
        return
    selector = rounds.selector
    if isinstance(selector, Decider) and (selector.asks_loss or selector.asks_norm):
        name = registry.name_of("selectors", selector)
        yield (
            f"learning.privacy: {name} chooses by what devices report of their data, and these reports have no noise:"
            " epsilon covers neither them nor who takes part"
        )
    if sessions.report_bits:
        name = registry.name_of("sessions", sessions)
        yield (
            f"learning.privacy: {name} sessions end by losses that devices report without noise: epsilon does not"
            " cover them"
        )


# ---- who asks, in words


def _overlapping(s: Sections) -> Asked:
    if s.overlaps:
        yield s.server


def _sharing_band(s: Sections) -> Asked:
    if s.several:
        yield "a scenario with several federations"


def _rounds_that_overlap(s: Sections) -> Asked:
    yield from _overlapping(s)
    yield from _sharing_band(s)


def _own_models(s: Sections) -> Asked:
    yield from _rounds_that_overlap(s)
    if "downlink_codec" in s.codecs:
        yield "learning.downlink_codec"


def _setting_shares(s: Sections) -> Asked:
    decider = s.rounds.selector
    if isinstance(decider, Decider) and decider.sets & {"shares", "power"}:
        yield f"the selector {registry.name_of('selectors', decider)}"


def _averaging(s: Sections) -> Asked:
    if s.cloud is not None:
        yield "a cloud"
    if s.overlaps and s.rounds.server.has_tiers:
        yield s.server


def _cloud(s: Sections) -> Asked:
    if s.cloud is not None:
        yield "a cloud"


def _tiers(s: Sections) -> Asked:
    if s.overlaps and s.rounds.server.has_tiers:
        yield s.server


def _as_sent(s: Sections) -> Asked:
    if s.algorithm is not None and s.algorithm.as_sent:
        yield s.named("algorithms", "algorithm")


def _private(s: Sections) -> Asked:
    if s.learning is not None and s.learning.privacy is not None:
        yield "learning.privacy"


def _noise_of_server(s: Sections) -> Asked:
    if s.learning is not None and s.learning.privacy is not None and s.learning.privacy.where == "server":
        yield "learning.privacy with where: server"


def _theory(s: Sections) -> Asked:
    if s.learning is not None and s.learning.theory is not None:
        yield "learning.theory"


def _common_start(s: Sections) -> Asked:
    if s.algorithm is not None and s.algorithm.one_round:
        yield s.named("algorithms", "algorithm")


def _coding(s: Sections) -> Asked:
    yield from (f"learning.{key}" for key in s.codecs)


def _coding_down(s: Sections) -> Asked:
    yield from (f"learning.{key}" for key in s.codecs if key == "downlink_codec")


def _sums_of_gradients(s: Sections) -> Asked:
    if s.algorithm is not None and s.algorithm.needs_sgd():
        yield s.named("algorithms", "algorithm")


def _personal(s: Sections) -> Asked:
    if s.algorithm is not None and s.algorithm.trains_personal:
        yield s.named("algorithms", "algorithm")


def _epochs(s: Sections) -> Asked:
    if s.learning is not None and s.learning.early_stopping:
        yield "learning.early_stopping"
    elif s.algorithm is not None and s.algorithm.keeps_apart():
        yield s.named("algorithms", "algorithm")


def _metrics(s: Sections) -> Asked:
    if s.learning is not None and s.learning.metrics:
        yield "learning.metrics"


# ---- what keeps them from it: place, words, remedy


def _static(s: Sections) -> Broken:
    if s.radio.sharing != "dynamic":
        yield ("radio", "sharing"), "static shares belong to a round", "set sharing: dynamic"


def _dynamic(s: Sections) -> Broken:
    if s.radio.sharing != "static":
        yield ("radio", "sharing"), "here they change", "set sharing: static"


def _broadcast(s: Sections) -> Broken:
    if s.radio.downlink != "unicast":
        yield ("radio", "downlink"), "a broadcast sends one thing to all", "set downlink: unicast"


def _power_over_block(s: Sections) -> Broken:
    if s.radio.uplink_rule != "full":
        place = ("radio", "uplink_power_over_share")
        yield place, "here power is spread over the band", "set uplink_power_over_share: full"


def _beside_others(s: Sections) -> Broken:
    if s.cloud is not None:
        yield ("cloud",), "a cloud is over the cells of one federation", "leave it out"
    if s.radio.background is not None:
        yield ("radio", "background"), "other users have no weight", "leave it out, or give them a federation"
    if s.energy_excess:
        yield (
            ("record", "energy_excess"),
            "its least joules are for one that has the band alone",
            "leave it out",
        )
    if isinstance(s.rounds.selector, Decider):
        name = registry.name_of("selectors", s.rounds.selector)
        yield ("rounds", "selector"), f"{name} reckons with the whole band", "take another selector"


def _own_way(s: Sections) -> Broken:
    if s.algorithm is not None and (s.algorithm.uses != "models" or s.algorithm.knows_drift):
        name = s.named("algorithms", "algorithm")
        remedy = f"take {fitting(lambda one: one.uses == 'models')}"
        yield ("learning", "algorithm"), f"{name} makes it in its own way", remedy


def _model_of_each_tier(s: Sections) -> Broken:
    if s.overlaps and s.rounds.server.has_tiers:
        yield ("rounds", "server"), f"{s.server} keeps a model of each tier", "take another, as synchronous"


def _of_single_rounds(s: Sections) -> Broken:
    for key, default in OF_SYNCHRONOUS.items():
        if getattr(s.rounds, key) != default:
            yield ("rounds", key), "this key is about rounds that follow one another", "leave it out"


def _choosing_sets(s: Sections) -> Broken:
    if not s.rounds.selector.fills_places:
        name = registry.name_of("selectors", s.rounds.selector)
        remedy = "take a selector with a count (an own one extends edgefl.engine.selectors.CountedSelector), or all"
        yield ("rounds", "selector"), f"{name} chooses whole rounds", remedy


def _counting(s: Sections) -> Broken:
    if isinstance(s.rounds.selector, CountedSelector):
        name = registry.name_of("selectors", s.rounds.selector)
        yield ("rounds", "selector"), f"{name} takes a count of them", "take the selector all"


def _weighing(s: Sections) -> Broken:
    if s.overlaps and not s.rounds.server.learning.as_sent:
        remedy = "set staleness: constant, and leave server_lr, divisor and base as they are (fedbuff or"
        yield ("rounds", "server"), f"{s.server} weighs them", f"{remedy} semi_synchronous)"


def _stale_start(s: Sections) -> Broken:
    if s.overlaps:
        remedy = f"take {fitting(lambda one: not one.one_round)}, or rounds.server: synchronous"
        yield ("learning", "algorithm"), f"with {s.server} they are stale", remedy


def _stale_terms(s: Sections) -> Broken:
    if s.overlaps:
        yield ("learning", "theory"), f"with {s.server} they are stale", "leave it out"


def _more_than_a_change(s: Sections) -> Broken:
    learning, algorithm = s.learning, s.algorithm
    assert learning is not None
    assert algorithm is not None
    if _sends_more(algorithm):
        name = s.named("algorithms", "algorithm")
        remedy = f"take {fitting(lambda one: not _sends_more(one))}"
        yield ("learning", "privacy"), f"with {name} more leaves a device", remedy
    if learning.warm_start.probes:
        name = s.named("warm_starts", "warm_start")
        yield ("learning", "privacy"), f"the warm start {name} has probes and reports", "take previous"


def _sends_more(algorithm: Algorithm) -> bool:
    return algorithm.vectors_up != 1 or algorithm.changes_upload() or algorithm.chooses_model


def _of_single_updates(s: Sections) -> Broken:
    if s.algorithm is not None and s.algorithm.uses == "updates":
        name = s.named("algorithms", "algorithm")
        remedy = f"set privacy.where: device, or take {fitting(lambda one: one.uses != 'updates')}"
        yield ("learning", "privacy"), f"{name} makes its model of single updates", remedy
    if s.overlaps:
        remedy = "set privacy.where: device, or rounds.server: synchronous"
        yield ("learning", "privacy"), f"with {s.server} an update counts by its staleness", remedy


def _beyond_theory(s: Sections) -> Broken:
    learning = s.learning
    assert learning is not None
    or_else = "or leave learning.theory out"
    for key, kind, plain in (("algorithm", "algorithms", "fedavg"), ("optimiser", "optimisers", "sgd")):
        if (name := s.named(kind, key)) != plain:
            yield ("learning", key), f"{name} is not {plain}", f"set {plain}, {or_else}"
    if learning.momentum:
        what = f"steps have momentum {learning.momentum:g}"
        yield ("learning", "momentum"), what, f"set 0, {or_else}"
    if type(learning.warm_start).anchor is not WarmStart.anchor:
        what = f"{s.named('warm_starts', 'warm_start')} adds to the local loss"
        yield ("learning", "warm_start"), what, f"set previous, average or similarity, {or_else}"
    for key, what in BEYOND_THEORY.items():
        if getattr(learning, key):
            yield ("learning", key), f"it {what}", f"leave it out, {or_else}"


def _nothing_sent(s: Sections) -> Broken:
    if s.algorithm is not None and not s.algorithm.vectors_up:
        name = s.named("algorithms", "algorithm")
        yield ("learning", s.codecs[0]), f"with {name} nothing travels that could be coded", "leave it out"


def _several_received(s: Sections) -> Broken:
    if s.algorithm is not None and s.algorithm.chooses_model:
        name = s.named("algorithms", "algorithm")
        yield ("learning", "downlink_codec"), f"with {name} a device receives several", "leave it out"


def _no_sums(s: Sections) -> Broken:
    learning = s.learning
    assert learning is not None
    fits_any = f"take {fitting(lambda one: not one.needs_sgd())}"
    if learning.optimiser.weights(1, learning.momentum) is None:
        name = s.named("optimisers", "optimiser")
        yield ("learning", "optimiser"), f"{name}'s are not", f"choose optimiser sgd, or {fits_any}"
    yield from _state_kept(s)


def _state_kept(s: Sections) -> Broken:
    if s.learning is not None and s.learning.optimiser.state != "fresh":
        what = "a state that is kept brings those of earlier rounds along"
        yield ("learning", "optimiser"), what, "leave optimiser.state fresh"


def _by_steps(s: Sections) -> Broken:
    if s.learning is not None and s.learning.epochs is None:
        remedy = "give epochs, the most that a device does, or switch it off (flash: validation: 0)"
        yield ("learning", "epochs"), "there are none to end training after", remedy


def _several_models(s: Sections) -> Broken:
    learning, algorithm = s.learning, s.algorithm
    assert learning is not None
    assert algorithm is not None
    place = ("learning", "metrics")
    if learning.tested_on == "devices":
        yield place, "tested_on is devices", "leave metrics out, or set tested_on: labels"
    if learning.drift is not None:
        yield place, "a drift changes the data", "leave metrics out"
    if algorithm.chooses_model or algorithm.knows_drift or not algorithm.vectors_up:
        yield place, f"{s.named('algorithms', 'algorithm')} serves several", "leave metrics out"


ROWS = (
    Row("band_alone", _sharing_band, "what several can share", _beside_others),
    Row("dynamic_shares", _rounds_that_overlap, "shares of the band at any time", _static),
    Row("unicast", _own_models, "models of each device's own", _broadcast),
    Row("one_by_one", _overlapping, "rounds that need not wait", _of_single_rounds),
    Row("places", _overlapping, "single places to be filled", _choosing_sets),
    Row("whole_tiers", _tiers, "all devices of a tier at once", _counting),
    Row("common_start", _common_start, "updates that all began from the same model", _stale_start),
    Row("as_sent", _as_sent, "updates that weigh alike whatever their staleness", _weighing),
    Row("mean_of_models", _averaging, "a model that is the mean of its devices'", _own_way),
    Row("one_model", _cloud, "one model of each cell", _model_of_each_tier),
    Row("rounds_of_theory", _theory, "rounds that all begin together", _stale_terms),
    Row("fixed_shares", _setting_shares, "shares and powers that hold for a round", _dynamic),
    Row("own_power", _setting_shares, "power that goes into a device's share", _power_over_block),
    Row("one_change", _private, "that one clipped change leaves a device, and no more", _more_than_a_change),
    Row("mean_of_updates", _noise_of_server, "an algorithm that knows the mean alone", _of_single_updates),
    Row("theorem", _theory, "plain SGD and FedAvg, of which its theorem is", _beyond_theory),
    Row("something_sent", _coding, "a change to code", _nothing_sent),
    Row("one_received", _coding_down, "one model that a device had before", _several_received),
    Row(
        "sums_of_gradients", _sums_of_gradients, "changes that are sums of a round's own gradients", _no_sums
    ),
    Row("fresh_state", _personal, "an optimiser that begins anew for its second model", _state_kept),
    Row("epochs", _epochs, "epochs", _by_steps),
    Row("one_tested", _metrics, "one global model, tested on the labels' data", _several_models),
)
