"""Test churn models, which switch devices on and off."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgefl.engine.churn import Churn
from edgefl.engine.churn.always_on import AlwaysOn
from edgefl.engine.churn.availability_trace import AvailabilityTrace
from edgefl.engine.churn.client_pattern import ClientPattern
from edgefl.engine.churn.duty_cycle import DutyCycle
from edgefl.engine.churn.poisson import Poisson
from edgefl.engine.devices.battery import Battery
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.settings import DeviceSettings
from edgefl.rng import Streams
from tests.tools.derived import underived

DEVICES = 4000
SIGMAS = 4.5


def on_at(churn: Churn, time_s: float) -> np.ndarray:
    """Return whether each device is on at a time [devices]: it is on after an odd number of switches."""
    streams = Streams(11)
    counts = [
        sum(1 for _ in itertools.takewhile(lambda t: t <= time_s, churn.switches(device, streams)))
        for device in range(DEVICES)
    ]
    return np.array(counts) % 2 == 1


# models, and the share of devices that are on at any time
SHARES: list[tuple[Churn, float]] = [
    (AlwaysOn(), 1.0),
    (ClientPattern(sessions=[[0]]), 1.0),  # other tests check which devices may take part
    (DutyCycle(on_s=20.0, off_s=60.0), 20 / (20 + 60)),
    (Poisson(on_s=30, off_s=10), 30 / (30 + 10)),
]


def test_every_model_has_its_share() -> None:
    # a file has no formula for its share; test_availability_trace.py tests its times
    recorded = AvailabilityTrace(path=Path("a.json"))
    missing = underived("churn", [recorded, *(churn for churn, _ in SHARES)])
    assert not missing, f"derive the share of devices that are on, in SHARES of {__file__}: {missing}"


@pytest.mark.parametrize("time_s", [0.0, 50.0])
@pytest.mark.parametrize(("churn", "share"), SHARES)
def test_the_share_that_is_on_is_stationary(churn: Churn, share: float, time_s: float) -> None:
    spread = math.sqrt(share * (1 - share) / DEVICES)
    assert abs(on_at(churn, time_s).mean() - share) <= SIGMAS * spread


def test_poisson_lifetimes_are_exponential() -> None:
    times = list(itertools.islice(Poisson(on_s=3.0, off_s=1.0).switches(0, Streams(2)), 8001))
    spells = np.diff(times)
    lifetimes, absences = spells[::2], spells[1::2]
    for sample, mean in ((lifetimes, 3.0), (absences, 1.0)):
        assert abs(sample.mean() - mean) < SIGMAS * mean / math.sqrt(len(sample))
        # the exponential distribution has P(T > mean) = 1/e
        share = (sample > mean).mean()
        assert abs(share - math.exp(-1)) < SIGMAS * math.sqrt(math.exp(-1) * (1 - math.exp(-1)) / len(sample))


def test_duty_cycle_has_its_period_and_a_random_phase() -> None:
    churn = DutyCycle(on_s=20.0, off_s=60.0)
    times = list(itertools.islice(churn.switches(3, Streams(1)), 9))
    spells = np.diff(times)
    inner = spells[1:]  # time 0 cuts the first spell
    assert set(np.round(inner, 9)) == {20.0, 60.0}
    share = on_at(churn, 123.4).mean()
    assert abs(share - 0.25) < SIGMAS * math.sqrt(0.25 * 0.75 / DEVICES)


def test_client_pattern_names_the_devices_of_each_session() -> None:
    churn = ClientPattern(sessions=[[0, 4, 6, 7], [5]])
    assert [set(churn.members(s) or ()) for s in (1, 2, 3)] == [{0, 4, 6, 7}, {5}, {0, 4, 6, 7}]


def test_battery_by_hand() -> None:
    battery = Battery(10.0, recharge_w=1.0, return_share=0.5)
    battery.drain(0.0, 3.0)  # 3 W of load less 1 W of recharge are 2 W net
    assert battery.empty_s() == 5.0
    assert battery.level_j(2.0) == 6.0
    battery.drain(2.0, 0.5)  # the battery gains 0.5 W, up to its capacity
    assert battery.empty_s() == math.inf
    assert battery.level_j(4.0) == 7.0
    assert battery.level_j(100.0) == 10.0
    battery.drain(4.0, 8.0)  # 7 J last for 1 s at 7 W net
    assert battery.empty_s() == 5.0
    battery.drain(5.0, 0.0)
    assert battery.back_s() == 10.0
    assert Battery(10.0, 0.0, 0.5).back_s() == math.inf


def test_a_gap_that_rounding_closes_is_no_error() -> None:
    """After 10,000 days, a device that is off for 1 ns at midnight is switched off and on at the same time."""
    day_s, gap_s = 86_400.0, 1e-9
    times_s = [0.0, *(night * day_s + after for night in (1, 10_000) for after in (0.0, gap_s))]
    assert times_s[-1] == times_s[-2]

    class Nightly(Churn):
        def switches(self, device: int, streams: Streams) -> Iterator[float]:
            yield from times_s

    settings = DeviceSettings.model_validate({"count": 1}).model_copy(update={"churn": Nightly()})
    fleet = Fleet.drawn(settings, 1, Streams(1))
    assert [list(device) for device in fleet.switches(Streams(1))] == [times_s]
