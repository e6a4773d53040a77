"""Compare the participants that selectors choose with hand derivations, or with a probability law."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from edgefl.engine.selectors import Candidates, Decider, Selector
from edgefl.engine.selectors.all import All
from edgefl.engine.selectors.best_channel import BestChannel
from edgefl.engine.selectors.best_norm import BestNorm
from edgefl.engine.selectors.energy_aware import EnergyAware
from edgefl.engine.selectors.fedcs import FedCs
from edgefl.engine.selectors.power_of_choice import PowerOfChoice
from edgefl.engine.selectors.proportional_fair import ProportionalFair
from edgefl.engine.selectors.refl import Refl
from edgefl.engine.selectors.round_robin import RoundRobinSelector
from edgefl.engine.selectors.uniform import Uniform
from edgefl.testing.decider_contract import candidates_of
from tests.tools.constants import with_constants
from tests.tools.derived import underived

IDS = [2, 3, 5, 7, 11]
GAINS_DB = np.array([-90.0, -70.0, -110.0, -70.0, -80.0])
LAST = np.array([3.0, 4.0, 5.0, 2.0, 0.0])
DRAWS, SIGMAS = 4000, 4.5
FEDCS = {
    "up_alone_s": np.full(5, 0.1),
    "down_s": np.zeros(5),
    "compute_s": np.array([0.1, 0.5, 0.2, 0.1, 0.9]),
}
JOULES = {
    "down_j": np.zeros(5),
    "up_j": np.zeros(5),
    "compute_j": np.array([1.0, 2.0, 1.5, 1.0, 1.0]),
    "charge_j": np.array([1.5, math.inf, math.inf, 10.0, 100.0]),
}
# selector, requested number of devices, and the participants in turns 0, 1 and 2
CHOICES: list[tuple[Selector, int, list[list[int]]]] = [
    (All(), 5, [IDS] * 3),
    (BestChannel(count=2), 2, [[3, 7]] * 3),  # ties go to the lowest id
    (BestChannel(count=2), 3, [[3, 7, 11]] * 3),  # over-selection requests more than count
    (RoundRobinSelector(count=2), 2, [[7, 11]] * 3),  # those with the smallest numbers in LAST
    (RoundRobinSelector(count=2), 3, [[2, 7, 11]] * 3),  # over-selection requests more than count
]
# selector, requested number of devices, and each device's probability to take part
LAWS: list[tuple[Selector, int, list[float]]] = [(Uniform(count=2), 2, [2 / 5] * 5)]


NAN = math.nan
LOST = np.array([0.0, 2.0, 1.0, 3.0, 1.0])
SNR = np.array([10.0, 40.0, 20.0, 5.0, 80.0])
# decider, its inputs besides those of `candidates_of`, requested number, participants
DECIDED: list[tuple[Decider, dict[str, Any], int, list[int]]] = [
    # alone in the band an upload takes 0.1 s. Devices are ready after 0.1, 0.5, 0.2, 0.1 and 0.9 s: device 2 ends at
    # 0.2 s, 5 at 0.3 s (so would 7), 7 at 0.4 s, 3 at 0.6 s, 11 at 1.0 s
    (FedCs(deadline_s=0.6), FEDCS, 5, [2, 3, 5, 7]),
    (FedCs(deadline_s=0.59), FEDCS, 5, [2, 5, 7]),
    (FedCs(deadline_s=0.59, count=2), FEDCS, 2, [2, 5]),
    (FedCs(deadline_s=0.01), FEDCS, 5, [2]),  # no device meets the deadline: the fastest takes part
    # with radios for half of the band, two uploads of 0.1 s fit side by side: 2 and 7 end at 0.2 s, 5 at 0.3 s
    (FedCs(deadline_s=0.31), FEDCS | {"widest": np.full(5, 0.5)}, 5, [2, 5, 7]),
    (FedCs(deadline_s=0.29), FEDCS | {"widest": np.full(5, 0.5)}, 5, [2, 7]),
    # all devices are candidates, and those with the highest losses are chosen; an unreported loss counts as infinite
    (PowerOfChoice(count=2, d=5), {"loss": np.array([1.0, 3.0, NAN, 2.0, 0.5])}, 2, [3, 5]),
    (BestNorm(count=2), {"norm": np.array([1.0, 3.0, NAN, 2.0, 0.5])}, 2, [3, 5]),
    # an update of device 5 was lost, so it has the mean of the reports, 1.625; device 2 has never taken part
    (PowerOfChoice(count=2, d=5), {"loss": np.array([NAN, 3.0, NAN, 1.5, 0.375]), "taken": LOST}, 2, [2, 3]),
    (
        PowerOfChoice(count=3, d=5),
        {"loss": np.array([NAN, 3.0, NAN, 1.5, 0.375]), "taken": LOST},
        3,
        [2, 3, 5],
    ),
    (BestNorm(count=3), {"norm": np.array([NAN, 3.0, NAN, 1.7, 0.175]), "taken": LOST}, 3, [2, 3, 7]),
    # order: devices on mains, by energy; devices with a battery, by share of the charge; devices below the reserve
    (EnergyAware(count=1), JOULES, 1, [5]),
    (EnergyAware(count=2), JOULES, 2, [3, 5]),
    (EnergyAware(count=4), JOULES, 4, [3, 5, 7, 11]),
    (EnergyAware(count=3), JOULES, 3, [3, 5, 11]),
    # with its tail, device 11 needs 61 J, so its 100 J are below the 122 J that the reserve requires
    (EnergyAware(count=3), {**JOULES, "tail_j": np.array([0.0, 0.0, 0.0, 0.0, 60.0])}, 3, [3, 5, 7]),
    # the device whose fading exceeds its mean the most is chosen
    (
        with_constants(ProportionalFair, past=0.5)(count=1),
        {"snr_up": SNR, "fading": np.array([1.0, 1.0, 1.1, 1.0, 1.0])},
        1,
        [5],
    ),
    (Refl(count=5), {}, 5, IDS),
]


def test_every_selector_has_a_derivation() -> None:
    derived = [selector for selector, *_ in (*CHOICES, *LAWS, *DECIDED)]
    # test_allocation.py and test_lost_uploads.py derive these selectors
    elsewhere = {"fedl", "hungarian", "least_energy", "least_time"}
    missing = set(underived("selectors", derived)) - elsewhere - {"oort"}  # decisions/test_oort.py
    assert not missing, f"add the participants of these, in CHOICES, LAWS or DECIDED of {__file__}: {missing}"


@pytest.mark.parametrize(("decider", "told", "number", "ids"), DECIDED)
def test_decisions_by_hand(decider: Decider, told: dict[str, Any], number: int, ids: list[int]) -> None:
    candidates = candidates_of(np.random.default_rng(1), IDS, 0, **told)
    assert decider.decide(candidates, number, np.random.default_rng(2), {}).ids == ids


def test_refl_takes_those_who_are_seldom_there() -> None:
    decider, memory, rng = Refl(count=1), {}, np.random.default_rng(0)
    for turn in range(4):
        decision = decider.decide(candidates_of(rng, [2, 3], turn), 1, rng, memory)
        memory = decision.memory
    assert decider.decide(candidates_of(rng, [2, 3, 5], 4), 1, rng, memory).ids == [5]


def test_proportional_fair_compares_with_the_mean() -> None:
    decider, rng = with_constants(ProportionalFair, past=0.5)(count=1), np.random.default_rng(0)
    still = {"fading": np.ones(2)}
    first = candidates_of(rng, [2, 3], 0, snr_up=np.array([160.0, 10.0]), **still)
    memory = decider.decide(first, 1, rng, {}).memory
    # now the means are 100 and 12.5, so the ratios are 40 / 100 and 15 / 12.5
    then = candidates_of(rng, [2, 3], 1, snr_up=np.array([40.0, 15.0]), **still)
    assert decider.decide(then, 1, rng, memory).ids == [3]


def test_proportional_fair_draws_among_equal_ratios() -> None:
    """Without fading all ratios are 1, so four of twelve devices are drawn at random in each of 900 rounds."""
    decider, rng, ids, rounds = ProportionalFair(count=4), np.random.default_rng(0), list(range(12)), 900
    memory, hits = {}, np.zeros(12)
    snr = rng.lognormal(0.0, 2.0, 12)
    for turn in range(rounds):
        told = candidates_of(rng, ids, turn, snr_up=snr, static=np.ones(12, dtype=bool))
        decision = decider.decide(told, 4, rng, memory)
        memory = dict(decision.memory)
        hits[list(decision.ids)] += 1
    assert np.abs(hits - rounds / 3).max() < SIGMAS * math.sqrt(rounds * 2 / 9)


def test_power_of_choice_with_as_many_draws_by_data_size() -> None:
    """With d = count = 1, devices are drawn in proportion to their data (chi-square, four degrees of freedom)."""
    held, decider = np.array([10.0, 20.0, 30.0, 40.0, 100.0]), PowerOfChoice(count=1, d=1)
    candidates = candidates_of(np.random.default_rng(1), IDS, 0, held=held, loss=np.arange(5.0))
    rng, hits = np.random.default_rng(7), dict.fromkeys(IDS, 0)
    for _ in range(DRAWS):
        hits[decider.decide(candidates, 1, rng, {}).ids[0]] += 1
    expected = DRAWS * held / held.sum()
    chi_square = ((np.array(list(hits.values())) - expected) ** 2 / expected).sum()
    assert chi_square < stats.chi2.ppf(1 - 1e-5, df=4)


@pytest.mark.parametrize(("selector", "number", "turns"), CHOICES)
def test_choices_by_hand(selector: Selector, number: int, turns: list[list[int]]) -> None:
    rng = np.random.default_rng(0)
    assert [selector.select(Candidates(IDS, GAINS_DB, turn, LAST), number, rng) for turn in range(3)] == turns


@pytest.mark.parametrize(("selector", "number", "probabilities"), LAWS)
def test_draws_follow_their_law(selector: Selector, number: int, probabilities: list[float]) -> None:
    rng, hits = np.random.default_rng(5), np.zeros(len(IDS))
    for turn in range(DRAWS):
        hits += np.isin(IDS, selector.select(Candidates(IDS, GAINS_DB, turn, LAST), number, rng))
    for share, p in zip(hits / DRAWS, probabilities, strict=True):
        assert abs(share - p) < SIGMAS * math.sqrt(p * (1 - p) / DRAWS)
