"""Refuse parts of a scenario that clash, using the table of needs in `edgefl.scenario.needs_table`.

Components declare their needs and abilities in attributes of their base classes (`Algorithm.uses`, `one_round`,
`Decider.sets`, ...), which a user's subclass inherits. Checks that concern a single section are in that section.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from edgefl.config import registry
from edgefl.engine.selectors import Decider
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.codecs import Sizes, fed_back
from edgefl.scenario.needs_table import ROWS
from edgefl.scenario.sections import ALGORITHMS, Place, Sections


class _Clash(EdgeflError):
    """An error about two parts of a scenario that clash; `code` names the table's row that detects the clash."""

    def __init__(self, message: str, place: Place = (), code: str = "") -> None:
        super().__init__(message, place)
        self.args = (message, place, code)
        self.code = code


def check(sections: Sections, only: Collection[str] = ()) -> None:
    """Refuse parts of a scenario that clash; report the first clash in the table.

    Args:
        only: codes of the table's rows to check; if empty, all rows are checked.
    """
    for (code, place, message), remedy in _clashes(sections, only):
        if ALGORITHMS in remedy:
            remedy = remedy.replace(ALGORITHMS, _fitting(sections))
        raise _Clash(f"{message}: {remedy}", place, code)
    learning = sections.own.learning
    if learning is not None and not only:
        differences = learning.algorithm.sends_differences
        for one in fed_back(learning.uplink_codec, learning.downlink_codec, differences=differences):
            if one.is_silent:
                one.check(Sizes(()))


def _clashes(s: Sections, only: Collection[str] = ()) -> Iterator[tuple[tuple[str, Place, str], str]]:
    """Yield code, place and message of each clash, and the remedy."""
    asked = _asked(s)
    for row in ROWS:
        for who in asked[row.code] if not only or row.code in only else ():
            for place, what, remedy in row.broken(s):
                yield (row.code, place, f"{who} needs {row.needs}, but {what}"), remedy


def _fitting(s: Sections) -> str:
    """Return the names of the shipped algorithms with which only those clashes remain that all algorithms have."""
    learning = s.own.learning
    assert learning is not None
    clashes = {}
    for name in registry.names("algorithms"):
        algorithm = registry.get("algorithms", name)()
        if isinstance(algorithm, Algorithm) and (learning.drift is not None or not algorithm.knows_drift):
            changed = learning.model_copy(update={"algorithm": algorithm})
            clashes[name] = {clash for clash, _ in _clashes(replace(s, own=replace(s.own, learning=changed)))}
    common = set.intersection(*clashes.values())
    names = [name for name, own in clashes.items() if own == common]
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "another algorithm"


def _asked(s: Sections) -> dict[str, list[str]]:
    """Map the code of each need to the names of the scenario's parts that have this need."""
    learning, selector = s.own.learning, s.own.rounds.selector
    overlapping = [s.server] * s.own.rounds.overlap
    tiers = overlapping * (s.own.rounds.overlap and s.own.rounds.server.has_tiers)
    several = ["a scenario with several federations"] * s.several
    cloud = ["a cloud"] * (s.own.cloud is not None)
    sets = isinstance(selector, Decider) and bool(selector.sets & {"shares", "power"})
    deciding = [f"the selector {registry.name_of('selectors', selector)}"] * sets
    asked = {
        "measured_rates": ["radio.measured"] * (s.radio.measured is not None),
        "band_alone": several,
        "dynamic_shares": overlapping + several,
        "unicast": overlapping + several,
        "one_by_one": overlapping,
        "places": overlapping,
        "whole_tiers": tiers,
        "mean_of_models": cloud + tiers,
        "one_model": cloud,
        # the minimum energy is computed for shares that are fixed for a round; if shares change, less may suffice
        "fixed_shares": deciding + ["record.energy_excess"] * s.energy_excess,
        "own_power": deciding,
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
