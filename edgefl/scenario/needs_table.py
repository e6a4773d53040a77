"""The table of needs that parts of a scenario may have, with the settings that conflict with each need.

Components declare their needs and abilities in attributes of their base classes (`Algorithm.uses`, `one_round`,
`Decider.sets`, ...), which a user's subclass inherits unless it overrides the method that they describe.
"""

from edgefl.config import registry
from edgefl.engine.selectors import CountedSelector, Decider
from edgefl.learning.codecs import Sizes, fed_back
from edgefl.learning.kernels import beyond_numba
from edgefl.scenario.measured_links import beside_measured_rates
from edgefl.scenario.sections import ALGORITHMS, Broken, Row, Sections

# keys of `rounds` that only apply if rounds do not overlap, and the values at which they have no effect
OF_SYNCHRONOUS = {"every_s": None, "pause_s": 0.0, "deadline_s": None, "over_selection": 1.0}


def _if(broken: bool, place: str, what: str, remedy: str) -> Broken:
    """Yield a conflict's place, description and remedy if `broken` is true."""
    if broken:
        yield tuple(place.split(".")), what, remedy


def _beside_others(s: Sections) -> Broken:
    if s.own.cloud is not None:
        yield ("cloud",), "a cloud joins the cells of one federation", "leave cloud out"
    if s.radio.background is not None:
        remedy = "leave background out, or make its users a federation"
        yield ("radio", "background"), "background traffic has no weight in the sharing of the band", remedy
    if s.energy_excess:
        what = "the minimum energy assumes a federation that has the band to itself"
        yield ("record", "energy_excess"), what, "leave this key out"
    if isinstance(s.own.rounds.selector, Decider):
        name = registry.name_of("selectors", s.own.rounds.selector)
        yield ("rounds", "selector"), f"{name} assumes the whole band", "use another selector"


def _own_way(s: Sections) -> Broken:
    if s.algorithm is not None and (s.algorithm.uses != "models" or s.algorithm.knows_drift):
        what = f"{s.named('algorithm')} computes its model differently"
        yield ("learning", "algorithm"), what, s.use_others


def _of_single_rounds(s: Sections) -> Broken:
    for key, default in OF_SYNCHRONOUS.items():
        if getattr(s.own.rounds, key) != default:
            yield ("rounds", key), "this key only applies if rounds do not overlap", "leave it out"


def _more_than_a_change(s: Sections) -> Broken:
    learning, algorithm = s.own.learning, s.algorithm
    assert learning is not None
    assert algorithm is not None
    if algorithm.vectors_up != 1 or algorithm.changes_upload() or algorithm.chooses_model:
        sent = "more than that" if algorithm.vectors_up else "no update"
        what = f"with {s.named('algorithm')} a device sends {sent}"
        yield ("learning", "privacy"), what, f"use {ALGORITHMS}"
    if learning.warm_start.probes:
        name = s.named("warm_start")
        yield ("learning", "privacy"), f"warm start {name} adds probes and reports", "use previous"


def _other_than_clipped_mean(s: Sections) -> Broken:
    learning, place, device = s.own.learning, "learning.privacy", "set privacy.where: device, or"
    if s.algorithm is not None and s.algorithm.uses == "updates":
        what = f"{s.named('algorithm')} uses individual updates"
        yield ("learning", "privacy"), what, f"{device} {s.use_others}"
    what = f"{s.server} weights each update by its staleness"
    yield from _if(s.own.rounds.overlap, place, what, f"{device} rounds.server: synchronous")
    what = f"{s.server} weights each update by its probability of arrival"
    yield from _if(getattr(s.own.rounds.server, "unbiased", False), place, what, f"{device} unbiased: false")
    coded = bool(learning and learning.privacy and learning.privacy.noise and learning.uplink_codec)
    what = "an update that learning.uplink_codec has changed may be longer than clip_norm"
    yield from _if(coded, place, what, f"{device} leave uplink_codec out")


def _beyond_theory(s: Sections) -> Broken:
    for key, what, remedy in s.own.learning.beyond_theory() if s.own.learning else ():
        yield ("learning", *key.split(".")), what, f"{remedy}, or leave learning.theory out"


def _no_sums(s: Sections) -> Broken:
    learning = s.own.learning
    assert learning is not None
    if learning.local.optimiser.weights(1, learning.local.momentum) is None:
        name = s.named("local.optimiser")
        remedy = f"choose optimiser sgd, or use {ALGORITHMS}"
        yield ("learning", "local", "optimiser"), f"the changes of {name} are not such sums", remedy
    yield from _state_kept(s)


def _state_kept(s: Sections) -> Broken:
    if s.own.learning is not None and s.own.learning.local.optimiser.state != "fresh":
        what = "the kept state contains gradients of earlier rounds"
        yield ("learning", "local", "optimiser"), what, "set optimiser.state: fresh"


def _other_steps(s: Sections) -> Broken:
    for key, what, remedy in beyond_numba(s.own.learning) if s.own.learning else ():
        yield ("learning", *key.split(".")), what, f"{remedy}, or set kernels: torch"


def _several_models(s: Sections) -> Broken:
    learning, algorithm = s.own.learning, s.algorithm
    assert learning is not None
    assert algorithm is not None
    place = ("learning", "evaluation", "metrics")
    if learning.evaluation.tested_on == "devices":
        yield place, "tested_on is devices", "leave metrics out, or set tested_on: labels"
    if learning.drift is not None:
        yield place, "drift changes the data", "leave metrics out"
    if algorithm.chooses_model or algorithm.knows_drift or not algorithm.vectors_up:
        yield place, f"{s.named('algorithm')} serves several models", "leave metrics out"


def _no_fixed_shares(s: Sections) -> Broken:
    if s.radio.measured is not None:
        yield ("radio", "measured"), "measured rates have neither", "use another selector"
    if s.radio.sharing != "static":
        yield _of_sharing(
            "static", "with dynamic sharing, shares change", [*_dynamic(s), *s.radio.only_dynamic]
        )


def _no_dynamic_shares(s: Sections) -> Broken:
    if s.radio.sharing != "dynamic":
        yield _of_sharing("dynamic", "static shares are fixed for a whole round", _fixed(s))


def _of_sharing(needed: str, what: str, opposed: list[str]) -> tuple[tuple[str, ...], str, str]:
    """Return a conflict of `radio.sharing`; if other parts need the opposite, setting this key would not help."""
    if opposed:
        other = {"static": "dynamic", "dynamic": "static"}[needed]
        return ("radio", "sharing"), f"{opposed[0]} needs sharing: {other}", "leave one of the two out"
    return ("radio", "sharing"), what, f"set sharing: {needed}"


def _dynamic(s: Sections) -> list[str]:
    """Return the parts that need shares of the band that may change at any time."""
    return [s.server] * s.own.rounds.overlap + ["a scenario with several federations"] * s.several


def _fixed(s: Sections) -> list[str]:
    """Return the parts that need shares and powers that are fixed during a round."""
    # the minimum energy is computed for shares that are fixed for a round; if shares change, less may suffice
    return _deciding(s) + ["record.energy_excess"] * s.energy_excess


def _deciding(s: Sections) -> list[str]:
    selector = s.own.rounds.selector
    sets = isinstance(selector, Decider) and bool(selector.sets & {"shares", "power"})
    return [f"the selector {registry.name_of('selectors', selector)}"] * sets


ROWS = (
    Row("measured_rates", "a radio whose rates and cells are not computed", beside_measured_rates),
    Row("band_alone", "settings that federations can share", _beside_others),
    Row(
        "dynamic_shares",
        "shares of the band that may change at any time",
        _no_dynamic_shares,
    ),
    Row(
        "unicast",
        "a separate model for each device",
        lambda s: _if(
            s.radio.downlink != "unicast",
            "radio.downlink",
            "a broadcast sends the same model to all",
            "set downlink: unicast",
        ),
    ),
    Row("one_by_one", "rounds that do not wait for each other", _of_single_rounds),
    Row(
        "places",
        "a selector that can replace a single device",
        lambda s: _if(
            not s.own.rounds.selector.fills_places,
            "rounds.selector",
            f"{registry.name_of('selectors', s.own.rounds.selector)} selects all devices of a round at once",
            "use the selector all, or one with a count (your own can extend edgefl.engine.selectors.CountedSelector)",
        ),
    ),
    Row(
        "whole_tiers",
        "all devices of a tier at once",
        lambda s: _if(
            isinstance(s.own.rounds.selector, CountedSelector),
            "rounds.selector",
            f"{registry.name_of('selectors', s.own.rounds.selector)} takes only some devices",
            "use the selector all",
        ),
    ),
    Row(
        "common_start",
        "updates that all start from the same model",
        lambda s: _if(
            s.own.rounds.overlap,
            "learning.algorithm",
            f"with {s.server} updates are stale",
            f"use {ALGORITHMS}, or rounds.server: synchronous",
        ),
    ),
    Row(
        "as_sent",
        "updates of equal weight at any staleness",
        lambda s: _if(
            (s.own.rounds.overlap and not s.own.rounds.server.learning.as_sent)
            or getattr(s.own.rounds.server, "unbiased", False),
            "rounds.server",
            f"{s.server} weights updates",
            "set staleness: constant, and leave server_lr, divisor and base as they are (fedbuff, semi_synchronous),"
            " or unbiased: false (synchronous)",
        ),
    ),
    Row("mean_of_models", "a model that is the mean of its devices' models", _own_way),
    Row(
        "one_model",
        "one model per cell",
        lambda s: _if(
            s.own.rounds.overlap and s.own.rounds.server.has_tiers,
            "rounds.server",
            f"{s.server} keeps one model per tier",
            "use another server, such as synchronous",
        ),
    ),
    Row(
        "rounds_of_theory",
        "rounds that all devices begin at the same time",
        lambda s: _if(
            s.own.rounds.overlap, "learning.theory", f"with {s.server} rounds overlap", "leave theory out"
        ),
    ),
    Row("fixed_shares", "shares and powers that are fixed during a round", _no_fixed_shares),
    Row(
        "own_power",
        "power spread over a device's share",
        lambda s: _if(
            s.radio.budget.uplink_rule != "full",
            "radio.budget.uplink_power_over_share",
            "this rule spreads power over the band",
            "set uplink_power_over_share: full",
        ),
    ),
    Row("one_change", "a single clipped update from each device", _more_than_a_change),
    Row("mean_of_updates", "a plain mean of clipped updates", _other_than_clipped_mean),
    Row("theorem", "plain SGD and FedAvg, as its theorem does", _beyond_theory),
    Row(
        "something_sent",
        "a change to encode",
        lambda s: _if(
            s.algorithm is not None and not s.algorithm.vectors_up,
            "learning.downlink_codec"
            if s.own.learning and s.own.learning.uplink_codec is None
            else "learning.uplink_codec",
            f"with {s.named('algorithm')} nothing is sent",
            "leave it out",
        ),
    ),
    Row(
        "one_received",
        "a single model that each device received before",
        lambda s: _if(
            s.algorithm is not None and s.algorithm.chooses_model,
            "learning.downlink_codec",
            f"with {s.named('algorithm')} a device receives several models",
            "leave it out",
        ),
    ),
    Row("plain_steps", "plain SGD of fully connected layers", _other_steps),
    Row("sums_of_gradients", "changes that are sums of a round's own gradients", _no_sums),
    Row("fresh_state", "an optimiser whose state is reset for a device's second model", _state_kept),
    Row(
        "epochs",
        "epochs",
        lambda s: _if(
            s.own.learning is not None and s.own.learning.local.epochs is None,
            "learning.local.epochs",
            "this key is not set",
            "set it to the maximum number of epochs, or do not stop devices early",
        ),
    ),
    Row(
        "one_tested",
        "one global model that is tested on all test samples of a session's labels",
        _several_models,
    ),
)


def asked_by(s: Sections) -> dict[str, list[str]]:
    """Map the code of each need to the names of the scenario's parts that have this need."""
    learning = s.own.learning
    overlapping = [s.server] * s.own.rounds.overlap
    tiers = overlapping * (s.own.rounds.overlap and s.own.rounds.server.has_tiers)
    several = ["a scenario with several federations"] * s.several
    cloud = ["a cloud"] * (s.own.cloud is not None)
    asked = {
        "measured_rates": ["radio.measured"] * (s.radio.measured is not None),
        "band_alone": several,
        "dynamic_shares": _dynamic(s),
        "unicast": overlapping + several,
        "one_by_one": overlapping,
        "places": overlapping,
        "whole_tiers": tiers,
        "mean_of_models": cloud + tiers,
        "one_model": cloud,
        "fixed_shares": _fixed(s),
        "own_power": _deciding(s),
    }
    if learning is None:
        return {row.code: [] for row in ROWS} | asked
    algorithm, privacy = learning.algorithm, learning.privacy
    named = [s.named("algorithm")]
    theory = ["learning.theory"] * (learning.theory is not None)
    up = ["learning.uplink_codec"] * (learning.uplink_codec is not None)
    down = ["learning.downlink_codec"] * (learning.downlink_codec is not None)
    early = ["learning.local.early_stopping"] * (learning.local.early_stopping is not None)
    return asked | {
        "unicast": overlapping + several + down,
        "common_start": named * algorithm.one_round,
        "as_sent": named * algorithm.as_sent,
        "rounds_of_theory": theory,
        "theorem": theory,
        "one_change": ["learning.privacy"] * (privacy is not None),
        "mean_of_updates": ["privacy at the server"] * (privacy is not None and privacy.where == "server"),
        "something_sent": up + down,
        "one_received": down,
        "sums_of_gradients": named * algorithm.needs_sgd(),
        "fresh_state": named * algorithm.trains_personal,
        "epochs": early or named * bool(algorithm.keeps_apart()),
        "plain_steps": ["learning.kernels: numba"] * (learning.kernels == "numba"),
        "one_tested": ["learning.evaluation.metrics"] * bool(learning.evaluation.metrics),
    }


def refuse_silence(s: Sections) -> None:
    """Refuse codecs that send nothing at all.

    Raises:
        EdgeflError: a codec sends nothing.
    """
    learning = s.own.learning
    if learning is not None:
        differences = learning.algorithm.sends_differences
        for one in fed_back(learning.uplink_codec, learning.downlink_codec, differences=differences):
            if one.is_silent:
                one.check(Sizes(()))
