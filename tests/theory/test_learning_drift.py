"""Test where algorithms converge on heterogeneous devices, with full batches and a constant learning rate.

By theory, the optimum w* of sum_k p_k F_k is a fixed point of SCAFFOLD and FedDyn, whose corrections keep each device
there, but not of FedAvg, whose devices drift to their own optima with more than one local step (Karimireddy et al.
2020; Acar et al. 2021). The p_k are shares of the data, so w* is the optimum of the pooled data; the tests measure
the norm of the pooled data's gradient.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.feddc import FedDc
from edgefl.learning.algorithms.feddyn import FedDyn
from edgefl.learning.algorithms.fednova import FedNova
from edgefl.learning.algorithms.scaffold import Scaffold
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel

INPUTS, CLASSES = 4, 3
SIZES = [20, 40, 60, 80]
FLOAT32 = 2e-5  # the rounding error of a gradient, with sums of 200 terms of order 1 in float32

rng = np.random.default_rng(3)
X = rng.integers(0, 256, (sum(SIZES), INPUTS), dtype=np.uint8)
OWN = np.split(np.arange(sum(SIZES)), np.cumsum(SIZES)[:-1])
# random labels, from a different distribution on each device, so that no device's data are separable
Y = np.concatenate(
    [rng.choice(CLASSES, n, p=p) for n, p in zip(SIZES, rng.dirichlet([0.7] * CLASSES, 4), strict=True)]
)
MEAN, STD = 127.5, 74.0


def pooled_gradient(w: np.ndarray) -> np.ndarray:
    """Return the gradient over all data, with equal weights of all samples, in float64."""
    x = (X - MEAN) / STD
    logits = x @ w[: CLASSES * INPUTS].reshape(CLASSES, INPUTS).T + w[CLASSES * INPUTS :]
    p = np.exp(logits - logits.max(1, keepdims=True))
    delta = (p / p.sum(1, keepdims=True) - np.eye(CLASSES)[Y]) / len(Y)
    return np.concatenate([(delta.T @ x).ravel(), delta.sum(0)])


def train(
    algorithm: Algorithm,
    rounds: int,
    lr: float,
    momentum: float,
    steps: list[int],
    *,
    join: int = 0,
    past: int = 0,
) -> np.ndarray:
    """Return the model after some rounds from w = 0.

    Args:
        join: the round in which the last two devices join; 0 if they take part from the beginning.
        past: the rounds of an earlier session in which only these two devices took part.
    """
    module = Logistic().build((INPUTS,), CLASSES)
    data = SplitInMemory(Split(X, Y), np.float32(MEAN), np.float32(STD), torch.device("cpu"))
    local = LocalTraining(Logistic(), module, data, UpdateRule(momentum))
    held = dict(enumerate(SIZES))
    one = TrainedModel(local, algorithm, DeviceStates(4, torch.device("cpu")), torch.zeros(local.layout.size))

    def session(ids: Sequence[int], rounds: int) -> None:
        own, many = [OWN[k] for k in ids], [steps[k] for k in ids]
        batches = draw_batches(own, many, max(SIZES), [np.random.default_rng(0)] * len(ids))
        for _ in range(rounds):
            one.train(ids, batches, lr, [])
            one.aggregate(ids, {k: held[k] for k in ids})

    if past:
        one.open(one.model, {k: held[k] for k in (2, 3)})
        session([2, 3], past)
    first = range(2) if join else range(4)
    one.open(torch.zeros_like(one.model), {k: held[k] for k in first})
    if join:
        session(first, join - 1)
        one.join([2, 3], held)
    session(range(4), rounds)
    return one.model.double().numpy()


def left(*args: Any, **kwargs: Any) -> float:
    return float(np.linalg.norm(pooled_gradient(train(*args, **kwargs))))


# rounds until only rounding errors remain; momentum makes steps about three times as long, but they oscillate
@pytest.mark.parametrize(("rounds", "lr", "momentum"), [(200, 0.5, 0.0), (250, 0.1, 0.9)])
def test_scaffold_settles_at_the_optimum_and_fedavg_does_not(rounds: int, lr: float, momentum: float) -> None:
    """SCAFFOLD converges with momentum; dividing by the number of steps would scale c_k's error by 1 - a/e per round.

    For e = 8 steps at momentum 0.9, a / e = 3.6, and the factor -2.6 would diverge within a few rounds.
    """
    assert left(Scaffold(), rounds, lr, momentum, [8] * 4) < FLOAT32
    assert left(FedAvg(), rounds, lr, momentum, [8] * 4) > 50 * FLOAT32


def test_feddyn_settles_at_the_optimum() -> None:
    assert left(FedDyn(alpha=0.3), 200, 0.5, 0.0, [8] * 4) < FLOAT32


@pytest.mark.parametrize("past", [0, 20])
@pytest.mark.parametrize("algorithm", [Scaffold(), FedDyn(alpha=0.3)])
def test_they_settle_there_when_devices_join(
    algorithm: Algorithm, past: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If c or h ignored devices that join late, a bias common to all devices would remain."""
    how = (algorithm, 200, 0.5, 0.0, [8] * 4)
    assert left(*how, join=6, past=past) < FLOAT32
    monkeypatch.setattr(type(algorithm), "join", Algorithm.join)
    assert left(*how, join=6, past=past) > 50 * FLOAT32


def test_scaffold_settles_there_with_unequal_steps() -> None:
    assert left(Scaffold(), 200, 0.5, 0.0, [2, 4, 8, 16]) < FLOAT32


def test_feddc_settles_at_the_optimum() -> None:
    """At the optimum c_k - alpha h_k equals each device's gradient, and c = h = 0, so that no device moves."""
    assert left(FedDc(alpha=0.3), 400, 0.3, 0.0, [8] * 4) < FLOAT32


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_fednova_follows_the_gradient_whatever_the_steps(momentum: float) -> None:
    """As lr goes to 0 devices do not drift, and FedNova becomes a step along the pooled gradient.

    The cosine of step and gradient is 1 - O(lr^2); FedAvg weights device k by its steps, so an angle remains.
    """
    gradient = pooled_gradient(np.zeros(CLASSES * (INPUTS + 1)))

    def cosine(algorithm: Algorithm) -> float:
        change = train(algorithm, 1, 1e-3, momentum, [1, 4, 8, 16])
        return float(-change @ gradient / np.linalg.norm(change) / np.linalg.norm(gradient))

    assert 1 - cosine(FedNova()) < 1e-3
    assert 1 - cosine(FedAvg()) > 1e-2
