"""Test that contracts refuse components that modify arguments, draw from a global generator, or mix devices."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.schedulers import Flows
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.config.component import AnyComponent, parameters_of
from edgefl.engine.power_models import Draws, Equipment, PowerModel
from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory, Selector
from edgefl.learning.algorithms import Sent, ServerState, Trained, Updates, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.datasets import Data
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.drifts import Moment
from edgefl.learning.drifts.rotation import Rotation
from edgefl.learning.partitions.iid import Iid
from edgefl.learning.warm_starts import OpeningModel
from edgefl.learning.warm_starts.previous import Previous
from edgefl.mobility import Movement
from edgefl.mobility.static import Static
from edgefl.testing import ContractError, check
from edgefl.testing.conformance import same


class Sorting(Selector):
    """A selector that sorts the candidates' gains in place."""

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        candidates.gains_db.sort()
        return list(candidates.ids)[:number]


class Halving(CountedDecider):
    """A decider that modifies the candidates."""

    def decide(self, candidates: Candidates, number: int, *rest: Any) -> Decision:
        candidates.clock_hz[:] = 1e9
        return Decision(list(candidates.ids)[:number])


class Powered(CountedDecider):
    """A decider that draws powers from NumPy's global generator."""

    sets: ClassVar[frozenset[str]] = frozenset({"power"})

    def decide(self, candidates: Candidates, number: int, *rest: Any) -> Decision:
        return Decision(list(candidates.ids)[:number], power=np.random.uniform(0.1, 1.0, number))  # noqa: NPY002


class Appending(CountedDecider):
    """A decider that appends to a list in its memory."""

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        memory = {"turns": [], **memory}
        memory["turns"].append(candidates.turn)
        return Decision(list(candidates.ids)[:number], memory=memory)


class Flickering(PowerModel):
    """A power model that draws random powers."""

    def draws(self, equipment: Equipment) -> Draws:
        return Draws(receive_w=np.random.random(), send_w=2.0)  # noqa: NPY002


@dataclass(frozen=True)
class Shadowed(UMi):
    """A path loss with random line of sight."""

    def los_probability(self, distance_2d_m: Any) -> np.ndarray:
        return np.random.random(np.shape(distance_2d_m))  # noqa: NPY002


@dataclass(frozen=True)
class Anywhere(UMi):
    """A path loss with one probability for all distances."""

    def los_probability(self, distance_2d_m: Any) -> np.ndarray:
        return np.array(0.5)


@dataclass(frozen=True)
class Listed(EqualShare):
    """A scheduler that returns a list."""

    def shares(self, flows: Flows) -> Any:
        return [1 / len(flows)] * len(flows)


class Pushing(Static):
    """A mobility model that moves the given positions."""

    def start(self, positions_m: np.ndarray, **how: Any) -> Movement:
        positions_m += 1.0
        return super().start(positions_m, **how)


class Reusing(Static):
    """A mobility model that overwrites the array that it returned before."""

    def start(self, positions_m: np.ndarray, **how: Any) -> Movement:
        return Overwriting(positions_m)


class Overwriting:
    moves = True

    def __init__(self, begin_m: np.ndarray) -> None:
        self._begin_m, self._here_m = begin_m, begin_m.copy()

    def positions_m(self, time_s: float) -> np.ndarray:
        self._here_m[:] = self._begin_m + time_s
        return self._here_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.ones(len(self._begin_m))


class Infinite(Static):
    """A mobility model whose devices are infinitely far away."""

    def start(self, positions_m: np.ndarray, **how: Any) -> Movement:
        return super().start(np.full_like(positions_m, np.inf), **how)


class Noisy(Previous):
    """A warm start that adds noise from PyTorch's global generator."""

    def opening(self, current: Tensor, saved: Any, gradient: Tensor | None) -> OpeningModel:
        return OpeningModel(current + torch.randn_like(current), {})


class Popping(Previous):
    """A warm start that shortens the list of saved sessions."""

    def retain(self, saved: Any) -> Any:
        saved.pop(0)
        return saved


class Perturbed(FedAvg):
    """An algorithm that adds noise from PyTorch's global generator to gradients."""

    def correct(self, grads: Tensor, *rest: Any) -> Tensor:
        return grads + torch.randn_like(grads)


class Centred(FedAvg):
    """An algorithm that subtracts the mean of all devices' gradients."""

    def correct(self, grads: Tensor, *rest: Any) -> Tensor:
        return grads - grads.mean(0)


class Shrinking(FedAvg):
    """An algorithm that modifies local models while it corrects gradients."""

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        local.mul_(0.5)
        return grads


class Blurred(FedAvg):
    """An algorithm that adds noise from PyTorch's global generator to uploads."""

    def upload(self, trained: Trained, state: ServerState, own: Vectors) -> Sent:
        return Sent(trained.local + (trained.local - trained.start) * torch.rand(()))


class First(FedAvg):
    """An algorithm that takes the model of the first device."""

    uses: ClassVar[str] = "updates"

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return updates.rows[0], state


class Percent(Rotation):
    """A drift whose share is in percent."""

    def drifted_share(self, moment: Moment) -> float:
        return 0.0 if moment.round < 50 else 30.0


class Relabelled(Iid):
    """A partition that overwrites the labels."""

    def assign(self, labels: np.ndarray, *rest: Any, **how: Any) -> list[np.ndarray]:
        labels[:] = 0
        return super().assign(labels, *rest, **how)


class Counted(Iid):
    """A partition with indices in float64."""

    def assign(self, labels: np.ndarray, *rest: Any, **how: Any) -> list[np.ndarray]:
        return [own.astype(float) for own in super().assign(labels, *rest, **how)]


class Shuffled(Digits):
    """A data set in another order at each loading."""

    def load(self) -> Data:
        data = super().load()
        order = np.random.permutation(len(data.train.y))  # noqa: NPY002
        return replace(data, train=replace(data.train, x=data.train.x[order], y=data.train.y[order]))


class Gaps(Digits):
    """A data set with a missing value."""

    def load(self) -> Data:
        data = super().load()
        x = data.train.x.astype(np.float32)
        x[3] = np.nan
        return replace(data, train=replace(data.train, x=x))


@pytest.mark.parametrize(
    ("component", "remedy"),
    [
        (Sorting, "select.. modified an argument in place: work on a copy"),
        (Halving, "decide.. modified an argument in place"),
        (Powered, "decide.. returned different values for the same arguments: draw from the given rng"),
        (Appending, "decide.. modified an argument in place"),
        (Flickering, "draws.. returned different values"),
        (Shadowed, "los_probability.. returned different values"),
        (Anywhere, "los_probability must return a number for each distance"),
        (Listed, "shares.. must return a NumPy array"),
        (Pushing, "start.. modified positions_m in place"),
        (Reusing, "positions_m.. overwrote the array of an earlier call"),
        (Infinite, "positions_m.. returned inf: the position of an absent device is nan"),
        (Noisy, "opening.. returned different values"),
        (Popping, "retain.. modified an argument in place"),
        (Perturbed, "correct.. returned different values"),
        (Centred, "correct.. corrects a device differently when other devices train with it"),
        (Shrinking, "correct.. modified an argument in place"),
        (Blurred, "upload.. returned different values .*: draw random numbers from trained.rng only"),
        (First, "aggregate.. depends on the order of the devices"),
        (Percent, "drifted_share.. is 30.0 in round 50"),
        (Relabelled, "assign.. modified an argument in place"),
        (Counted, "assign.. returned indices of type float64: return int64"),
        (Shuffled, "load.. returned different values"),
        (Gaps, "train: inputs are not all finite"),
    ],
)
def test_impure_components_are_told_the_remedy(component: type[AnyComponent], remedy: str) -> None:
    given = {"count": 2} if "count" in parameters_of(component).model_fields else {}
    with pytest.raises(ContractError, match=f"{component.__name__}: {remedy}"):
        check(component, **given)


def test_nan_equals_nan_also_outside_arrays() -> None:
    assert same({"loss": float("nan")}, {"loss": float("nan")})
    assert not same({"loss": float("nan")}, {"loss": 1.0})


def test_candidates_cannot_be_written() -> None:
    own = np.array([3.0, 1.0])
    candidates = Candidates([0, 1], own, 0)
    writes: list[Callable[[], Any]] = [
        candidates.gains_db.sort,
        lambda: candidates.at([0]).gains_db.fill(0.0),
    ]
    for write in writes:
        with pytest.raises(ValueError, match="read-only"):
            write()
    own[0] = 2.0  # the engine's own array stays writable
    assert candidates.gains_db[0] == 2.0
