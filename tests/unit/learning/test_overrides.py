"""What a shipped component tells about one of its methods does not hold for a subclass that overrides this method."""

from collections.abc import Sequence
from math import prod
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm, ServerState, Updates
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.fedavgm import FedAvgM
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.mlp import Mlp
from edgefl.learning.models.mlp2 import Mlp2
from edgefl.learning.models.text_bag import TextBag
from edgefl.learning.objective import task_of
from edgefl.learning.optimisers import Step
from edgefl.learning.optimisers.sgd import Sgd
from edgefl.learning.settings import LearningSettings
from edgefl.learning.tasks.classification import Classification
from edgefl.scenario.scenario import load


class Tanh:
    """A mixin that builds another module with the tensors of logistic regression."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), classes), nn.Tanh())


def _facts(cls: type[Model]) -> tuple[Any, ...]:
    model, inputs = cls(), cls.typical_input
    return (
        cls.writes_out(),
        cls.writes_out_terms(),
        cls.writes_logits(),
        model.size(inputs, 3),
        model.hidden_widths(),
    )


@pytest.mark.parametrize("parent", [Logistic, Mlp, Mlp2, TextBag])
def test_shortcuts_of_a_model_hold_for_its_own_module_only(parent: type[Model]) -> None:
    class Renamed(parent):  # type: ignore[valid-type, misc]
        pass

    class Mixed(Tanh, parent):  # type: ignore[valid-type, misc]
        pass

    class Below(Mixed):
        pass

    class Written(parent):  # type: ignore[valid-type, misc]
        def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
            return Tanh.build(self, input_shape, classes)  # type: ignore[arg-type]

        def hidden_widths(self) -> tuple[int, ...] | None:
            return (7,)

    assert _facts(Renamed) == _facts(parent)
    assert _facts(Mixed) == _facts(Below) == (None, False, False, None, None)
    assert _facts(Written) == (None, False, False, None, (7,))


def test_only_the_steps_of_sgd_are_sums_of_gradients() -> None:
    class Signs(Sgd):
        def step(self, local: Tensor, grads: Tensor, state: Sequence[Tensor], step: Step) -> None:
            local.sub_(grads.sign(), alpha=step.lr)

    class Nesterov(Sgd):
        nesterov = True

    assert Signs().weights(3, 0.5) is None
    assert Nesterov().weights(1, 0.5).tolist() == [1.5]  # 1 + rho
    with pytest.raises(EdgeflError, match="not such sums"):
        _scenario(algorithm="fednova", local={"optimiser": Signs()})


def test_only_the_mean_of_fedavg_is_a_mean() -> None:
    class Median(FedAvg):
        def aggregate(
            self, model: Tensor, updates: Updates, state: ServerState
        ) -> tuple[Tensor, ServerState]:
            return updates.rows.median(0).values, state

    class Renamed(FedAvgM):
        pass

    assert (Median.uses, Renamed.uses, Algorithm.uses) == ("updates", "mean", "updates")
    with pytest.raises(EdgeflError, match="uses individual updates"):
        _scenario(algorithm=Median(), privacy={"clip_norm": 1.0, "noise": 1.0, "where": "server"})


@pytest.mark.parametrize(("method", "instead"), [("loss", "losses"), ("total", "scores")])
def test_a_task_defines_values_of_samples(method: str, instead: str) -> None:
    task = type("Own", (Classification,), {method: lambda self, *_: torch.zeros(())})()
    with pytest.raises(EdgeflError, match=rf"{method}\(\).*define {instead}\(\)") as refused:
        task_of(LearningSettings(dataset="digits", model="logistic", task=task), Digits().load())
    assert refused.value.place == ("learning", "task")


def _scenario(**learning: Any) -> None:
    given = {"dataset": "digits", "model": "logistic", **learning}
    load(
        {
            "name": "own",
            "devices": {"count": 4},
            "learning": given,
            "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        }
    )


@pytest.mark.parametrize("name", ["_rounds", "rounds", "uses"])
def test_a_component_holds_no_state_that_a_resumed_run_would_lack(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^{name} cannot be assigned, .* take state as an argument"):
        setattr(FedAvg(), name, 1)
