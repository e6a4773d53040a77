"""Test that the package `testing` detects faulty components, and names a remedy."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from pydantic import ConfigDict, Field
from torch import Tensor

from edgefl.channel.path_loss import Line, LossLines
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.schedulers import Flows
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.config.component import AnyComponent, Component, parameters_of
from edgefl.engine.churn import Churn
from edgefl.engine.records import DeviceRound, Event
from edgefl.engine.selectors import Candidates, CountedDecider, Selector
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.engine.sessions.schedule import Schedule
from edgefl.learning.algorithms import ServerState, Updates
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.models import ReadSome
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.warm_starts import OpeningModel, Saved
from edgefl.learning.warm_starts.previous import Previous
from edgefl.mobility import Movement
from edgefl.mobility.static import Static
from edgefl.rng import Streams
from edgefl.testing import ContractError, Placed, Rows, SwitchedAt, check, small_world
from tests.refusals import refused_at


class Unsorted(Selector):
    """A selector that returns candidates in reverse order."""

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        return list(candidates.ids)[::-1]


class Greedy(Selector):
    """A selector that returns all candidates, although it requests fewer."""

    def wanted(self, present: int) -> int:
        return 1

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        return list(candidates.ids)


class Endless(SessionPolicy):
    """A session policy that never ends."""

    @property
    def longest(self) -> int:
        return 3

    def reason_to_end(self, state: SessionState) -> str | None:
        return None


class Backwards(Churn):
    """A churn model that switches devices off before it switches them on."""

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        yield from (2.0, 1.0)


class Nobody(SwitchedAt):
    """A churn model whose sessions have no devices."""

    def members(self, session: int) -> list[int]:
        return []


class Remembering(Static):
    """A movement whose time advances at each call."""

    def start(self, positions_m: np.ndarray, **how: Any) -> Movement:
        return Walking(positions_m)


class Walking:
    moves = True

    def __init__(self, positions_m: np.ndarray) -> None:
        self._positions_m = positions_m

    def positions_m(self, time_s: float) -> np.ndarray:
        self._positions_m = self._positions_m + 1.0
        return self._positions_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.zeros(len(self._positions_m))


class Heavy(Previous):
    """A warm start whose weights sum to 2."""

    def opening(self, current: Tensor, saved: Any, gradient: Tensor | None) -> OpeningModel:
        return OpeningModel(current, {z.session: 2.0 / len(saved) for z in saved})


class Backwarded(Previous):
    """A warm start that saves the newest model first."""

    def retain(self, saved: Any) -> list[Saved]:
        return list(saved)[::-1]


class InPlace(FedAvg):
    """An algorithm that modifies the model that it receives."""

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return model.add_(updates.mean_change()), state


class Drifting(FedAvg):
    """An algorithm that changes the model although no device has changed its model."""

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return updates.mean() + 1.0, state


class Double(FedAvg):
    """An algorithm that returns a model of another type."""

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return updates.mean().double(), state


class Stateless(FedAvg):
    """An algorithm that returns no state."""

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> Any:
        return updates.mean()


class Assigning(FedAvg):
    """An algorithm that keeps state in an attribute."""

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        self.k = 3  # type: ignore[attr-defined]
        return updates.mean(), state


class Silent(CountedDecider):
    """A decider that returns no decision."""

    def decide(self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Any) -> Any:
        return None


class Undescribed(FedAvg):
    """An algorithm with an undescribed parameter."""

    mystery: float = 1.0


class BadDefault(FedAvg):
    """An algorithm with a default beyond its bounds."""

    share: float = Field(2.0, le=1, description="at most 1")


class Loose(FedAvg):
    """An algorithm that accepts any parameter."""

    model_config = ConfigDict(extra="ignore")


class Soft(FedAvg):
    """An algorithm that is not frozen."""

    model_config = ConfigDict(frozen=False)
    mu: float = Field(1.0, description="changes")


class Undocumented(FedAvg):
    __doc__ = ""


@dataclass(frozen=True)
class Generous(EqualShare):
    """A scheduler that allocates the band twice."""

    def shares(self, flows: Flows) -> np.ndarray:
        return 2 * super().shares(flows)


@dataclass(frozen=True)
class Levelling(EqualShare):
    """A scheduler that modifies its arguments."""

    def shares(self, flows: Flows) -> np.ndarray:
        flows.snr[:] = 1.0
        return super().shares(flows)


@dataclass(frozen=True)
class Louder(UMi):
    """A path loss that decreases with distance."""

    def lines(self, **radio: Any) -> LossLines:
        falling = (Line(100.0, -20.0),)
        return LossLines(falling, falling)


@dataclass(frozen=True)
class Unread(UMi):
    """A path loss that a run would ignore."""

    def path_loss_db(self, distance_2d_m: Any, **radio: Any) -> np.ndarray:
        return 20.0 + super().path_loss_db(distance_2d_m, **radio)


class Unscaled(Logistic):
    """A model that is tested on raw inputs."""

    def logits(
        self, tensors: Mapping[str, Tensor], count: int, read: ReadSome, scaling: tuple[float, float]
    ) -> Tensor:
        return super().logits(tensors, count, read, (0.0, 1.0))


class NoKind(Component):
    """A component of no kind."""


def local() -> type[Component]:
    class Local(FedAvg):
        """A component that cannot be imported again."""

    return Local


@pytest.mark.parametrize(
    ("component", "remedy"),
    [
        (Unsorted, "Unsorted: select.* return every id once, in ascending order"),
        (Greedy, "Greedy: select.. returned \\d+ of \\d+ devices, not the 1 requested"),
        (Endless, "Endless: a session continues after 3 rounds"),
        (Backwards, "Backwards: switches.. of device 0 .* times must ascend"),
        (Nobody, "Nobody: members.1. is empty: name at least one device"),
        (Remembering, "Remembering: positions_m.. depends on earlier calls"),
        (Heavy, "Heavy: weights sum to 2.0: make the sum 1, or leave them empty"),
        (
            Backwarded,
            "Backwarded: retain.. returned sessions .3, 2.: keep some of the saved sessions, oldest first",
        ),
        (InPlace, "InPlace: .*modified an argument in place"),
        (Double, "Double.aggregate.. returned .*of type float32 on cpu, not float64 on cpu"),
        (Stateless, "Stateless.aggregate.. returned .*: return two values, the next model"),
        (Assigning, "k cannot be assigned, since a component is frozen: take state as an argument"),
        (Silent, "Silent: decide.. returned None: return a Decision"),
        (Drifting, "Drifting: the model moves in a first round although no local model has moved"),
        (Generous, "Generous: shares must sum to at most the whole band"),
        (Levelling, "Levelling: shares.. modified flows.snr: work on a copy"),
        (Louder, "Louder: path loss must not fall with distance"),
        (Unread, "Unread: a run computes the loss from lines.., not by path_loss_db"),
        (Undescribed, "Undescribed.mystery: give it a description"),
        (BadDefault, "BadDefault: a default is outside its bounds"),
        (Loose, "Loose accepts unknown parameters: forbid them like its base class"),
        (Soft, "Soft can be modified after construction: keep it frozen like its base class"),
        (Undocumented, "Undocumented: write a docstring"),
        (Unscaled, "Unscaled: logits.. differs from the module's output"),
        (NoKind, "NoKind is not a component: extend one of edgefl.engine.selectors.Selector, "),
        (local, "Local cannot be named in a scenario: cannot load"),
    ],
)
def test_what_breaks_a_contract_is_told_the_remedy(
    component: type[AnyComponent] | Callable[[], type[AnyComponent]], remedy: str
) -> None:
    cls = component if isinstance(component, type) else component()
    given = {"count": 1, "times_s": [[0.0]] * 4}
    with pytest.raises(ContractError, match=remedy):
        check(cls, **{k: v for k, v in given.items() if k in parameters_of(cls).model_fields})


def test_an_instance_is_refused_with_the_remedy() -> None:
    remedy = r"pass the class and its parameters by name, check\(EqualShare, ...\), not an instance"
    with pytest.raises(ContractError, match=remedy):
        check(EqualShare())


def test_what_cannot_be_made_says_what_is_missing() -> None:
    with refused_at("", "Schedule", "check()", "rounds: is missing; add it", kind=ContractError) as refusal:
        check(Schedule)
    with refused_at("", "rounds: must be >= 1, got 0", kind=ContractError):
        check(Schedule, count=1, rounds=0)
    assert "pydantic" not in str(refusal.value)


def test_a_small_worlds_own_components_keep_their_contracts() -> None:
    check(SwitchedAt, times_s=[[0.0], [0.5, 1.0], [], [2.0]])
    with refused_at("", "positions_m", "(1, 2)", kind=ContractError):
        check(Placed, places_m=[(1.0, 2.0)])  # the check has two devices


def test_rows_by_column_are_rows() -> None:
    rows = Rows()
    rows.write_columns(
        Event,
        time_s=1.5,
        event="handover",
        device=np.array([3, 4]),
        session=None,
        further={"why": ["a", None]},
    )
    assert rows.of[Event] == [Event(1.5, "handover", device, None) for device in (3, 4)]
    assert rows.further == {"why": ["a", None]}


def test_a_small_world_is_a_function_of_its_seed() -> None:
    first, again, other = (small_world([50.0, (30.0, 40.0)], seed=seed).run() for seed in (1, 1, 2))
    assert first.rows.of == again.rows.of
    assert [row.distance_m for row in first.rows.of[DeviceRound]] == [50.0, 50.0]
    assert first.rows.of != other.rows.of
