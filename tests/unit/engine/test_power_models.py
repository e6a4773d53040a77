"""Compare radio energy (powers, bits, waiting slots, tails) with derivations, and energy per bit as measured."""

import math
from typing import Any

import pytest

from edgefl.engine.power_models import Equipment
from edgefl.engine.power_models.phone_5g import Phone5G
from edgefl.engine.power_models.redcap import RedCap
from edgefl.engine.power_models.tr38840 import SLEEPS, TR38840
from edgefl.engine.records import DeviceRound, Event, LedgerRow, Round
from edgefl.engine.settings import DeviceSettings
from edgefl.testing import Scripted, SmallWorld, small_world
from tests.tools.constants import made

DOWN_BITS, UP_BITS = 3_000_000, 1_000_000
TWO_ROUNDS = {"name": "schedule", "count": 1, "rounds": 2}
PAUSE_S = 0.4
CAPACITY_J = 50.0
PHONE = Equipment(0.2, 1.0, 0.1, 0.0)


def run(
    power: Any, bits: tuple[int, int] = (DOWN_BITS, UP_BITS), **sections: Any
) -> tuple[list[DeviceRound], LedgerRow, SmallWorld]:
    """Run two rounds of one device with a pause of 0.4 s after each; return their rows and its ledger row."""
    battery_j, idle_power_w = sections.pop("battery_j", None), sections.pop("idle_power_w", 0.0)
    world = small_world(
        [50.0],
        learner=Scripted(work=(5, 640, *bits)),
        policy=TWO_ROUNDS,
        devices={"power": power, "battery_j": battery_j, "idle_power_w": idle_power_w},
        rules={"pause_s": PAUSE_S, "deadline_s": sections.pop("deadline_s", None)},
        **sections,
    ).run()
    power_ = world.simulation.network.power
    (row,) = world.simulation.ledger.rows(power_.running_s(), idle_power_w, power_.charges())
    return world.rows.of[DeviceRound], row, world


def gaps_s(rows: list[DeviceRound]) -> list[tuple[float, float]]:
    """Return how long the radio rests after each transfer of a round: while computing, and until the next round.

    The tail of the last transfer is not cut short by another transfer.
    """
    found = []
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        until_s = following.downlink_start_s if following else math.inf
        found.append((row.uplink_start_s - row.downlink_end_s, until_s - row.uplink_end_s))
    return found


def check_books(rows: list[DeviceRound], ledger: LedgerRow, tails_j: list[float]) -> None:
    """Each round includes the tails of its own transfers; ledger and battery agree with the rounds."""
    assert [row.energy_tail_j for row in rows] == pytest.approx(tails_j, rel=1e-12)
    for row in rows:
        parts_j = row.energy_rx_j + row.energy_tx_j + row.energy_compute_j + row.energy_tail_j
        assert row.energy_j == pytest.approx(parts_j, rel=1e-15)
    assert ledger.energy_j == pytest.approx(sum(row.energy_j for row in rows), rel=1e-14)
    assert ledger.total_j == ledger.energy_j + ledger.idle_j
    if ledger.left_j is not None:
        assert CAPACITY_J - ledger.left_j == pytest.approx(ledger.total_j, abs=1e-10 * CAPACITY_J)


def took_s(row: DeviceRound, stage: str) -> float:
    return float(getattr(row, f"{stage}_end_s") - getattr(row, f"{stage}_start_s"))


# three ways to run a round: by its plan, by processes, and by processes with a battery
@pytest.mark.parametrize(
    "how", [{}, {"deadline_s": 1e6}, {"battery_j": CAPACITY_J}], ids=["plan", "process", "battery"]
)
def test_a_phone_draws_a_base_power_and_joules_per_bit_and_then_a_tail(how: dict[str, Any]) -> None:
    rows, ledger, _ = run(made(Phone5G, tail_s=0.1, tail_w=2.0), **how)
    for row in rows:
        assert row.energy_rx_j == pytest.approx(3.52 * took_s(row, "downlink") + 1.7e-9 * DOWN_BITS)
        assert row.energy_tx_j == pytest.approx(3.52 * took_s(row, "uplink") + 5.7e-9 * UP_BITS)
    gaps = gaps_s(rows)
    # computing takes 0.08 s, and the pause 0.4 s
    assert [gap_s > 0.1 for of_round in gaps for gap_s in of_round] == [False, True, False, True]
    check_books(rows, ledger, [sum(2.0 * min(0.1, gap_s) for gap_s in of_round) for of_round in gaps])


@pytest.mark.parametrize(
    "how", [{}, {"deadline_s": 1e6}, {"battery_j": CAPACITY_J}], ids=["plan", "process", "battery"]
)
def test_the_states_of_tr_38840(how: dict[str, Any]) -> None:
    """A phone draws 300 units of 6 mW to receive, 700 to send at 23 dBm, 100 in other slots and for 50 ms afterwards,
    and in DRX 8.7625 units until 0.2 s have passed."""
    power = {"name": "tr38840", "inactivity_s": 0.05, "release_s": 0.2}
    rows, ledger, world = run(power, radio={"tdd": {"pattern": "DDUUU"}}, **how)
    for row in rows:
        for stage, joules, units, share in (
            ("downlink", row.energy_rx_j, 300, 2 / 5),
            ("uplink", row.energy_tx_j, 700, 3 / 5),
        ):
            lasted_s = took_s(row, stage)
            # whole TDD periods, except at both ends, where up to two slots are missing or added
            wanted_w = 6e-3 * (units * share + 100 * (1 - share))
            assert joules == pytest.approx(wanted_w * lasted_s, abs=6e-3 * 600 * 2 * 0.5e-3)
            airtime_s = (joules - 0.6 * lasted_s) / (6e-3 * (units - 100))
            assert airtime_s / 0.5e-3 == pytest.approx(round(airtime_s / 0.5e-3), abs=1e-6)  # whole slots
    drx_w = 6e-3 * (8 * 100 + 152 * 1 + 450) / 160

    def tail_j(gap_s: float) -> float:
        return 0.6 * min(gap_s, 0.05) + drx_w * (min(gap_s, 0.2) - min(gap_s, 0.05))

    check_books(rows, ledger, [sum(map(tail_j, of_round)) for of_round in gaps_s(rows)])
    # power is linear in the transmit power in mW, with 250 units at 0 dBm and 700 at 23 dBm, so 247.733 at zero
    circuits = 250 - (700 - 250) / (10**2.3 - 1)
    took = [(row.energy_tx_j, took_s(row, "uplink")) for row in rows]
    sent_s = [(joules - 0.6 * lasted_s) / (6e-3 * (700 - 100)) for joules, lasted_s in took]
    circuit_j = sum(
        6e-3 * circuits * on_s + 0.6 * (s - on_s) for on_s, (_, s) in zip(sent_s, took, strict=True)
    )
    assert world.simulation.ledger.circuits()["circuit_j"] == pytest.approx([circuit_j], rel=1e-9)
    assert 0.3 < circuit_j / ledger.transmit_j < 0.5  # circuits use some of the energy


# three ways to run a round: by its plan, by processes, and by processes with a battery
@pytest.mark.parametrize(
    "how", [{}, {"deadline_s": 1e6}, {"battery_j": CAPACITY_J}], ids=["plan", "process", "battery"]
)
@pytest.mark.parametrize("tail_s", [0.0, 0.02, 0.3, 5.0])
def test_idle_follows_the_tail(tail_s: float, how: dict[str, Any]) -> None:
    """A device draws idle power only while it neither works nor is in a tail, so the two never overlap."""
    idle_w = 0.7
    power = made(Phone5G, tail_s=tail_s, tail_w=2.0)
    rows, ledger, world = run(power, idle_power_w=idle_w, **how)
    idle_s, end_s = rows[0].downlink_start_s, world.env.now
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        until_s = following.downlink_start_s if following else end_s
        waits_s = row.uplink_start_s - max(row.compute_end_s, row.downlink_end_s + tail_s)  # until its slot
        idle_s += max(0.0, waits_s) + max(0.0, until_s - row.uplink_end_s - tail_s)
    assert ledger.idle_j == pytest.approx(idle_w * idle_s, rel=1e-9, abs=1e-15)
    gaps = gaps_s(rows)
    check_books(rows, ledger, [sum(2.0 * min(tail_s, gap_s) for gap_s in of_round) for of_round in gaps])


def test_a_tail_that_outlasts_a_battery_costs_what_was_in_it() -> None:
    """No transfer follows the last round, so its tail of 1,000 J continues until the battery is empty."""
    power = made(Phone5G, tail_s=1000.0, tail_w=1.0)
    rows, ledger, world = run(power, battery_j=CAPACITY_J)
    assert ledger.left_j == 0.0
    assert [event.device for event in world.rows.of[Event] if event.event == "battery_empty"] == [0]
    assert not world.simulation.network.power.running.any()
    check_books(rows, ledger, [row.energy_tail_j for row in rows])
    assert ledger.energy_j == pytest.approx(CAPACITY_J)


def test_a_rounds_row_waits_for_its_tails_and_is_told_of_at_once() -> None:
    """With a pause of 0.4 s and tails of 10 s, round 1 is reported without the remainder of its last tail."""
    told: list[Round] = []
    world = small_world(
        [50.0],
        learner=Scripted(work=(5, 640, DOWN_BITS, UP_BITS)),
        policy=TWO_ROUNDS,
        devices={"power": made(Phone5G, tail_s=10.0, tail_w=1.0)},
        rules={"pause_s": PAUSE_S},
    )
    written = world.rows.of[Round]
    simulation = world.server._context.simulation
    vars(simulation)["announce"] = lambda row: told.append((row, len(written)))
    world.run()
    first, second = written
    assert [count for _, count in told] == [0, 1]  # the first row was written before its last tail ended
    assert [row.round for row, _ in told] == [1, 2]
    part, following = world.rows.of[DeviceRound]
    computing_s = part.uplink_start_s - part.downlink_end_s
    assert told[0][0].energy_tail_j == pytest.approx(computing_s)
    assert first.energy_tail_j == pytest.approx(computing_s + following.downlink_start_s - part.uplink_end_s)
    assert second.energy_tail_j == pytest.approx(following.uplink_start_s - following.downlink_end_s + 10.0)


@pytest.mark.parametrize(
    "how", [{}, {"deadline_s": 1e6}, {"battery_j": CAPACITY_J}], ids=["plan", "process", "battery"]
)
@pytest.mark.parametrize("down_bits", [0, DOWN_BITS])
@pytest.mark.parametrize("up_bits", [0, UP_BITS])
def test_a_transfer_of_nothing_has_no_tail(down_bits: int, up_bits: int, how: dict[str, Any]) -> None:
    """A transfer of 0 bits has no tail; the other direction's tail continues until the next transfer."""
    tail_s, idle_w = 0.2, 0.7
    power = made(Phone5G, tail_s=tail_s, tail_w=2.0)
    rows, ledger, world = run(power, bits=(down_bits, up_bits), idle_power_w=idle_w, **how)
    wanted, idle_s = [], rows[0].downlink_start_s
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        next_s = following.downlink_start_s if following else math.inf
        down_until_s = row.uplink_start_s if up_bits else next_s
        down_s = min(tail_s, down_until_s - row.downlink_end_s) if down_bits else 0.0
        up_s = min(tail_s, next_s - row.uplink_end_s) if up_bits else 0.0
        wanted.append(2.0 * (down_s + up_s))
        # idle times: from the end of computing and tail to the upload, and from the upload's tail to the next round
        rests_s = max(row.compute_end_s, row.downlink_end_s + down_s)
        idle_s += max(0.0, row.uplink_start_s - rests_s)
        rests_s = max(rests_s, row.uplink_end_s + up_s)
        idle_s += max(0.0, min(next_s, world.env.now) - rests_s)
    check_books(rows, ledger, wanted)
    assert ledger.idle_j == pytest.approx(idle_w * idle_s, rel=1e-9, abs=1e-12)


def test_a_tail_ends_when_the_device_is_switched_off() -> None:
    """A device that is switched off at 1.0 s, in the tail of its only round, pays nothing for the remaining 10 s."""
    world = small_world(
        [50.0],
        learner=Scripted(work=(1, 1, DOWN_BITS, UP_BITS)),
        switches_s=[[0.0, 1.0, 1.2]],
        policy=TWO_ROUNDS,
        devices={"power": made(Phone5G, tail_s=10.0, tail_w=1.0)},
        rules={"pause_s": 3.0},
    ).run()
    first, second = world.rows.of[DeviceRound]
    between_s = second.downlink_start_s - first.uplink_end_s
    assert between_s > 2.9
    computing_s = sum(row.uplink_start_s - row.downlink_end_s for row in (first, second))
    until_off_s = 1.0 - first.uplink_end_s
    assert first.energy_tail_j == pytest.approx(first.uplink_start_s - first.downlink_end_s + until_off_s)
    (ledger,) = world.simulation.ledger.rows(world.simulation.network.power.running_s(), 0.0)
    assert ledger.tail_j == pytest.approx(computing_s + until_off_s + 10.0)


@pytest.mark.parametrize(
    ("on_ms", "cycle_ms", "slept"),
    [
        (8, 160, 1 * 152 + 450),  # deep sleep: light sleep would cost 20 * 152 + 100
        (8, 20, 20 * 12 + 100),  # light sleep: the rest is too short for deep sleep; micro: 540
        (8, 13, 45 * 5),  # micro sleep: the rest is too short for light sleep
    ],
)
def test_drx_sleeps_as_deep_as_the_cycle_lets_it(on_ms: int, cycle_ms: int, slept: float) -> None:
    model = TR38840(on_duration_s=on_ms / 1e3, drx_cycle_s=cycle_ms / 1e3)
    assert model.drx_units() == pytest.approx((100 * on_ms + slept) / cycle_ms)


def test_sending_lies_between_the_two_powers_of_the_report() -> None:
    for dbm, units in ((0.0, 250.0), (23.0, 700.0)):
        draws = made(TR38840, unit_w=1.0).draws(Equipment(10 ** (dbm / 10) / 1e3, 1.0, 0.0, 0.0))
        assert draws.send_w + draws.amplifier_w == pytest.approx(units)


# relative powers (TR 38.840, Table 18), and times and energies of transitions to and from sleep (Table 19), as in the
# public implementation of 5G-LENA: nr-ue-energy-model.cc, UE_POWER_FR1 and UE_TRANSITIONS
STATES = {"PDCCH and PDSCH": 300.0, "PDCCH only": 100.0, "uplink, 0 dBm": 250.0, "uplink, 23 dBm": 700.0}
SLEEPING = {"deep": (1.0, 20.0, 450.0), "light": (20.0, 6.0, 100.0), "micro": (45.0, 0.0, 0.0)}


def test_figures_are_those_of_tr_38840() -> None:
    """With a unit of 1 W, the powers in W equal the numbers of units in the tables."""
    found = {}
    for dbm in (0.0, 23.0):
        draws = made(TR38840, unit_w=1.0).draws(Equipment(10 ** (dbm / 10) / 1e3, 1.0, 0.0, 0.0))
        found[f"uplink, {dbm:.0f} dBm"] = draws.send_w + draws.amplifier_w
    found |= {"PDCCH and PDSCH": draws.receive_w, "PDCCH only": draws.wait_w}
    assert found == pytest.approx(STATES)
    for one, (units, ms, unit_ms) in zip(SLEEPS, SLEEPING.values(), strict=True):
        assert (one.units, 1e3 * one.transition_s) == (units, pytest.approx(ms))
        assert 1e3 * one.transition_unit_s == pytest.approx(unit_ms)
    # section 8.2 has these values for file transfers
    model = TR38840()
    assert (model.drx_cycle_s, model.on_duration_s, model.inactivity_s) == (0.16, 0.008, 0.1)


def test_deep_sleep_pays_from_20_ms_on_and_light_sleep_from_6() -> None:
    """Light sleep saves 25 of micro sleep's 45 units and costs 100 unit-ms; it pays after 4 ms, but needs 6 ms. Deep
    sleep saves 19 units more and costs 350 more; it pays after 18.4 ms, but needs 20 ms."""
    for rest_ms, unit_ms in ((5.9, 45 * 5.9), (6.0, 20 * 6 + 100), (19.9, 20 * 19.9 + 100), (20.0, 20 + 450)):
        on_ms = 4.1
        model = TR38840(on_duration_s=on_ms / 1e3, drx_cycle_s=(on_ms + rest_ms + 1e-9) / 1e3)
        assert model.drx_units() * (on_ms + rest_ms) == pytest.approx(100 * on_ms + unit_ms)


@pytest.mark.parametrize(
    ("mhz", "antennas", "receive", "listen"),
    [
        (100, 4, 300, 100),
        (100, 2, 210, 70),  # 0.7 for half of the antennas
        (100, 1, 147, 49),
        (80, 4, 300 * 0.85, 85),  # 0.4 + 0.6 x 60 / 80 for the narrower band
        (40, 4, 300 * 0.55, 55),
        (20, 4, 120, 50),  # by the factor of 0.4, listening would draw 40 units, but it draws at least 50
        (20, 2, 84, 35),
        (10, 4, 300 * 0.325, 50),
    ],
)
def test_a_narrow_band_and_few_antennas_take_less(
    mhz: int, antennas: int, receive: float, listen: float
) -> None:
    band_hz = mhz * 1e6
    model = made(TR38840, unit_w=1.0, bandwidth_hz=band_hz, receive_antennas=antennas, inactivity_s=0.05)
    reference, draws = made(TR38840, unit_w=1.0).draws(PHONE), model.draws(PHONE)
    assert (draws.receive_w, draws.wait_w) == (pytest.approx(receive), pytest.approx(listen))
    (_, listening_w), (_, sleeping_w) = draws.tail
    assert (listening_w, sleeping_w) == (pytest.approx(listen), pytest.approx((8 * listen + 152 + 450) / 160))
    assert (draws.send_w, draws.amplifier_w) == (reference.send_w, reference.amplifier_w)


@pytest.mark.parametrize(("antennas", "receive", "listen"), [(2, 84, 35), (1, 58.8, 24.5)])
def test_redcap_takes_what_20_mhz_and_its_antennas_take(antennas: int, receive: float, listen: float) -> None:
    """RedCap draws 120 and 50 units at 20 MHz, times 0.7 per halving of four antennas; it sends like a phone."""
    model = made(RedCap, unit_w=1.0, receive_antennas=antennas)
    reference, draws = made(TR38840, unit_w=1.0).draws(PHONE), model.draws(PHONE)
    assert (draws.receive_w, draws.wait_w) == (pytest.approx(receive), pytest.approx(listen))
    assert (draws.send_w, draws.amplifier_w) == (reference.send_w, reference.amplifier_w)
    for wrong in ({"bandwidth_hz": 40e6}, {"receive_antennas": 4}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RedCap.model_validate(wrong)


def nj_per_bit(power_w: float, j_bit: float, mbit_s: float) -> float:
    """Return the energy per bit of a link that is always in use, in nJ."""
    return 1e9 * (power_w / (mbit_s * 1e6) + j_bit)


# nJ/bit by throughput in Mbit/s; throughput is the median power over the energy per bit
MEASURED_UPLINK = {3.93 / 0.036: 36.0, 3.93 / 0.063: 63.0}
MEASURED_DOWNLINK = {5.91 / 0.0034: 3.4, 5.91 / 0.0061: 6.1}
REGRESSION = 0.15  # bound of the regression's relative error at the ends of the ranges; its R^2 is 0.61


def test_joules_of_a_bit_are_those_measured() -> None:
    """Energy per bit matches the measured 36 to 63 nJ in the uplink, and 3.4 to 6.1 nJ in the downlink."""
    draws = Phone5G().draws(PHONE)
    for mbit_s, measured in MEASURED_UPLINK.items():
        simulated = nj_per_bit(draws.send_w, draws.send_j_bit, mbit_s)
        assert simulated == pytest.approx(measured, rel=REGRESSION)
    for mbit_s, measured in MEASURED_DOWNLINK.items():
        simulated = nj_per_bit(draws.receive_w, draws.receive_j_bit, mbit_s)
        assert simulated == pytest.approx(measured, rel=REGRESSION)
    # at the same rates, the journal's radio uses less than a tenth of this energy
    assert nj_per_bit(0.2, 0.0, 3.93 / 0.036) < 36 / 15


def test_a_run_has_the_measured_joules_per_bit() -> None:
    """A simulated uplink at some 80 Mbit/s, which is within the measured range, has the measured energy per bit."""
    world = small_world(
        [50.0],
        learner=Scripted(work=(1, 1, 1, 40_000_000)),
        devices={"power": "phone_5g"},
        radio={"link": {"max_efficiency": 7.4}},
    ).run()
    (row,) = world.rows.of[DeviceRound]
    mbit_s = row.uplink_bits / took_s(row, "uplink") / 1e6
    assert 62 < mbit_s < 109
    assert 36 < 1e9 * row.energy_tx_j / row.uplink_bits < 63


def test_a_class_may_have_a_power_model_of_its_own() -> None:
    settings = DeviceSettings.model_validate(
        {"count": 2, "circuit_power_w": 0.2, "classes": {"a": {"count": 1, "power": "phone_5g"}, "b": {}}}
    )
    assert [kind.draws().receive_w for kind in settings.kinds()] == [3.52, 0.2]
