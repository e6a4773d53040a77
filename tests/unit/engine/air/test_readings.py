"""Compare the times of gain updates and link failures with times derived by hand.

The fading of a device with Doppler speed 0 never changes: a transfer moves W log2(1 + snr |h|^2) tau bits in each
slot, with the snr of the place where the device was at the last reading, a multiple of 0.2 s.
"""

import math
from typing import Any

import pytest

from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.air.radio_sections import LinkSettings
from edgefl.engine.records import DeviceRound, Event, Round
from edgefl.testing import Scripted, SmallWorld, small_world
from tests.unit.engine.moving import Going

SLOT_S, READING_SLOTS, T310_SLOTS = 0.5e-3, 400, 2000
SERVER_W, RX_W = 10 ** (43 / 10) / 1000, 0.1
EXACT = 1e-9
BITS = 100_000_000
FOLLOW = {"monitoring": {"gain_reading": "interval"}}


@pytest.fixture(autouse=True)
def without_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an SNR gap, a link is out of sync below the SNR at which CQI 1's rate is Shannon's capacity."""
    monkeypatch.setattr(LinkSettings, "snr_gap_db", 0.0)


def world(first_m: float, then_m: float, at_s: float, up_bits: int = 0, **radio: Any) -> SmallWorld:
    mobility = Going(steps=[[(0.0, first_m), (at_s, then_m)]])
    learner = Scripted(work=(1, 0, BITS, up_bits))
    return small_world([50.0], learner=learner, devices={"mobility": mobility}, radio=radio).run()


def snr(small: SmallWorld, distance_m: float, power_w: float = SERVER_W) -> float:
    loss_db = float(UMi().path_loss_db(distance_m, carrier_hz=3.5e9))
    h2 = float(small.simulation.radio.fading(0, 0).power(0, 1)[0])
    return power_w * 10 ** (-loss_db / 10) / (10 ** ((-174 - 30) / 10) * 10e6) * h2


def bits_per_slot(small: SmallWorld, distance_m: float) -> float:
    return 10e6 * SLOT_S * math.log2(1 + snr(small, distance_m))


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_a_transfer_has_the_gain_of_the_last_reading(sharing: str) -> None:
    """From the next reading on, in slot 800, a device that moved from 50 to 240 m at 0.3 s has the rate at 240 m."""
    small = world(50.0, 240.0, 0.3, sharing=sharing, **FOLLOW)
    (row,) = small.rows.of[DeviceRound]
    before = 2 * READING_SLOTS * bits_per_slot(small, 50.0)
    slots = 2 * READING_SLOTS + math.ceil((BITS - before) / bits_per_slot(small, 240.0))
    assert before < BITS
    assert row.downlink_end_s == pytest.approx(slots * SLOT_S, abs=EXACT)
    assert row.energy_rx_j == pytest.approx(RX_W * slots * SLOT_S)
    frozen = world(50.0, 240.0, 0.3, sharing=sharing)
    (row,) = frozen.rows.of[DeviceRound]
    assert row.downlink_end_s == pytest.approx(math.ceil(BITS / bits_per_slot(small, 50.0)) * SLOT_S)


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_a_link_below_the_lowest_rate_carries_nothing_until_a_reading_finds_it_better(sharing: str) -> None:
    weak = {
        "monitoring": {"t310_s": 1.0, **FOLLOW["monitoring"]},
        "budget": {"server_power_dbm": -22.0},
        "sharing": sharing,
    }
    small = world(240.0, 11.0, 0.3, **weak)
    weak_w = 10 ** (-22 / 10) / 1000
    # CQI 1, QPSK at 78/1024, has an efficiency of 0.1523 bit/s/Hz
    lowest = 2**0.1523 - 1
    assert snr(small, 240.0, weak_w) < lowest < snr(small, 11.0, weak_w)
    carried = 10e6 * SLOT_S * math.log2(1 + snr(small, 11.0, weak_w))
    (row,) = small.rows.of[DeviceRound]
    slots = 2 * READING_SLOTS + math.ceil(BITS / carried)
    assert row.downlink_end_s == pytest.approx(slots * SLOT_S, abs=EXACT)
    assert row.outcome == "completed"


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
@pytest.mark.parametrize("moves", [True, False])
def test_a_link_fails_after_t310_with_what_it_did_booked(sharing: str, moves: bool) -> None:
    """A link below the lowest rate from 0.3 s on, as noticed at 0.4 s, fails at 1.4 s, and ends the round."""
    first_m = 11.0 if moves else 240.0
    options = {
        "monitoring": {"t310_s": 1.0, **FOLLOW["monitoring"]},
        "budget": {"server_power_dbm": -22.0},
        "sharing": sharing,
    }
    small = world(first_m, 240.0, 0.3, **options)
    weak_w = 10 ** (-22 / 10) / 1000
    stalled = 2 * READING_SLOTS if moves else 0
    end_s = (stalled + T310_SLOTS) * SLOT_S
    carried = stalled * 10e6 * SLOT_S * math.log2(1 + snr(small, first_m, weak_w))
    (row,), (round_,) = small.rows.of[DeviceRound], small.rows.of[Round]
    assert row.outcome == "failed_downlink"
    assert row.downlink_end_s == pytest.approx(end_s, abs=EXACT)
    assert row.downlink_bits == int(carried)
    assert row.energy_rx_j == pytest.approx(RX_W * end_s)
    assert round_.latency_s == pytest.approx(end_s, abs=EXACT)
    (event,) = [one for one in small.rows.of[Event] if one.event == "radio_link_failure"]
    assert (event.time_s, event.device, event.cell) == (pytest.approx(end_s, abs=EXACT), 0, 0)


def test_after_a_failure_the_device_is_away_for_the_interruption() -> None:
    """The second round begins 50 ms after the link has failed at 1 s, when the device has a link again."""
    weak = {"monitoring": {"t310_s": 1.0}, "budget": {"server_power_dbm": -40.0}}
    small = small_world(
        [240.0],
        learner=Scripted(work=(1, 0, BITS, 0)),
        radio=weak,
        policy={"name": "schedule", "count": 1, "rounds": 2},
    ).run()
    first, second = small.rows.of[Round]
    assert first.end_s == pytest.approx(1.0, abs=EXACT)
    assert second.start_s == pytest.approx(1.05, abs=EXACT)


def test_an_uplink_fails_by_the_power_of_the_device() -> None:
    small = world(
        240.0, 240.0, 9.0, up_bits=1000, monitoring={"t310_s": 0.1}, budget={"server_power_dbm": 43.0}
    )
    assert small.rows.of[DeviceRound][0].outcome == "completed"
    small = small_world(
        [240.0],
        learner=Scripted(work=(1, 0, 1000, 1000)),
        devices={"transmit_power_dbm": -40.0},
        radio={"monitoring": {"t310_s": 0.1}},
    ).run()
    (row,) = small.rows.of[DeviceRound]
    assert (row.outcome, row.uplink_bits) == ("failed_uplink", 0)
    start_s, end_s = row.uplink_start_s, row.uplink_end_s
    assert (end_s or 0.0) - (start_s or 0.0) == pytest.approx(0.1, abs=EXACT)
    assert row.energy_tx_j == pytest.approx(1e-7 * 0.1)
