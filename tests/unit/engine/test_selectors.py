"""Selectors: who takes part, by hand or by law."""

import math

import numpy as np
import pytest

from edgefl.engine.selectors import Candidates, Selector
from edgefl.engine.selectors.all import All
from edgefl.engine.selectors.best_channel import BestChannel
from edgefl.engine.selectors.round_robin import RoundRobinSelector
from edgefl.engine.selectors.uniform import Uniform
from tests.tools.derived import underived

IDS = [2, 3, 5, 7, 11]
GAINS_DB = np.array([-90.0, -70.0, -110.0, -70.0, -80.0])
DRAWS, SIGMAS = 4000, 4.5
# selector, number asked for, and who takes part in turns 0, 1, 2
CHOICES: list[tuple[Selector, int, list[list[int]]]] = [
    (All(), 5, [IDS] * 3),
    (BestChannel(count=2), 2, [[3, 7]] * 3),  # of equals the first in order of id
    (BestChannel(count=2), 3, [[3, 7, 11]] * 3),  # over-selection asks for more
    (RoundRobinSelector(count=2), 2, [[2, 3], [5, 7], [2, 11]]),
    (
        RoundRobinSelector(count=2),
        3,
        [[2, 3, 5], [5, 7, 11], [2, 3, 11]],
    ),  # a turn goes on by two all the same
]
# selector, number, and the probability of each device to take part
LAWS: list[tuple[Selector, int, list[float]]] = [(Uniform(count=2), 2, [2 / 5] * 5)]


def test_every_selector_has_a_derivation() -> None:
    missing = underived("selectors", (selector for selector, _, _ in CHOICES + LAWS))
    assert not missing, f"say who takes part with these, in CHOICES or LAWS of {__file__}: {missing}"


@pytest.mark.parametrize(("selector", "number", "turns"), CHOICES)
def test_choices_by_hand(selector: Selector, number: int, turns: list[list[int]]) -> None:
    rng = np.random.default_rng(0)
    assert [selector.select(Candidates(IDS, GAINS_DB, turn), number, rng) for turn in range(3)] == turns


@pytest.mark.slow
@pytest.mark.parametrize(("selector", "number", "probabilities"), LAWS)
def test_draws_follow_their_law(selector: Selector, number: int, probabilities: list[float]) -> None:
    rng, hits = np.random.default_rng(5), np.zeros(len(IDS))
    for turn in range(DRAWS):
        hits += np.isin(IDS, selector.select(Candidates(IDS, GAINS_DB, turn), number, rng))
    for share, p in zip(hits / DRAWS, probabilities, strict=True):
        assert abs(share - p) < SIGMAS * math.sqrt(p * (1 - p) / DRAWS)
