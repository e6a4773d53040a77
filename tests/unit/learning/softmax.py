"""Train softmax regression on seven devices with edgefl, and with NumPy code written directly from the equations.

Devices have 3 to 27 samples and train six epochs with momentum in batches of 8, so 6 to 24 steps. All devices take
part in the first round, and three devices in the second and third round. The derivations use float64.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from edgefl.config import registry
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.data.batches import Batches, draw_batches, keep_apart, steps_per_epoch
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.settings import CostSettings
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.learning.updates.transfers import Transfers
from edgefl.learning.updates.updates import LocalResult
from tests.tools.constants import made

INPUTS, CLASSES, SAMPLES, DEVICES = 6, 3, 105, 7
M = CLASSES * (INPUTS + 1)
MEAN, STD = 100.0, 80.0
LR, RHO, BATCH, EPOCHS = 0.05, 0.9, 8, 6
ALL = list(range(DEVICES))
ROUNDS = (ALL, [1, 4, 6], [0, 4, 5])
EXACT = 1e-6  # float32 training of some rounds against float64; models are of order 1
CPU = torch.device("cpu")

rng = np.random.default_rng(0)
X = rng.integers(0, 256, (SAMPLES, 2, 3), dtype=np.uint8)
# most labels can be learned, so validation losses decrease for a while
Y = ((X.reshape(SAMPLES, -1) - MEAN) @ rng.normal(size=(INPUTS, CLASSES))).argmax(1)
Y = np.where(rng.random(SAMPLES) < 0.1, rng.integers(0, CLASSES, SAMPLES), Y)
OWN = [np.arange(k, SAMPLES, DEVICES)[: 3 + 4 * k] for k in range(DEVICES)]
HELD = {k: len(own) for k, own in enumerate(OWN)}
SIZES = np.array([len(own) for own in OWN], dtype=float)
P = SIZES / SIZES.sum()

# ---- ours


def named(name: str, **parameters: Any) -> Algorithm:
    """Make an algorithm with these parameters and class constants."""
    return made(registry.get("algorithms", name), **parameters)


def plan(algorithm: Algorithm, ids: Sequence[int], round_: int, smallest: int = 1) -> Batches:
    share = algorithm.keeps_apart()
    pairs = [keep_apart(OWN[k], share, np.random.default_rng([99, k])) for k in ids]
    train = [samples for samples, _ in pairs]
    steps = [EPOCHS * steps_per_epoch(len(samples), BATCH, smallest) for samples in train]
    generators = [np.random.default_rng([round_, k]) for k in ids]
    apart = [samples for _, samples in pairs] if share else ()
    return draw_batches(train, steps, BATCH, generators, smallest, apart)


def plans(algorithm: Algorithm | None = None) -> list[tuple[list[int], Batches]]:
    return [(ids, plan(algorithm or FedAvg(), ids, r)) for r, ids in enumerate(ROUNDS, start=1)]


def track(
    algorithm: Algorithm, cost: CostSettings | None = None, model: Model | None = None, **options: Any
) -> tuple[TrainedModel, DeviceStates]:
    """Open a session of all devices."""
    torch.manual_seed(1)
    model = model or Logistic()
    module = model.build((2, 3), CLASSES)
    data = SplitInMemory(Split(X, Y), np.float32(MEAN), np.float32(STD), CPU)
    training = LocalTraining(model, module, data, UpdateRule(RHO), **options)
    states = DeviceStates(DEVICES, CPU)
    transfers = Transfers(algorithm, training.layout, cost or CostSettings(), states)
    one = TrainedModel(training, algorithm, states, training.layout.flatten(module), transfers)
    one.open(one.model, HELD)
    return one, states


def played(
    algorithm: Algorithm, rounds: int = len(ROUNDS)
) -> tuple[TrainedModel, DeviceStates, list[LocalResult]]:
    """Play the session's first rounds, in which every update arrives."""
    one, states = track(algorithm)
    done = []
    for ids, batches in plans(algorithm)[:rounds]:
        done.append(one.train(ids, batches, LR, []))
        one.aggregate(ids, HELD)
    return one, states, done


def start() -> np.ndarray:
    return track(FedAvg())[0].model.double().numpy()


def kept(states: DeviceStates, name: str) -> np.ndarray:
    return states.rows(name, ALL, torch.zeros(M)).double().numpy()


# ---- parts that the papers have in common


def logits_of(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return x @ w[: CLASSES * INPUTS].reshape(CLASSES, INPUTS).T + w[CLASSES * INPUTS :]


def loss_and_gradient(
    w: np.ndarray, rows: np.ndarray, push: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
) -> tuple[float, np.ndarray]:
    """Return cross-entropy and gradient; push: (inputs, logits) -> gradient of an added loss term by the logits."""
    x = (X[rows].reshape(len(rows), -1).astype(float) - MEAN) / STD
    logits = logits_of(w, x)
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = float(-np.log(p[np.arange(len(rows)), Y[rows]]).mean())
    delta = p - np.eye(CLASSES)[Y[rows]] + (push(x, logits) if push else 0.0)
    delta /= len(rows)
    return loss, np.concatenate([(delta.T @ x).ravel(), delta.sum(0)])


def gradient(w: np.ndarray, batches: Batches, j: int, step: int, **further: Any) -> np.ndarray:
    return loss_and_gradient(w, batches.rows[j, step, : batches.sizes[j, step]], **further)[1]


def descend(
    w: np.ndarray,
    batches: Batches,
    j: int,
    correct: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda grad, w: grad,
    lr: float = LR,
    **further: Any,
) -> np.ndarray:
    """Train by SGD with momentum; correct: (gradient, model) -> gradient to use."""
    velocity = np.zeros(len(w))
    for step in range(batches.steps[j]):
        velocity = RHO * velocity + correct(gradient(w, batches, j, step, **further), w)
        w = w - lr * velocity
    return w


def shares(ids: list[int]) -> np.ndarray:
    return SIZES[ids] / SIZES[ids].sum()


def travel(steps: int) -> float:
    """Return the sum of gradients' weights in the displacement; of e steps, the s-th is in e - s + 1 velocities."""
    return sum(RHO**i for s in range(1, steps + 1) for i in range(steps - s + 1))


def fedavg(w: np.ndarray) -> np.ndarray:
    for ids, batches in plans():
        w = shares(ids) @ [descend(w, batches, j) for j in range(len(ids))]
    return w
