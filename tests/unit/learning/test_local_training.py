"""Local training against a NumPy derivation, and what must not matter: chunks, neighbours, order."""

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.fedprox import FedProx
from edgefl.learning.datasets import Split
from edgefl.learning.device_data import DeviceSplit
from edgefl.learning.local_training import Batches, LocalTraining, draw_batches
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.parameters import Layout

INPUTS, CLASSES, SAMPLES = 6, 3, 90
MEAN, STD = 100.0, 50.0
LR, MOMENTUM, MU = 0.1, 0.9, 0.7
ROUNDING = 2e-5  # float32 training of a few steps against float64

rng = np.random.default_rng(0)
X = rng.integers(0, 256, (SAMPLES, 2, 3), dtype=np.uint8)
Y = rng.integers(0, CLASSES, SAMPLES)


def training(model: Model | None = None) -> tuple[LocalTraining, Layout, torch.Tensor]:
    model = model or Logistic()
    torch.manual_seed(1)
    module = model.build((2, 3), CLASSES)
    layout = Layout.of(module)
    data = DeviceSplit(Split(X, Y), np.float32(MEAN), np.float32(STD), torch.device("cpu"))
    return LocalTraining(model, module, layout, data, MOMENTUM), layout, layout.flatten(module)


def batches(devices: int = 7, steps: int = 4, batch: int = 8) -> Batches:
    samples = [np.arange(k, SAMPLES, devices)[: 3 + 4 * k] for k in range(devices)]
    generators = [np.random.default_rng(k) for k in range(devices)]
    return draw_batches(samples, steps, batch, generators)


def derived(start: np.ndarray, plan: Batches, device: int, mu: float) -> np.ndarray:
    """SGD with momentum on softmax regression with a proximal term, from the definitions, in float64."""
    x_all = (X.reshape(SAMPLES, -1).astype(float) - MEAN) / STD
    w, velocity = start.astype(float).copy(), np.zeros(len(start))
    for rows, weights in zip(plan.rows[device], plan.weights[device].astype(float), strict=True):
        weight, bias = w[: CLASSES * INPUTS].reshape(CLASSES, INPUTS), w[CLASSES * INPUTS :]
        logits = x_all[rows] @ weight.T + bias
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        delta = (p - np.eye(CLASSES)[Y[rows]]) * weights[:, None]
        grad = np.concatenate([(delta.T @ x_all[rows]).ravel(), delta.sum(0)]) + mu * (w - start)
        velocity = MOMENTUM * velocity + grad
        w = w - LR * velocity
    return w


@pytest.mark.parametrize("mu", [0.0, MU])
def test_a_round_follows_the_derivation(mu: float) -> None:
    train, _, start = training()
    plan = batches()
    rows = train.run(start, plan, LR, FedProx(mu=mu), None)
    for device in range(len(rows)):
        expected = derived(start.numpy(), plan, device, mu)
        assert np.abs(rows[device].numpy() - expected).max() < ROUNDING


def test_fedprox_with_mu_0_is_fedavg() -> None:
    train, _, start = training()
    assert torch.equal(
        train.run(start, batches(), LR, FedProx(mu=0.0), None),
        train.run(start, batches(), LR, FedAvg(), None),
    )


def test_hand_written_gradients_are_those_of_autograd() -> None:
    train, layout, _ = training()
    torch.manual_seed(2)
    rows = torch.randn(5, layout.size)
    x, y = torch.randn(5, 8, 2, 3), torch.randint(0, CLASSES, (5, 8))
    weight = torch.rand(5, 8)
    by_hand = Logistic().gradients(train._module, layout, rows, x, y, weight)
    by_autograd = Model.gradients(Logistic(), train._module, layout, rows, x, y, weight)
    torch.testing.assert_close(by_hand, by_autograd)


class TwoLayers(Model):
    """A model without hand-written gradients: the general road."""

    typical_input = (2, 3)
    typical_classes = CLASSES

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(INPUTS, 5), nn.Tanh(), nn.Linear(5, classes))


@pytest.mark.parametrize("model", [Logistic(), TwoLayers()])
def test_neither_chunks_nor_neighbours_matter(model: Model) -> None:
    """Momentum, batches and models of a device are its own: alone it ends where it ends among others."""
    train, _, start = training(model)
    plan = batches()
    together = train.run(start, plan, LR, FedProx(mu=MU), None)
    train.chunk = 1
    alone = train.run(start, plan, LR, FedProx(mu=MU), None)
    torch.testing.assert_close(together, alone, atol=ROUNDING, rtol=0)


def test_nothing_is_left_over_from_the_last_round() -> None:
    train, _, start = training()
    first = train.run(start, batches(), LR, FedAvg(), None)
    assert torch.equal(train.run(start, batches(), LR, FedAvg(), None), first)


@pytest.mark.parametrize(("held", "batch"), [(300, 128), (20, 128), (1, 4), (64, 32), (7, 3)])
def test_batches_are_epochs_without_replacement(held: int, batch: int) -> None:
    steps = 6
    samples = np.arange(1000, 1000 + held)
    plan = draw_batches([samples], steps, batch, [np.random.default_rng(3)])
    taken = [plan.rows[0, step][plan.weights[0, step] > 0] for step in range(steps)]
    per_epoch = -(-held // batch)
    for step, own in enumerate(taken):
        last_of_epoch = step % per_epoch == per_epoch - 1
        assert len(own) == (held - batch * (per_epoch - 1) if last_of_epoch else batch)
        assert plan.weights[0, step].sum() == pytest.approx(1.0)
    for epoch in range(steps // per_epoch):
        seen = np.concatenate(taken[epoch * per_epoch : (epoch + 1) * per_epoch])
        assert sorted(seen) == list(samples)
    if per_epoch <= steps // 2 and held > 3:
        assert not np.array_equal(
            np.concatenate(taken[:per_epoch]), np.concatenate(taken[per_epoch : 2 * per_epoch])
        ), "each epoch is shuffled anew"
