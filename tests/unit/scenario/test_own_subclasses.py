"""Test that a user's subclass of a shipped component behaves as the component that it extends."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from edgefl.channel.carrier import Carrier
from edgefl.channel.path_loss.uma import UMa
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.schedulers import Flows
from edgefl.channel.schedulers.max_rate import MaxRate
from edgefl.channel.schedulers.min_max_latency import MinMaxLatency
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.engine.churn.always_on import AlwaysOn
from edgefl.engine.selectors.least_time import LeastTime
from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from tests.refusals import refused_at

SMALL: dict[str, Any] = {
    "name": "small",
    "devices": {"count": 4},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1},
}


@dataclass(frozen=True)
class Street(UMi):
    """UMi under another name."""


@dataclass(frozen=True)
class Roofs(UMa):
    """UMa under another name."""


@dataclass(frozen=True)
class Walled(UMi):
    """UMi with a loss that the radio does not read."""

    def path_loss_db(self, distance_2d_m: Any, **radio: Any) -> np.ndarray:
        return super().path_loss_db(distance_2d_m, **radio) + 20.0


@dataclass(frozen=True)
class Together(MinMaxLatency):
    """Min-max latency under another name."""


class Quickest(LeastTime):
    """Least time under another name."""


class Evenings(AlwaysOn):
    """Switch devices on after an hour."""

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        yield 3600.0


def made(**sections: Any) -> Scenario:
    return Scenario.model_validate({**SMALL, **sections})


def named(component: type) -> str:
    return f"{component.__module__}:{component.__name__}"


@pytest.mark.parametrize(("own", "shipped"), [(Street, "umi"), (Roofs, "uma")])
def test_a_preset_treats_a_subclass_as_its_path_loss(own: type, shipped: str) -> None:
    ours, theirs = (made(radio={"path_loss": law}) for law in (named(own), shipped))
    assert ours.devices == theirs.devices
    assert ours.devices.indoor_share == 0.8
    assert ours.radio.budget == theirs.radio.budget
    assert ours.radio.link == theirs.radio.link


def test_a_preset_fixes_the_shares_that_a_subclass_of_a_decider_sets() -> None:
    ours, theirs = (
        made(rounds={"selector": {"name": name, "count": 2}}) for name in (named(Quickest), "least_time")
    )
    assert ours.radio.sharing == theirs.radio.sharing == "static"


@pytest.mark.parametrize("given", [["shares"], ("shares",), {"shares"}])
def test_what_a_decider_sets_may_be_any_collection(given: Any) -> None:
    assert type("Own", (LeastTime,), {"sets": given, "__module__": __name__}).sets == {"shares"}


@pytest.mark.parametrize("given", ["shares", {"share"}, 3])
def test_what_a_decider_sets_has_known_names(given: Any) -> None:
    with pytest.raises(ValueError, match=r"Own.sets is .*: write a set of names from clock, power, shares"):
        type("Own", (LeastTime,), {"sets": given, "__module__": __name__})


def test_a_subclass_of_a_scheduler_needs_the_rates_of_its_base() -> None:
    with refused_at("radio", "Together supports only Shannon's rates: set link.rates: shannon"):
        made(radio={"scheduler": named(Together)})
    with refused_at("radio", "Together supports only flat fading: set link.frequency_taps: 1"):
        made(radio={"scheduler": named(Together), "link": {"rates": "shannon", "frequency_taps": 4}})


def test_a_path_loss_that_a_run_would_ignore_is_refused() -> None:
    with refused_at(
        "radio.path_loss", "Walled defines path_loss_db(), but a run computes the loss from lines()"
    ):
        World(made(radio={"path_loss": named(Walled)}), Streams(1)).extent.check()


def test_the_switches_of_a_subclass_of_always_on_are_used() -> None:
    fleet = World(made(devices={"count": 2, "churn": named(Evenings)}), Streams(1)).fleet
    assert [list(times) for times in fleet.switches(Streams(1))] == [[3600.0], [3600.0]]


@pytest.mark.parametrize("base", [ProportionalFair, MaxRate, RoundRobin])
def test_blocks_are_given_in_the_order_of_a_subclasss_shares(base: Any) -> None:
    @dataclass(frozen=True)
    class Last(base):
        """Give everything to the flow that joined last."""

        def shares(self, flows: Flows) -> np.ndarray:
            return np.eye(len(flows))[-1]

    best_first = Flows(
        Carrier(10e6, 0.5e-3),
        snr=np.array([30.0, 20.0, 10.0]),
        remaining_bits=np.full(3, 1e6),
        efficiency=np.array([3.0, 2.0, 1.0]),
        average=np.ones(3),
        airtime=np.zeros(3),
    )
    assert base().order(best_first)[0] == 0
    assert Last().order(best_first)[0] == 2
