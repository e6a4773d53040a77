"""Test flexible slots: on links that never change, the downlink has the slots without active uploads."""

import math
from typing import Any

import pytest

from edgefl.channel.carrier import Carrier
from edgefl.channel.path_loss.umi import UMi
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.tdd import Pattern
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.records import DeviceRound, Round
from edgefl.testing import Scripted, SmallWorld, small_world
from tests.refusals import refused_at
from tests.unit.engine.air.worlds import Steady

SLOT_S = 0.5e-3
PLACES = [50.0, 120.0]
FLEXIBLE: dict[str, Any] = {"sharing": "dynamic", "tdd": {"pattern": "F"}}
POWER_W = {"downlink": 10 ** (43 / 10) / 1000, "uplink": 10 ** (23 / 10) / 1000}


def test_a_flexible_slot_can_serve_either_direction_in_full() -> None:
    assert Pattern("F").flexible
    assert Pattern("F").weights("uplink") == Pattern("F").weights("downlink") == (1.0,)
    assert not Pattern("DDDSU").flexible
    with pytest.raises(ValueError, match="or be F \\(flexible\\)"):
        Pattern("DDF")


@pytest.mark.parametrize("scheduler", [EqualShare(), RoundRobin()])
@pytest.mark.parametrize("peeks", [[], [1, 3, 4, 7]])
def test_a_paused_band_serves_no_flow(scheduler: Any, peeks: list[int]) -> None:
    """A flow of 5 slots at 1 bit/s/Hz that pauses from slot 2 to slot 6 ends at slot 9."""
    band = SharedBand(scheduler, Carrier(1e6, 1e-3))
    band.add("a", 5e3, snr_whole_band=1.0, fading=Steady(), slot=0)
    for slot in range(9):
        if slot in (2, 6):
            band.pause(slot, slot == 2)
        if slot in peeks:
            assert band.next_end() == (None if 2 <= slot < 6 else (5 if slot < 2 else 9, ["a"]))
        assert band.settle(slot) == []
    assert band.settle(9) == ["a"]
    assert band.sent_slots == 5


def world(**radio: Any) -> SmallWorld:
    """Run a world where device 0 only downloads and device 1 only uploads, both from the same slot on."""
    learner = Scripted(of={0: (1, 0, 20_000_000, 0), 1: (1, 0, 0, 9_000_000)})
    return small_world(PLACES, learner=learner, radio=radio).run()


def slots(small: SmallWorld, device: int, direction: str, bits: int) -> int:
    loss_db = float(UMi().path_loss_db(PLACES[device], carrier_hz=3.5e9))
    h2 = float(small.simulation.radio.fading(device, 0).power(0, 1)[0])
    snr = POWER_W[direction] * 10 ** (-loss_db / 10) / (10 ** ((-174 - 30) / 10) * 10e6)
    return math.ceil(bits / (10e6 * SLOT_S * math.log2(1 + snr * h2)))


@pytest.mark.parametrize("scheduler", ["equal_share", "round_robin"])
def test_a_download_waits_for_the_uploads_of_its_cell(scheduler: str) -> None:
    flexible, apart = (
        world(**{**FLEXIBLE, "scheduler": scheduler, "tdd": tdd}) for tdd in ({"pattern": "F"}, None)
    )
    down, up = slots(apart, 0, "downlink", 20_000_000), slots(apart, 1, "uplink", 9_000_000)
    ends = [
        (small.rows.of[DeviceRound][0].downlink_end_s, small.rows.of[DeviceRound][1].uplink_end_s)
        for small in (flexible, apart)
    ]
    assert ends[0] == pytest.approx(((up + down) * SLOT_S, up * SLOT_S), abs=1e-9)
    assert ends[1] == pytest.approx((down * SLOT_S, up * SLOT_S), abs=1e-9)


@pytest.mark.parametrize("power", ["full", "per_resource_block"])
def test_the_site_pays_for_no_slot_of_an_upload(power: str) -> None:
    """A download that waits for uploads takes as many joules of the site as one in a band of its own."""
    flexible, apart = (
        world(**{**FLEXIBLE, "budget": {"power_over_share": power}, "tdd": tdd})
        for tdd in ({"pattern": "F"}, None)
    )
    sent_s = slots(apart, 0, "downlink", 20_000_000) * SLOT_S
    for small in (flexible, apart):
        (round_,) = small.rows.of[Round]
        assert round_.energy_server_j == pytest.approx(POWER_W["downlink"] * sent_s)


def test_flexible_slots_need_a_band_that_follows_the_data() -> None:
    with refused_at("tdd.pattern", "F follows the data", "set sharing: dynamic"):
        RadioSettings(preset="nr", sharing="static", tdd={"pattern": "F"})
    with refused_at("tdd.pattern", "F does not fit a broadcast", "set downlink: unicast"):
        RadioSettings(preset="nr", downlink="broadcast", tdd={"pattern": "F"})
