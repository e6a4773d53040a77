"""Compare a model's broadcast, over links of constant fading, with hand-derived times, bits and energies."""

import math
from typing import Any

import pytest

from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.records import DeviceRound, Event, Round
from edgefl.testing import PAYLOAD_BITS, Scripted, SmallWorld, small_world
from edgefl.testing.cell import within
from tests.refusals import refused_at

SLOT_S, SERVER_W, RX_W = 0.5e-3, 10 ** (43 / 10) / 1000, 0.1
PLACES = [50.0, 120.0, 180.0, 240.0]
BITS = 20_000_000


def world(quantile: float, sharing: str = "static", **options: object) -> SmallWorld:
    learner = Scripted(work=(1, 0, BITS, 0))
    radio = {"downlink": "broadcast", "sharing": sharing}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RadioSettings, "broadcast_quantile", quantile)
        return small_world(PLACES, learner=learner, radio=radio, **options).run()


def rate(small: SmallWorld, device: int, share: float = 1.0) -> float:
    """Return a device's bits per slot at full power on a share of 10 MHz, from its |h|^2 and its distance."""
    loss_db = float(UMi().path_loss_db(PLACES[device], carrier_hz=3.5e9))
    h2 = float(small.simulation.radio.fading(device, 0).power(0, 1)[0])
    snr = SERVER_W * 10 ** (-loss_db / 10) / (10 ** ((-174 - 30) / 10) * 10e6 * share)
    return share * 10e6 * SLOT_S * math.log2(1 + snr * h2)


def test_at_the_worst_rate_all_have_it_at_once() -> None:
    small = world(0.0)
    slots = math.ceil(BITS / min(rate(small, device) for device in range(4)))
    rows, (round_,) = small.rows.of[DeviceRound], small.rows.of[Round]
    assert [row.downlink_end_s for row in rows] == pytest.approx([slots * SLOT_S] * 4, abs=1e-9)
    assert [row.downlink_bits for row in rows] == [BITS] * 4
    assert round_.energy_server_j == pytest.approx(SERVER_W * slots * SLOT_S)


def test_what_goes_to_all_is_in_no_beam_and_on_one_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RadioSettings, "broadcast_quantile", 0.0)
    cqi: dict[str, Any] = {"link": {"rates": "cqi"}, "monitoring": {"t310_s": 1.0}}
    beams = {"budget": {"array_gain_db": 15.0}, "link": {"downlink_layers": 4}}
    plain, beamed = (
        small_world(
            PLACES,
            learner=Scripted(work=(1, 0, BITS, 0)),
            radio={"downlink": "broadcast", **within(cqi, keys)},
        ).run()
        for keys in ({}, beams)
    )
    ends = [[row.downlink_end_s for row in small.rows.of[DeviceRound]] for small in (plain, beamed)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_who_lacks_something_at_the_end_gets_it_by_unicast(sharing: str) -> None:
    """The broadcast has the second-fastest device's rate; the two slower devices get the rest by unicast."""
    small = world(0.67, sharing)
    rates = [rate(small, device) for device in range(4)]
    order = sorted(range(4), key=lambda device: rates[device])
    slots = math.ceil(BITS / rates[order[2]])
    ends, sent_slots = {}, slots
    if sharing == "static":
        for device in range(4):
            missing = math.ceil(max(0.0, BITS - slots * rates[device] * (1 + 1e-12)))
            repair = math.ceil(missing / rate(small, device, 0.5))
            ends[device] = slots + repair
            sent_slots += repair
        rows, (round_,) = small.rows.of[DeviceRound], small.rows.of[Round]
        found = [row.downlink_end_s for row in rows]
        assert found == pytest.approx([ends[device] * SLOT_S for device in range(4)], abs=1e-9)
        assert [row.energy_rx_j for row in rows] == pytest.approx([RX_W * end_s for end_s in found if end_s])
        assert round_.energy_server_j == pytest.approx(SERVER_W * sent_slots * SLOT_S)
    rows = small.rows.of[DeviceRound]
    at_once = {row.device for row in rows if row.downlink_end_s == pytest.approx(slots * SLOT_S)}
    assert at_once == set(order[2:])
    assert [row.downlink_bits for row in rows] == [BITS] * 4


def test_who_is_cut_off_has_what_was_sent_until_then() -> None:
    small = world(0.0, rules={"deadline_s": 100 * SLOT_S})
    rows = small.rows.of[DeviceRound]
    assert [row.outcome for row in rows] == ["late_downlink"] * 4
    assert [row.downlink_bits for row in rows] == [
        pytest.approx(min(BITS, 100 * rate(small, device)), abs=1) for device in range(4)
    ]


def test_different_models_are_not_broadcast() -> None:
    learner = Scripted(work=(1, 0, BITS, 0), of={1: (1, 0, PAYLOAD_BITS, 0)})
    with refused_at("radio.downlink", "unicast"):
        small_world(PLACES, learner=learner, radio={"downlink": "broadcast"}).run()


def test_nobody_below_the_lowest_rate_holds_up_a_broadcast_or_is_forgotten() -> None:
    """If all devices are out of range, nothing is broadcast, and every link fails after T310."""
    radio = {
        "downlink": "broadcast",
        "link": {"rates": "cqi"},
        "monitoring": {"t310_s": 0.1},
        "budget": {"server_power_dbm": -40.0},
    }
    small = small_world([240.0, 245.0], learner=Scripted(work=(1, 0, BITS, 0)), radio=radio).run()
    assert [row.outcome for row in small.rows.of[DeviceRound]] == ["failed_downlink"] * 2
    assert len([one for one in small.rows.of[Event] if one.event == "radio_link_failure"]) == 2
    assert [row.downlink_end_s for row in small.rows.of[DeviceRound]] == pytest.approx([0.1] * 2)


def test_a_broadcast_does_not_wait_for_who_is_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under fading, the far device's mean rate is so close to 0 that a broadcast at this rate would not end."""
    monkeypatch.setattr(RadioSettings, "broadcast_quantile", 0.0)
    radio: dict[str, Any] = {"downlink": "broadcast", "link": {"rates": "cqi"}, "monitoring": {"t310_s": 0.1}}
    learner = Scripted(work=(1, 0, BITS, 0))
    radio |= {"budget": {"server_power_dbm": -20.0}}
    small = small_world([11.0, 245.0], learner=learner, radio=radio, doppler_speed_m_s=10.0).run()
    near, far = small.rows.of[DeviceRound]
    assert (near.outcome, far.outcome) == ("completed", "failed_downlink")
    assert near.downlink_end_s is not None
    assert far.downlink_end_s == pytest.approx(near.downlink_end_s + 0.1, abs=1e-9)
