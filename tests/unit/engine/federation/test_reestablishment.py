"""Test at times derived by hand how a device recovers from link failures: to another cell, the same cell, or none.

Two sites, 251 m apart, send with -22 dBm: a device receives 11 m from a site, but not 240 m away. Device 0 starts
11 m from site 0 and leaves at 0.3 s. Its gain is read every 0.2 s: after 0.4 s nothing is received, at 1.4 s the
link fails, and from then on the device tries the strongest cell every 0.4 s. The fading of a device with Doppler
speed 0 never changes: a slot carries W log2(1 + snr |h|^2) tau bits.
"""

import math
from typing import Any

import numpy as np
import pytest

from edgefl.channel.path_loss.umi import UMi
from edgefl.engine.air.radio_sections import LinkSettings
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.power_models.phone_5g import Phone5G
from edgefl.engine.records import DeviceRound, Event, LedgerRow, Round
from edgefl.testing import Scripted, SmallWorld, small_world
from edgefl.testing.cell import within
from tests.tools.constants import with_constants
from tests.unit.engine.moving import Going

SLOT_S, LOST, FAILED, FOUND = 0.5e-3, 800, 2800, 3600
# most bits that a survey's error of 1e-3 dB adds to a slot: d log2(1 + snr) < d ln(snr) / ln 2
SURVEYED_BITS = 10e6 * SLOT_S * 1e-3 * math.log(10) / 10 / math.log(2)
WEAK_DBM = -22.0
WEAK_W, RX_W, IDLE_W = 10 ** (WEAK_DBM / 10) / 1000, 0.1, 0.01
CIRCUIT_W = 0.05
EXACT = 1e-9
BITS = 20_000_000
SITES: dict[str, Any] = {"sites": [[0.0, 0.0], [251.0, 0.0]], "radius_m": 400.0}
TAIL = with_constants(Phone5G, receive_w_per_mbit_s=0.0, tail_s=10, tail_w=1)()
NEAR_0, NEAR_1, NOWHERE = 11.0, 240.0, -240.0  # x in m; NOWHERE is far from all sites


@pytest.fixture(autouse=True)
def without_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an SNR gap, a link is out of sync below the SNR at which CQI 1's rate is Shannon's capacity."""
    monkeypatch.setattr(LinkSettings, "snr_gap_db", 0.0)


def world(
    *later: tuple[float, float],
    work: tuple[int, int, int, int] = (1, 0, BITS, 0),
    radio: dict[str, Any] | None = None,
    handover: dict[str, Any] | None = None,
    devices: dict[str, Any] | None = None,
    **sections: Any,
) -> SmallWorld:
    """Return a world of one round with device 0 near site 0, and then at these places."""
    return small_world(
        [NEAR_0],
        learner=Scripted(work=work),
        devices={"mobility": Going(steps=[[(0.0, NEAR_0), *later]]), **(devices or {})},
        radio=within(
            {
                "propagation": {"shadowing": "spatial"},
                "monitoring": {"gain_reading": "interval", "t310_s": 1.0, "t311_s": 3.0},
                "budget": {"server_power_dbm": WEAK_DBM},
            },
            radio or {},
        ),
        handover={"policy": "finish", "time_to_trigger_s": 5.12, **(handover or {})},
        layout=SITES,
        **sections,
    )


def bits_per_slot(small: SmallWorld, cell: int, power_w: float = WEAK_W) -> float:
    """Return the bits of a slot at 11 m from a cell's site."""
    loss_db = float(UMi().path_loss_db(11.0, carrier_hz=3.5e9))
    h2 = float(small.simulation.radio.fading(0, cell).power(0, 1)[0])
    snr = power_w * 10 ** (-loss_db / 10) / (10 ** ((-174 - 30) / 10) * 10e6) * h2
    return 10e6 * SLOT_S * math.log2(1 + snr)


def row(small: SmallWorld) -> DeviceRound:
    (found,) = small.rows.of[DeviceRound]
    return found  # type: ignore[no-any-return]


def events(small: SmallWorld) -> list[tuple[str, float, int | None]]:
    """Return event, time and cell of the device's events."""
    return [
        (str(one.event), pytest.approx(one.time_s, abs=EXACT), one.cell)
        for one in small.rows.of[Event]
        if one.device == 0
    ]


def stalls(small: SmallWorld) -> list[float]:
    return [small.rows.further[name][0] for name in ("stalled_s", "stalled_j", "link_failures")]


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
@pytest.mark.parametrize("trigger_s", [5.12, 0.1])
def test_a_transfer_goes_on_at_another_cell_with_what_is_missing(sharing: str, trigger_s: float) -> None:
    """The device finds site 1 at 1.8 s and receives the rest there; the pending handover is cancelled."""
    small = world((0.3, NEAR_1), radio={"sharing": sharing}, handover={"time_to_trigger_s": trigger_s}).run()
    before = int(LOST * bits_per_slot(small, 0))
    end = FOUND + math.ceil((BITS - before) / bits_per_slot(small, 1))
    assert 0 < before < BITS
    part = row(small)
    assert (part.outcome, part.downlink_bits, part.cell) == ("completed", BITS, 0)
    assert part.downlink_end_s == pytest.approx(end * SLOT_S, abs=EXACT)
    assert part.energy_rx_j == pytest.approx(RX_W * end * SLOT_S)
    assert stalls(small) == pytest.approx([1.4, 1.4 * RX_W, 1])
    assert events(small) == [("radio_link_failure", 1.4, 0), ("reestablished", 1.8, 1), ("handover", 1.8, 1)]
    lost, again, moved = (one for one in small.rows.of[Event] if one.device == 0)
    assert (again.from_cell, moved.from_cell) == (0, 0)
    assert (again.interruption_s, moved.interruption_s) == (pytest.approx(0.4, abs=EXACT), 0.0)
    assert moved.stay_s == pytest.approx(lost.time_s)


def test_what_the_rule_of_handovers_says_of_the_part_it_says_here() -> None:
    """With policy `drop`, the device's work ends as soon as the device is in another cell."""
    small = world((0.3, NEAR_1), handover={"policy": "drop"}).run()
    part = row(small)
    assert part.outcome == "left_downlink"
    assert part.downlink_bits == pytest.approx(LOST * bits_per_slot(small, 0), abs=1 + LOST * SURVEYED_BITS)
    assert part.downlink_end_s == pytest.approx(1.8, abs=EXACT)
    assert part.energy_rx_j == pytest.approx(RX_W * 1.8)
    assert small.simulation.network.present(1) == [0]


def test_who_works_for_another_cell_is_not_yet_there_for_its_own() -> None:
    small = world((0.3, NEAR_1))
    small.env.process(small.server.run())
    small.env.run(until=1.9)
    network = small.simulation.network
    assert network.serving(np.array([0])).tolist() == [1]
    assert network.present(0) == network.present(1) == []
    woken: list[float] = []
    network.arrival(1).callbacks.append(lambda _: woken.append(small.env.now))
    small.env.run(until=row_end_s(small) + EXACT)
    assert network.present(1) == [0]
    assert woken == [pytest.approx(row_end_s(small), abs=EXACT)]


def row_end_s(small: SmallWorld) -> float:
    before = int(LOST * bits_per_slot(small, 0))
    return (FOUND + math.ceil((BITS - before) / bits_per_slot(small, 1))) * SLOT_S


@pytest.mark.parametrize("policy", ["drop", "finish"])
def test_a_transfer_goes_on_at_the_same_cell(policy: str) -> None:
    small = world((0.3, NOWHERE), (1.5, NEAR_0), handover={"policy": policy}).run()
    bits = bits_per_slot(small, 0)
    end = FOUND + math.ceil((BITS - int(LOST * bits)) / bits)
    assert row(small).outcome == "completed"
    assert row(small).downlink_end_s == pytest.approx(end * SLOT_S, abs=EXACT)
    assert events(small) == [("radio_link_failure", 1.4, 0), ("reestablished", 1.8, 0)]


def test_an_uplink_sends_with_the_devices_power_and_listens_in_between() -> None:
    """Slots 1 to 799 carry bits, slots 800 to 2799 carry none, and a receiver searches for 0.4 s."""
    small = world(
        (0.3, NEAR_1),
        work=(1, 0, 1000, BITS),
        radio={"budget": {"server_power_dbm": 43.0}},
        devices={"transmit_power_dbm": WEAK_DBM, "uplink_circuit_power_w": CIRCUIT_W},
    ).run()
    part = row(small)
    before = int((LOST - 1) * bits_per_slot(small, 0))
    after = math.ceil((BITS - before) / bits_per_slot(small, 1))
    assert (part.outcome, part.uplink_bits) == ("completed", BITS)
    assert part.uplink_end_s == pytest.approx((FOUND + after) * SLOT_S, abs=EXACT)
    sent_s = (FAILED - 1 + after) * SLOT_S
    assert part.energy_tx_j == pytest.approx((WEAK_W + CIRCUIT_W) * sent_s + RX_W * 0.4)
    assert stalls(small) == pytest.approx([1.4, (WEAK_W + CIRCUIT_W) * 1.0 + RX_W * 0.4, 1])
    circuit_j = small.simulation.ledger.circuits()["circuit_j"]
    assert circuit_j == pytest.approx([CIRCUIT_W * sent_s + RX_W * 0.4])  # it searches without sending


def test_without_any_cell_a_device_waits_for_the_deadline() -> None:
    """The receiver is on until T311 ends at 4.4 s; then the device is idle until 6 s. The battery's level agrees."""
    devices = {"idle_power_w": IDLE_W, "battery_j": 10.0}
    small = world((0.3, NOWHERE), rules={"deadline_s": 6.0}, devices=devices).run()
    part, (round_,) = row(small), small.rows.of[Round]
    assert part.outcome == "late_downlink"
    assert part.downlink_bits == pytest.approx(LOST * bits_per_slot(small, 0), abs=1 + LOST * SURVEYED_BITS)
    assert part.downlink_end_s == pytest.approx(6.0, abs=EXACT)
    assert round_.latency_s == pytest.approx(6.0, abs=EXACT)
    assert part.energy_rx_j == pytest.approx(RX_W * 4.4 + IDLE_W * 1.6)
    assert stalls(small) == pytest.approx([5.6, RX_W * 4.0 + IDLE_W * 1.6, 1])
    (charge,) = small.simulation.network.power.charges()
    assert charge is not None
    assert 10.0 - charge.left_j == pytest.approx(part.energy_rx_j)
    assert events(small) == [("radio_link_failure", 1.4, 0)]


def test_who_stands_still_where_nothing_carries_does_not_measure_again() -> None:
    """Attempts are every 0.4 s from 1.8 s on, but only attempts after a move, at 1.8 and 3.0 s, measure."""
    small = world((0.3, NOWHERE), (2.9, NOWHERE - 1.0), rules={"deadline_s": 6.0})
    measured_s, network = [], small.simulation.network
    best_cell = network.best_cell

    def counted(device: int) -> int | None:
        measured_s.append(network.env.now)
        return best_cell(device)

    network.best_cell = counted  # type: ignore[method-assign]
    small.run()
    assert measured_s[:2] == [pytest.approx(1.8), pytest.approx(3.0)]
    assert all(time_s >= 6.0 for time_s in measured_s[2:])


def test_where_nobody_moves_one_attempt_tells_all() -> None:
    """After T310 (1 s) and T311 (until 4 s), a static device makes no attempts in a million idle seconds."""
    small = small_world(
        [240.0],
        learner=Scripted(work=(1, 0, BITS, 0)),
        radio={"budget": {"server_power_dbm": -40.0}, "monitoring": {"t310_s": 1.0, "t311_s": 3.0}},
        devices={"idle_power_w": IDLE_W},
        rules={"deadline_s": 1e6},
    )
    before = next(small.env._eid)
    small.run()
    assert next(small.env._eid) - before < 50
    part = row(small)
    assert (part.outcome, part.downlink_bits) == ("late_downlink", 0)
    assert part.downlink_end_s == pytest.approx(1e6)
    assert part.energy_rx_j == pytest.approx(RX_W * 4.0 + IDLE_W * (1e6 - 4.0))
    assert stalls(small) == pytest.approx([1e6, RX_W * 4.0 + IDLE_W * (1e6 - 4.0), 1])


def test_before_a_deadline_an_idle_device_goes_on_looking() -> None:
    """T311 ends at 4.4 s, but the attempt at 5.4 s finds the cell to which the device returned at 5.1 s."""
    small = world((0.3, NOWHERE), (5.1, NEAR_0), rules={"deadline_s": 60.0}).run()
    assert events(small) == [("radio_link_failure", 1.4, 0), ("reestablished", 5.4, 0)]
    bits = bits_per_slot(small, 0)
    end_s = 5.4 + math.ceil((BITS - int(LOST * bits)) / bits) * SLOT_S
    assert row(small).outcome == "completed"
    assert row(small).downlink_end_s == pytest.approx(end_s, abs=EXACT)
    assert row(small).energy_rx_j == pytest.approx(RX_W * (end_s - 1.0))


def test_without_a_deadline_the_part_is_over_with_t311() -> None:
    """The device's work ends at 4.4 s, and the device has a cell again after a handover's interruption."""
    policy = {"name": "schedule", "count": 1, "rounds": 2}
    small = world((0.3, NOWHERE), policy=policy).run()
    first, second = small.rows.of[DeviceRound]
    assert first.outcome == "failed_downlink"
    assert first.downlink_end_s == pytest.approx(4.4, abs=EXACT)
    assert first.energy_rx_j == pytest.approx(RX_W * 4.4)
    assert small.rows.of[Round][1].start_s == pytest.approx(4.45, abs=EXACT)
    assert second.outcome == "failed_downlink"


def test_who_has_given_up_selects_the_strongest_cell() -> None:
    """With 0.1 uW and 40 dB of interference, no site hears the device: from slot 1, T310 takes 1 s, T311 3 s."""
    small = world(
        (0.3, NEAR_1),
        work=(1, 0, 1000, BITS),
        radio={"budget": {"server_power_dbm": 43.0, "interference_margin_db": 40.0}},
        devices={"transmit_power_dbm": -40.0},
        handover={"handover_latency_s": 0.25},
    ).run()
    part = row(small)
    assert (part.outcome, part.uplink_bits) == ("failed_uplink", 0)
    assert part.uplink_end_s == pytest.approx(4.0005, abs=EXACT)
    assert events(small) == [("radio_link_failure", 1.0005, 0), ("handover", 4.0005, 1)]
    moved = next(one for one in small.rows.of[Event] if one.event == "handover")
    assert (moved.stay_s, moved.interruption_s) == (pytest.approx(1.0005), 0.25)


@pytest.mark.parametrize("cause", ["empty", "off"])
def test_who_stops_amid_the_search_pays_until_then(cause: str) -> None:
    """The battery's 0.2 J last 2 s at 0.1 W, or the device is switched off at 2 s; ledger and battery agree."""
    devices: dict[str, Any] = {"battery_j": 0.2}
    sections: dict[str, Any] = {}
    if cause == "off":
        devices, sections = {}, {"switches_s": [[0.0, 2.0, 2.5]]}
    small = world((0.3, NOWHERE), (2.2, NEAR_0), devices=devices, **sections)
    small.env.process(small.server.run())
    small.env.run(until=3.0)
    part = row(small)
    assert part.outcome == f"{cause}_downlink"
    assert part.downlink_end_s == pytest.approx(2.0, abs=EXACT)
    assert part.energy_rx_j == pytest.approx(0.2)
    assert small.simulation.network.present(0) == ([0] if cause == "off" else [])
    if cause == "empty":
        (charge,) = small.simulation.network.power.charges()
        assert charge is not None
        assert charge.left_j == pytest.approx(0.0, abs=EXACT)


def test_a_stall_that_ends_before_t310_is_counted_too() -> None:
    """A device that is away from 0.3 to 0.7 s, as read at 0.4 and 0.8 s, receives nothing for 0.4 s."""
    small = world((0.3, NOWHERE), (0.7, NEAR_0)).run()
    assert row(small).outcome == "completed"
    assert stalls(small) == pytest.approx([0.4, 0.4 * RX_W, 0])
    assert events(small) == []


def test_the_sites_send_while_there_is_a_link() -> None:
    """With power per resource block, site 0 sends for 1.4 s, and site 1 until the transfer ends."""
    small = world((0.3, NEAR_1), radio={"budget": {"power_over_share": "per_resource_block"}}).run()
    sent_s = row_end_s(small) - 0.4
    (round_,) = small.rows.of[Round]
    assert round_.energy_server_j == pytest.approx(WEAK_W * sent_s)


def test_the_ledger_has_what_passed_without_a_link() -> None:
    small = world((0.3, NEAR_1)).run()
    ledger, power = small.simulation.ledger, small.simulation.network.power
    assert {name: of[0] for name, of in ledger.stalls().items()} == pytest.approx(
        {"stalled_s": 1.4, "stalled_j": 1.4 * RX_W}
    )
    (booked,) = ledger.rows(power.running_s(), 0.0)
    assert isinstance(booked, LedgerRow)
    assert booked.receive_j == pytest.approx(RX_W * row_end_s(small))
    assert booked.wasted_j == 0.0


def test_the_preset_looks_for_a_cell_and_the_journals_links_never_fail() -> None:
    nr, journal = (RadioSettings(preset=preset).monitoring for preset in ("nr", "journal"))
    assert (nr.t310_s, nr.t311_s, nr.reestablishment_s) == (1.0, 3.0, 0.4)
    assert (journal.t310_s, journal.t311_s) == (None, 0.0)


def test_who_looks_for_a_cell_has_no_tail() -> None:
    """The base power of 3.52 W is drawn without a break; only the end of the transfer starts a tail, of 10 s."""
    small = world((0.3, NEAR_1), devices={"power": TAIL}).run()
    assert row(small).energy_rx_j == pytest.approx(3.52 * row_end_s(small))
    assert row(small).energy_tail_j == pytest.approx(10.0)


@pytest.mark.parametrize(
    "rules", [{"monitoring": {"t311_s": 0.0}}, {"monitoring": {"t311_s": 0.5}}], ids=["at once", "after T311"]
)
def test_what_ends_without_a_connection_has_no_tail(rules: dict[str, Any]) -> None:
    """No tail follows a failure, whether the device searches for another cell or gives up."""
    small = world((0.3, NOWHERE), devices={"power": TAIL}, radio=rules).run()
    assert row(small).outcome == "failed_downlink"
    assert row(small).energy_tail_j == 0.0
