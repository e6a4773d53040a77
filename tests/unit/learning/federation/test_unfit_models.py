"""Test that models that cannot be trained reproducibly are refused by the checks before a run, and by `check`."""

import random
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from edgefl.learning.models import Model
from edgefl.testing import check
from edgefl.testing.conformance import ContractError
from tests.refusals import refused_at
from tests.unit.learning.digits_cell import learner


class Net(nn.Module):
    """A network with one layer, and functions that run before and after it."""

    def __init__(self, before: Callable[[Any, Tensor], Tensor], after: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.before, self.after, self.layer = before, after, nn.Linear(64, 10)
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Any:
        return self.after(self.layer(self.before(self, x.flatten(1))))


class Digits(Model):
    """A model of 8x8 images; subclasses change what runs before or after its layer."""

    typical_input: ClassVar = (8, 8)
    typical_classes: ClassVar = 10

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return Net(self.before, self.after)

    @staticmethod
    def before(net: Any, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def after(logits: Tensor) -> Any:
        return logits


class Double(Digits):
    """A model in double precision."""

    before = staticmethod(lambda net, x: x.double())

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return super().build(input_shape, classes).double()


class DoubleOutputs(Digits):
    """A model with outputs in double precision."""

    after = staticmethod(lambda logits: logits.double())


class Pair(Digits):
    """A model that returns its outputs twice."""

    after = staticmethod(lambda logits: (logits, logits))


class Cut(Digits):
    """A model whose outputs do not depend on its parameters by differentiable operations."""

    after = staticmethod(lambda logits: logits.detach())


class NumpyNoise(Digits):
    """A model that adds noise from NumPy's global generator in training."""

    before = staticmethod(lambda net, x: x + float(np.random.rand()) if net.training else x)  # noqa: NPY002


class PythonNoise(Digits):
    """A model that adds noise from Python's global generator, also in evaluation mode."""

    before = staticmethod(lambda net, x: x + random.random())


class AlwaysDropping(Digits):
    """A model whose dropout is active in evaluation mode."""

    before = staticmethod(lambda net, x: functional.dropout(x, 0.5))


class Counting(Digits):
    """A model that counts its training steps in a buffer of integers."""

    @staticmethod
    def before(net: Any, x: Tensor) -> Tensor:
        net.steps += net.training
        return x


class Cumulative(Digits):
    """A model with batch norm over all batches so far."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64, momentum=None), nn.Linear(64, 10))


REFUSED = [
    (Double, ("layer.weight is float64", "module.float()")),
    (DoubleOutputs, ("float64", ".float()")),
    (Pair, ("Net.forward() returned a tuple of 2", "return the logits alone")),
    (Cut, ("fails in a training step", "differentiable")),
    (NumpyNoise, ("Python or NumPy", "draw from torch")),
    (PythonNoise, ("Python or NumPy", "draw from torch")),
    (AlwaysDropping, ("evaluation mode", "self.training")),
    (Counting, ("changes steps in training", "persistent buffer")),
    (Cumulative, ("num_batches_tracked", "set a momentum")),
]


@pytest.mark.parametrize(("model", "words"), REFUSED, ids=lambda case: getattr(case, "__name__", ""))
def test_a_model_that_cannot_be_trained_is_refused(model: type[Model], words: tuple[str, ...]) -> None:
    with refused_at("learning.model", *words):
        learner(model=model())
    with pytest.raises(ContractError) as refused:
        check(model)
    assert all(word in str(refused.value) for word in words)


class FreshGenerator(Digits):
    """A model that draws from a generator of its own, which nothing seeds."""

    before = staticmethod(lambda net, x: x + float(np.random.default_rng().random()) if net.training else x)


def test_check_finds_numbers_that_nothing_seeds() -> None:
    check(Digits)
    with pytest.raises(ContractError, match="draw random numbers from torch only"):
        check(FreshGenerator)


class Probabilities(Digits):
    """A model that ends with a softmax."""

    after = staticmethod(lambda logits: logits.softmax(-1))


def test_a_model_that_ends_with_a_softmax_is_noted() -> None:
    """Cross-entropy applies a softmax itself; two of them make gradients small."""
    assert learner(model=Digits()).doubts == ()
    (doubt,) = learner(model=Probabilities()).doubts
    assert "the model returns probabilities" in doubt
    assert "leave out the model's softmax" in doubt
