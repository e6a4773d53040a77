"""Test that components in the scripts of papers agree with the authors' code."""

from itertools import permutations

import numpy as np
import pytest
import torch

from edgefl.engine.selectors import Candidates
from edgefl.examples.papers import chen, hierfavg, mcmahan, yang_energy, yang_scheduling
from edgefl.learning.modules.parameters import TensorLayout
from edgefl.learning.partitions import NO_INPUTS
from edgefl.rng import Streams

DISTANCES_M = np.array([40.0, 160.0, 90.0, 220.0, 120.0])
HELD = np.array([100.0, 500.0, 200.0, 400.0, 300.0])
POWER_W, BITS = 0.01, 39760 * 16.0


def five_users() -> Candidates:
    """Return users whose SNR is for full power over three blocks that all have the first block's interference."""
    snr = POWER_W / DISTANCES_M**2 / (3 * chen.INTERFERENCE_W[3][0])
    ids = list(range(len(snr)))
    many = np.ones(len(snr))
    return Candidates(ids, 0 * many, 0, held=HELD, up_bits=BITS * many, snr_up=snr, clock_hz=1e9 * many)


def test_chens_losses_and_proposal_are_those_of_the_file() -> None:
    """Uploads fail with probability q = 1 - exp(-1.08 I d^2 / P), and fast enough users are assigned optimally."""
    of, interference = five_users(), np.array(chen.INTERFERENCE_W[3])
    q = 1 - np.exp(-1.08 * interference * DISTANCES_M[:, None] ** 2 / POWER_W)
    assert 1 - chen.arrives(of, 3) == pytest.approx(q, rel=1e-9)
    rate = 1e6 * np.log2(1 + POWER_W / DISTANCES_M[:, None] ** 2 / interference)
    worth = np.where(BITS / rate < 0.3, HELD[:, None] * (1 - q), 0.0)
    best = max(worth[list(users), range(3)].sum() for users in permutations(range(5), 3))
    users, blocks = chen.Blocks(count=3)._chosen(of, 3, np.random.default_rng(1))
    assert worth[users, blocks].sum() == pytest.approx(best)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_choice_is_the_first_one(frozen: bool) -> None:
    selector, of, memory, seen = chen.Blocks(count=3, choose="random", frozen=frozen), five_users(), {}, set()
    for turn in range(20):
        decision = selector.decide(of, 3, np.random.default_rng(turn), memory)
        memory = dict(decision.memory)
        seen.add(tuple(decision.ids))
    assert (len(seen) == 1) is frozen


def test_yangs_fair_policy_takes_the_strongest_fading() -> None:
    """Users below the threshold get a clock that is too slow for the round, and all others their highest clock."""
    many = np.ones(yang_scheduling.USERS)
    of = Candidates(list(range(len(many))), 0 * many, 3, clock_hz=1e9 * many)
    power = {"power": yang_scheduling.network(np.random.default_rng(2))}
    fading = np.random.default_rng([0, 3]).exponential(size=power["power"].shape)[0]
    cases = (("fair", 100, np.sort(np.argsort(fading)[-5:]), 1e3), ("in turn", -100, range(15, 20), 1e9))
    for policy, db, users, clock in cases:
        selector = yang_scheduling.Scheduled(count=5, policy=policy, threshold_db=db)
        decision = selector.decide(of, 5, np.random.default_rng(1), power)
        assert list(decision.ids) == list(users)
        assert np.all(np.equal(decision.clock_hz, clock))


def test_hierfavgs_devices_have_one_label_each_and_its_cells_those_asked_for() -> None:
    labels, streams = np.repeat(np.arange(10), 30), Streams(1)
    for labels_per_cell in (10, 2):
        owner = hierfavg.OneLabel(labels_per_cell=labels_per_cell).owners(labels, 50, streams, NO_INPUTS)
        held = np.array([np.bincount(labels[owner == device], minlength=10) for device in range(50)])
        assert np.sort(held).tolist() == [[0] * 9 + [6]] * 50
        assert held.reshape(5, 10, 10).any(axis=1).sum(axis=1).tolist() == [labels_per_cell] * 5


def test_mcmahans_network_has_as_many_parameters_as_the_paper_says() -> None:
    module = mcmahan.Cnn().build((28, 28), 10)
    assert TensorLayout.of(module).size == 1_663_370
    assert module(torch.zeros(2, 28, 28)).shape == (2, 10)
    assert module.features(torch.zeros(2, 28, 28)).shape == (2, module.head.in_features)


def test_yangs_joules_are_least_by_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's energy is the minimum over sending times and local accuracies eta; rounds grow with 1 / (1 - eta)."""
    monkeypatch.setattr(yang_energy, "USERS", 1)
    world = yang_energy.World(3)
    end_s = 2 * world.seconds(0.5, equal=False)
    eta, sent_s = np.linspace(0.02, 0.98, 2401)[:, None], np.geomspace(1e-4, 1e-1, 4001)
    rounds = 2 * 10 * np.log(1e3) / (1 - eta)
    cycles = 2 / (1.9 * 0.1) * np.log2(1 / eta) * world.cycles[0]
    clock_hz = cycles / (end_s / rounds - sent_s)
    noise_w = 10**-20.4 * 20e6
    power_w = np.expm1(28.1e3 / (20e6 * sent_s) * np.log(2)) * noise_w / world.gain[0]
    joules = rounds * (power_w * sent_s + 1e-28 * cycles * clock_hz**2)
    can = (clock_hz > 0) & (clock_hz <= 2e9) & (power_w <= 0.01)
    assert world.best(end_s, equal=False) == pytest.approx(joules[can].min(), rel=1e-4)


def test_yangs_optimum_saves_over_each_other_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yang_energy, "USERS", 4)
    monkeypatch.setattr(yang_energy, "LONGER", (1.5,))
    found = yang_energy.compared(yang_energy.World(5))
    assert max(found.values()) <= 1 + 1e-6
    assert found["delay", "neither"] <= min(found["delay", "equal band"], found["delay", "fixed eta"]) + 1e-9
