"""Test rounds, departures and sessions at exactly derived times.

The fading of a device with Doppler speed 0 never changes, so a transfer of Z bits over bandwidth W takes ceil(Z / (W
log2(1 + snr |h|^2) tau)) slots: every event time follows from |h|^2.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from edgefl.channel.path_loss.umi import UMi
from edgefl.contract import REPORTED_LOSS, Evaluation, Opening
from edgefl.engine.records import DeviceRound, Event, Round, Session
from edgefl.engine.sessions import SessionState
from edgefl.engine.sessions.adaptive import Adaptive
from edgefl.engine.sessions.membership import Membership
from edgefl.engine.sessions.schedule import Schedule
from edgefl.testing import PAYLOAD_BITS, Scripted, SmallWorld, small_world
from tests.refusals import refused_at

SLOT_S = 0.5e-3
FLOPS, STEPS, BATCH = 1.0e6, 5, 128
COMPUTE_S = FLOPS * STEPS * BATCH / (1.0e9 * 8)  # (J 27) with the default processor: 80 ms
COMPUTE_J = 1.0e-28 * (FLOPS * STEPS * BATCH / 8) * 1.0e9**2  # (J 28): 8 mJ
RX_W, TX_W, SERVER_W = 0.1, 10 ** (23 / 10) / 1000, 10 ** (43 / 10) / 1000
EXACT = 1e-9


class World:
    """A cell of 250 m, checked every 10 ms, with devices at given distances and closed forms of their transfers."""

    def __init__(self, distances_m: Sequence[float], **options: Any) -> None:
        self.distances_m = np.asarray(distances_m, dtype=float)
        options.setdefault("learner", spy())
        self.small: SmallWorld = small_world(list(distances_m), **options)
        self.env, self.rows, self.learner = self.small.env, self.small.rows, self.small.learner

    def run(self) -> "World":
        self.small.run()
        return self

    def bits_per_slot(self, device: int, power_w: float, sharing: int) -> float:
        """Return the bits of a slot at full power on a share 1 / sharing of the band, from the link's |h|^2."""
        loss_db = UMi().path_loss_db(self.distances_m[device], carrier_hz=3.5e9)
        bandwidth = 10e6 / sharing
        noise_w = 10 ** ((-174 - 30) / 10) * bandwidth
        snr = power_w * 10 ** (-float(loss_db) / 10) / noise_w
        h2 = float(self.small.simulation.radio.fading(device, 0).power(0, 1)[0])
        return bandwidth * SLOT_S * math.log2(1 + snr * h2)

    def slots(self, device: int, power_w: float, sharing: int, bits: int = PAYLOAD_BITS) -> int:
        """Return the number of slots of a transfer by the closed form."""
        return math.ceil(bits / self.bits_per_slot(device, power_w, sharing))


def spy(**options: Any) -> Scripted:
    """Return a learner that only records its calls."""
    opening = Opening("similarity", {2: 0.25, 3: 0.75}, [0, 1], 0.5, 1.5)
    work = (STEPS, STEPS * BATCH, PAYLOAD_BITS, PAYLOAD_BITS)
    return Scripted(
        work=work, opening=opening, evaluation=Evaluation(0.75, 0.5), flops_per_sample=FLOPS, **options
    )


def next_slot_s(time_s: float) -> float:
    return math.ceil(round(time_s / SLOT_S, 6)) * SLOT_S


def expected_stages(world: World, device: int, sharing: int, start_s: float = 0.0) -> list[float]:
    down = next_slot_s(start_s)
    computes = down + world.slots(device, SERVER_W, sharing) * SLOT_S
    up = next_slot_s(computes + COMPUTE_S)
    done = up + world.slots(device, TX_W, sharing) * SLOT_S
    return [down, computes, computes, computes + COMPUTE_S, up, done]


def stages(row: DeviceRound) -> list[float | None]:
    return [
        row.downlink_start_s,
        row.downlink_end_s,
        row.compute_start_s,
        row.compute_end_s,
        row.uplink_start_s,
        row.uplink_end_s,
    ]


def test_a_round_takes_exactly_what_its_devices_take() -> None:
    world = World([50.0, 240.0]).run()
    rows, (round_,) = world.rows.of[DeviceRound], world.rows.of[Round]
    ends = []
    for row in rows:
        expected = expected_stages(world, row.device, sharing=2)
        assert stages(row) == pytest.approx(expected, abs=EXACT)
        assert row.energy_rx_j == pytest.approx(RX_W * (expected[1] - expected[0]))
        assert row.energy_tx_j == pytest.approx(TX_W * (expected[5] - expected[4]))
        assert row.energy_compute_j == pytest.approx(COMPUTE_J)
        assert (row.downlink_bits, row.uplink_bits, row.iterations) == (PAYLOAD_BITS, PAYLOAD_BITS, STEPS)
        assert row.outcome == "completed"
        ends.append(expected[5])
    assert round_.latency_s == pytest.approx(max(ends), abs=EXACT)
    assert round_.latency_mean_s == pytest.approx(sum(ends) / 2, abs=EXACT)
    assert round_.energy_j == pytest.approx(sum(row.energy_j for row in rows))
    assert (round_.participants, round_.completed, round_.version) == (2, 2, 1)


def test_rounds_follow_one_another() -> None:
    world = World([50.0, 240.0], policy=Schedule(count=2, rounds=2)).run()
    rounds = world.rows.of[Round]
    assert [(r.session, r.round, r.version) for r in rounds] == [(1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 4)]
    for before, after in itertools.pairwise(rounds):
        assert after.start_s == pytest.approx(before.end_s, abs=EXACT)
    calls = [call[0] for call in world.learner.calls]
    session = ["open", "begin", "train", "aggregate", "train", "aggregate", "close"]
    assert calls == session * 2


def test_probe_rounds_take_time_and_energy_and_change_no_model() -> None:
    world = World([50.0, 60.0, 70.0, 80.0], learner=spy(probes=2, share=0.5)).run()
    rounds = world.rows.of[Round]
    assert [(r.phase, r.round, r.participants) for r in rounds] == [
        ("probe", 1, 2),
        ("probe", 2, 2),
        ("train", 1, 4),
    ]
    assert all(r.latency_s > 0 and r.energy_j > 0 for r in rounds)
    assert [r.version for r in rounds] == [0, 0, 1]
    assert rounds[0].accuracy is None
    assert rounds[2].accuracy == 0.75
    (session,) = world.rows.of[Session]
    assert session.start_s == rounds[0].start_s
    assert (session.weights, session.labels) == ("2:0.25 3:0.75", "0 1")


@pytest.mark.parametrize("stage", ["downlink", "compute", "uplink"])
def test_a_device_that_leaves_is_cut_off_and_pays_until_then(stage: str) -> None:
    distances = [50.0, 60.0]
    planned = expected_stages(World(distances), 1, sharing=2)
    begin, end = {"downlink": planned[:2], "compute": planned[2:4], "uplink": planned[4:]}[stage]
    leaves_s = math.ceil(begin / 0.01 + 0.5) * 0.01  # a tick during this activity
    assert begin < leaves_s < end, "choose distances whose stages last longer than a tick"
    world = World(distances, crossings_s={1: [leaves_s]}).run()
    row = next(r for r in world.rows.of[DeviceRound] if r.device == 1)
    assert row.outcome == f"left_{stage}"
    share = (leaves_s - begin) / (end - begin)
    assert row.energy_rx_j == pytest.approx(RX_W * (min(planned[1], leaves_s) - planned[0]))
    if stage == "downlink":
        assert stages(row)[1:] == [pytest.approx(leaves_s), None, None, None, None]
        assert (row.energy_compute_j, row.energy_tx_j, row.iterations) == (0, 0, 0)
        # at a constant rate, the bits of whole slots have arrived
        whole = math.floor(round((leaves_s - begin) / SLOT_S, 6))
        slots = world.slots(1, SERVER_W, 2)
        assert PAYLOAD_BITS * (slots - 1) / slots * whole / slots <= row.downlink_bits
        assert row.downlink_bits <= PAYLOAD_BITS * whole / (slots - 1)
    elif stage == "compute":
        assert row.energy_compute_j == pytest.approx(COMPUTE_J * share)
        assert row.iterations == int(STEPS * share)
        assert (row.uplink_start_s, row.uplink_bits) == (None, 0)
    else:
        assert row.energy_tx_j == pytest.approx(TX_W * (leaves_s - begin))
        assert 0 < row.uplink_bits < PAYLOAD_BITS
    assert ("aggregate", (0,)) in world.learner.calls
    (round_,) = world.rows.of[Round]
    assert (round_.participants, round_.completed) == (2, 1)
    assert round_.energy_j == pytest.approx(sum(r.energy_j for r in world.rows.of[DeviceRound]))
    assert [(e.event, e.device) for e in world.rows.of[Event] if e.device is not None] == [("departure", 1)]


def test_a_round_without_survivors_keeps_the_model_and_says_so() -> None:
    world = World([50.0], crossings_s={0: [0.02, 0.5]}, policy=Schedule(count=1, rounds=2)).run()
    first, second = world.rows.of[Round]
    assert (first.completed, first.version) == (0, 0)
    assert first.end_s == pytest.approx(0.02, abs=EXACT)
    assert [e.event for e in world.rows.of[Event]].count("no_updates") == 1
    # the server waits until the device returns to the empty cell
    assert second.start_s == pytest.approx(0.5, abs=EXACT)
    assert (second.completed, second.version) == (1, 1)


def test_nobody_ever_comes_back() -> None:
    world = World(
        [50.0], crossings_s={0: [0.02]}, policy=Schedule(count=1, rounds=2), rules={"max_wait_s": 1.0}
    )
    with refused_at("rounds.max_wait_s", "cell 0", "1 s"):
        world.run()


def test_a_round_without_updates_does_not_count_towards_the_shortest_session() -> None:
    """Device 0 leaves during round 1 and returns, so no member has changed, and the session has its full length."""
    policy = Membership(count=1, changed_share=0.5, min_rounds=1, max_rounds=3)
    world = World([50.0], crossings_s={0: [0.02, 0.5]}, policy=policy).run()
    assert [row.completed for row in world.rows.of[Round]] == [0, 1, 1]
    (end,) = [event for event in world.rows.of[Event] if event.event == "session_end"]
    assert end.detail == "max_rounds"


def test_an_arrival_joins_the_next_round_and_a_departure_ends_the_session() -> None:
    # device 2 begins outside, as it leaves at time 0
    world = World(
        [50.0, 60.0, 70.0],
        crossings_s={2: [0.0, 0.05], 1: [0.0, 0.4]},
        policy=Membership(count=2, changed_share=0.6, min_rounds=1, max_rounds=50),
    ).run()
    first, second = world.rows.of[Session][0], world.rows.of[Session][1]
    assert first.devices == "0"
    assert (first.reason, second.reason) == ("start", "membership")
    participants = [call[2] for call in world.learner.calls if call[0] == "train"]
    assert participants[0] == (0,)
    assert (0, 2) in participants
    starts = {r.session: r.start_s for r in reversed(world.rows.of[Round])}
    # one arrival changes more than 60 % of one member, so the session ends with the round in which device 2 arrives
    assert starts[2] >= 0.05
    assert second.devices == "0 2"


def test_finish_lets_a_device_complete_its_part() -> None:
    planned = expected_stages(World([50.0, 60.0]), 1, sharing=2)
    leaves_s = 0.02
    world = World(
        [50.0, 60.0],
        crossings_s={1: [leaves_s]},
        handover={"policy": "finish"},
        policy=Schedule(count=1, rounds=2),
    ).run()
    row = next(r for r in world.rows.of[DeviceRound] if r.device == 1)
    assert row.outcome == "completed"
    assert stages(row) == pytest.approx(planned, abs=EXACT)
    (departure,) = [e for e in world.rows.of[Event] if e.event == "departure"]
    assert departure.time_s == pytest.approx(planned[5], abs=EXACT), "the device leaves when its upload ends"
    assert [r.participants for r in world.rows.of[Round]] == [2, 1]


def test_a_deadline_cuts_off_late_devices() -> None:
    distances = [50.0, 240.0]
    ends = [expected_stages(World(distances), k, sharing=2)[5] for k in (0, 1)]
    deadline_s = sum(ends) / 2
    world = World(distances, rules={"deadline_s": deadline_s}).run()
    slow = int(np.argmax(ends))
    assert {r.device: r.outcome for r in world.rows.of[DeviceRound]} == {
        1 - slow: "completed",
        slow: "late_uplink",
    }
    (round_,) = world.rows.of[Round]
    assert round_.latency_s == pytest.approx(deadline_s, abs=EXACT)
    late = world.rows.of[DeviceRound][slow]
    assert late.energy_tx_j == pytest.approx(TX_W * (deadline_s - late.uplink_start_s))
    assert round_.energy_wasted_j == pytest.approx(late.energy_j)


def test_too_few_updates_are_not_aggregated() -> None:
    world = World([50.0, 60.0], crossings_s={1: [0.02]}, rules={"min_updates": 2}).run()
    (round_,) = world.rows.of[Round]
    assert (round_.completed, round_.version) == (1, 0)
    assert round_.energy_wasted_j == pytest.approx(round_.energy_j)


def test_over_selection_ends_with_the_updates_wanted() -> None:
    distances = [50.0, 120.0, 240.0]
    selector = {"name": "best_channel", "count": 2}
    world = World(distances, rules={"selector": selector, "over_selection": 1.5}).run()
    ends = sorted(expected_stages(World(distances), k, sharing=3)[5] for k in range(3))
    outcomes = {r.device: r.outcome for r in world.rows.of[DeviceRound]}
    assert sorted(outcomes.values()) == ["completed", "completed", "surplus_uplink"]
    assert world.rows.of[Round][0].latency_s == pytest.approx(ends[1], abs=EXACT)


def test_a_device_switched_off_is_cut_off() -> None:
    """A device that is switched off at 30 ms ends the round; the next round begins when it is on again."""
    world = World([50.0], switches_s=[[0.0, 0.03, 0.5]], policy=Schedule(count=1, rounds=2)).run()
    first, second = world.rows.of[Round]
    assert world.rows.of[DeviceRound][0].outcome.startswith("off_")
    assert first.end_s == pytest.approx(0.03, abs=EXACT)
    assert second.start_s == pytest.approx(0.5, abs=EXACT)
    names = [e.event for e in world.rows.of[Event] if e.device == 0]
    assert names == ["switched_off", "switched_on"]


def test_an_empty_battery_is_a_departure_at_the_exact_time() -> None:
    """With energy for downlink, computing and half of the upload, a battery is empty halfway through the upload."""
    planned = expected_stages(World([50.0]), 0, sharing=1)
    half_s = planned[4] + (planned[5] - planned[4]) / 2
    needed_j = RX_W * (planned[1] - planned[0]) + COMPUTE_J + TX_W * (half_s - planned[4])
    battery = {"battery_j": needed_j, "recharge_w": 0.0, "return_share": 1.0}
    world = World([50.0], devices=battery, policy=Schedule(count=1, rounds=2), rules={"max_wait_s": 1.0})
    with refused_at("devices.battery_j"):
        world.run()
    assert world.rows.of[DeviceRound][0].outcome == "empty_uplink"
    (empty,) = [e for e in world.rows.of[Event] if e.event == "battery_empty"]
    assert empty.time_s == pytest.approx(half_s, abs=1e-6)


@pytest.mark.parametrize("slots_on", [0.5, 4.25])
def test_a_battery_that_runs_empty_amid_a_tdd_frame_does_so_at_the_exact_time(slots_on: float) -> None:
    """In UDDU the first and the last of four slots send; computing ends during a slot, whose rest costs nothing."""
    radio = {"tdd": {"pattern": "UDDU"}, "bandwidth_hz": 2e6}
    learner = {"work": (1, 803, 1, PAYLOAD_BITS), "flops_per_sample": FLOPS}
    (planned,) = World([50.0], radio=radio, learner=Scripted(**learner)).run().rows.of[DeviceRound]
    assert planned.compute_end_s % SLOT_S == pytest.approx(0.75 * SLOT_S, abs=0.01 * SLOT_S)
    slot = round(planned.uplink_start_s / SLOT_S)
    needed_j = planned.energy_rx_j + planned.energy_compute_j + TX_W * slots_on * SLOT_S
    while slots_on > (sends := float(slot % 4 in (0, 3))):
        slots_on, slot = slots_on - sends, slot + 1
    battery = {"battery_j": needed_j, "recharge_w": 0.0, "return_share": 1.0}
    world = World(
        [50.0],
        radio=radio,
        learner=Scripted(**learner),
        devices=battery,
        policy=Schedule(count=1, rounds=2),
        rules={"max_wait_s": 1.0},
    )
    with refused_at("devices.battery_j"):
        world.run()
    (empty,) = [e for e in world.rows.of[Event] if e.event == "battery_empty"]
    assert empty.time_s == pytest.approx((slot + slots_on) * SLOT_S, abs=EXACT)
    (row,) = world.rows.of[DeviceRound]
    assert row.outcome == "empty_uplink"
    assert row.energy_j == pytest.approx(needed_j, rel=EXACT)


def test_a_deadline_at_the_end_of_a_stage_of_no_length() -> None:
    """Without FLOPs, computing begins and ends with the downlink, which is also the time of the deadline."""
    learner = {"work": (STEPS, STEPS * BATCH, PAYLOAD_BITS, PAYLOAD_BITS), "flops_per_sample": 0.0}
    (planned,) = World([50.0], learner=Scripted(**learner)).run().rows.of[DeviceRound]
    assert planned.compute_end_s == planned.downlink_end_s
    assert (planned.iterations, planned.energy_compute_j) == (STEPS, 0.0)
    for battery in ({}, {"battery_j": 1.0}, {"battery_j": RX_W * planned.downlink_end_s}):
        world = World(
            [50.0], learner=Scripted(**learner), devices=battery, rules={"deadline_s": planned.downlink_end_s}
        ).run()
        (row,) = world.rows.of[DeviceRound]
        assert row.energy_rx_j == pytest.approx(RX_W * planned.downlink_end_s)
        assert (row.energy_compute_j, row.energy_tx_j, row.uplink_bits) == (0.0, 0.0, 0)
        assert (row.outcome, row.iterations) == ("late_compute", STEPS)
        (round_,) = world.rows.of[Round]
        assert round_.latency_mean_s <= round_.latency_s == pytest.approx(planned.downlink_end_s, abs=EXACT)


def test_who_is_cut_off_before_its_first_slot_was_no_longer_there_than_its_round() -> None:
    """A deadline between the end of computing and the next slot cuts the device off; nothing is sent."""
    learner = {"work": (1, 803, PAYLOAD_BITS, PAYLOAD_BITS), "flops_per_sample": FLOPS}
    (planned,) = World([50.0], learner=Scripted(**learner)).run().rows.of[DeviceRound]
    deadline_s = (planned.compute_end_s + planned.uplink_start_s) / 2
    world = World([50.0], learner=Scripted(**learner), rules={"deadline_s": deadline_s}).run()
    (row,), (round_,) = world.rows.of[DeviceRound], world.rows.of[Round]
    assert (row.outcome, row.energy_tx_j, row.uplink_bits) == ("late_uplink", 0.0, 0)
    assert row.uplink_start_s == row.uplink_end_s == round_.end_s == pytest.approx(deadline_s, abs=EXACT)
    assert round_.latency_mean_s == round_.latency_s


def test_a_battery_recharges_and_the_device_comes_back() -> None:
    battery = {"battery_j": 0.002, "recharge_w": 0.01, "return_share": 0.5}
    world = World([50.0], devices=battery, policy=Schedule(count=1, rounds=2)).run()
    events = {e.event: e.time_s for e in reversed(world.rows.of[Event])}
    # without load, 10 mW charge an empty battery to half of 2 mJ in 0.1 s
    assert events["battery_back"] - events["battery_empty"] == pytest.approx(0.1)
    assert world.rows.of[Round][1].start_s == pytest.approx(events["battery_back"], abs=EXACT)


def test_the_ledger_sums_to_the_rounds_and_idle_fills_the_rest() -> None:
    idle_w = 0.02
    world = World(
        [50.0, 240.0],
        crossings_s={1: [0.3]},
        devices={"idle_power_w": idle_w},
        policy=Schedule(count=1, rounds=3),
    ).run()
    simulation = world.small.simulation
    rows = list(simulation.ledger.rows(simulation.network.power.running_s(), idle_w))
    rounds = world.rows.of[Round]
    for ledger, column in [
        ("receive_j", "energy_rx_j"),
        ("transmit_j", "energy_tx_j"),
        ("compute_j", "energy_compute_j"),
        ("wasted_j", "energy_wasted_j"),
    ]:
        total = sum(getattr(r, column) for r in rounds)
        assert sum(getattr(r, ledger) for r in rows) == pytest.approx(total, rel=1e-12)
    assert sum(r.wasted_j for r in rows) > 0
    for row in rows:
        parts = [r for r in world.rows.of[DeviceRound] if r.device == row.device]
        busy = sum(b - a for p in parts for a, b in zip(*[iter(stages(p))] * 2, strict=True) if b is not None)
        assert row.idle_j == pytest.approx(idle_w * (world.env.now - busy))
        assert row.total_j == pytest.approx(row.receive_j + row.transmit_j + row.compute_j + row.idle_j)


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_the_server_pays_full_power_for_every_share(sharing: str) -> None:
    """With `full`, two downlinks use twice the power while both last; in a dynamic band one continues alone."""
    world = World([50.0, 240.0], radio={"sharing": sharing}).run()
    (round_,), rows = world.rows.of[Round], world.rows.of[DeviceRound]
    expected_j = SERVER_W * sum(r.downlink_end_s for r in rows)  # both downlinks begin at 0
    assert round_.energy_server_j == pytest.approx(expected_j)


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_power_per_resource_block_is_one_full_power_over_the_band(sharing: str) -> None:
    radio = {"sharing": sharing, "budget": {"power_over_share": "per_resource_block"}}
    world = World([50.0, 240.0], radio=radio).run()
    longest_s = max(r.downlink_end_s for r in world.rows.of[DeviceRound])
    assert world.rows.of[Round][0].energy_server_j == pytest.approx(SERVER_W * longest_s)


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_downlinks_that_begin_at_different_times_are_all_paid_for(sharing: str) -> None:
    """Slow start delays the faster link's downlink more; the site sends from the first start to the last end."""
    radio = {"sharing": sharing, "budget": {"power_over_share": "per_resource_block"}}
    learner = spy(
        of={0: (STEPS, STEPS * BATCH, 3 * PAYLOAD_BITS, PAYLOAD_BITS)}
    )  # the faster link has more bits
    world = World([50.0, 240.0], learner=learner, radio={**radio, "access": {"round_trip_s": 0.02}}).run()
    rows = world.rows.of[DeviceRound]
    begins_s, ends_s = ([getattr(row, f"downlink_{edge}_s") for row in rows] for edge in ("start", "end"))
    sent_s = max(ends_s) - min(begins_s)
    assert max(begins_s) < min(ends_s), "the downlinks overlap"
    assert sent_s > max(end_s - start_s for start_s, end_s in zip(begins_s, ends_s, strict=True)) + 5 * SLOT_S
    assert world.rows.of[Round][0].energy_server_j == pytest.approx(SERVER_W * sent_s)


@pytest.mark.parametrize("scheduler", ["round_robin", "proportional_fair"])
def test_one_flow_at_a_time_is_one_share(scheduler: str) -> None:
    """In each slot one device has the whole band, and in each round the site sends until the last bit."""
    radio = {"sharing": "dynamic", "scheduler": scheduler}
    world = World([50.0, 240.0, 120.0], radio=radio, policy=Schedule(count=1, rounds=2)).run()
    rows = world.rows.of[DeviceRound]
    for round_ in world.rows.of[Round]:
        mine = [r for r in rows if r.round == round_.round]
        on_s = max(r.downlink_end_s for r in mine) - min(r.downlink_start_s for r in mine)
        assert round_.energy_server_j == pytest.approx(SERVER_W * on_s)


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
@pytest.mark.parametrize("power", ["full", "per_resource_block"])
def test_the_server_sends_in_the_downlinks_slots_of_a_frame(sharing: str, power: str) -> None:
    """The server's energy is its power times the sum of devices' airtimes (`full`), or times the longest airtime."""
    radio = {"sharing": sharing, "budget": {"power_over_share": power}, "tdd": {}}
    world = World([50.0, 240.0], radio=radio).run()
    airtimes_s = [row.energy_rx_j / RX_W for row in world.rows.of[DeviceRound]]
    assert all(
        airtime_s < 0.9 * row.downlink_end_s
        for airtime_s, row in zip(airtimes_s, world.rows.of[DeviceRound], strict=True)
    )
    sent_s = sum(airtimes_s) if power == "full" else max(airtimes_s)
    assert world.rows.of[Round][0].energy_server_j == pytest.approx(SERVER_W * sent_s)


def test_an_adaptive_session_ends_on_evidence_and_its_reports_cost_bits() -> None:
    # relative to the lowest loss, 1.0, each round adds 0.4 less a slack of 0.1, so S = 0.3, then 0.6 >= 0.5
    learner = spy(losses=[1.2, 1.0, 1.0, 1.4, 1.4] + [1.0] * 5)
    policy = Adaptive(count=2, slack=0.1, threshold=0.5, min_rounds=2, max_rounds=5)
    world = World([50.0], learner=learner, policy=policy).run()
    assert [s.reason for s in world.rows.of[Session]] == ["start", "adaptive"]
    assert [r.session for r in world.rows.of[Round]] == [1] * 5 + [2] * 5
    assert all(r.uplink_bits == PAYLOAD_BITS + 32 for r in world.rows.of[Round])


class Listening(Schedule):
    """A session of a few rounds whose policy requests reports and records them."""

    heard: list[tuple[float, ...]] = []  # noqa: RUF012  # the list is the test's

    @property
    def report_bits(self) -> int:
        return 32

    def reason_to_end(self, state: SessionState) -> str | None:
        self.heard.append(state.losses)
        return super().reason_to_end(state)


def test_a_policy_hears_the_mean_of_the_reports_that_arrived() -> None:
    """Device 1 has no data and reports nothing; device 2 leaves in round 1, so its report is lost."""
    learner = spy(scalars={REPORTED_LOSS: (1.0, None, 5.0, 2.0)})
    policy = Listening(count=1, rounds=2, heard=[])
    World([50.0, 60.0, 70.0, 80.0], learner=learner, policy=policy, crossings_s={2: [0.02, 0.05]}).run()
    first = (1.0 + 2.0) / 2
    assert policy.heard == [(first,), (first, pytest.approx((1.0 + 5.0 + 2.0) / 3))]


def test_reports_of_nobody_count_as_zero() -> None:
    policy = Listening(count=1, rounds=1, heard=[])
    World([50.0], learner=spy(scalars={REPORTED_LOSS: (None,)}), policy=policy).run()
    assert policy.heard == [(0.0,)]


FIRST, OTHER = (3, 300, 1_000_000, 2_000_000), (7, 0, 5_000_000, 400_000)


def test_every_device_has_its_own_bits_samples_and_iterations() -> None:
    """Without samples, a device computes in no time and with no energy; shares are equal for any number of bits."""
    scalars = {"epsilon": (0.5, None), "rank": (4.0, 8.0)}
    world = World([50.0, 240.0], learner=spy(of={0: FIRST, 1: OTHER}, scalars=scalars)).run()
    rows = world.rows.of[DeviceRound]
    for row, (iterations, samples, down_bits, up_bits) in zip(rows, (FIRST, OTHER), strict=True):
        received_s = world.slots(row.device, SERVER_W, 2, down_bits) * SLOT_S
        compute_s = FLOPS * samples / (1.0e9 * 8)  # (J 27)
        sends_s = next_slot_s(received_s + compute_s)
        sent_s = sends_s + world.slots(row.device, TX_W, 2, up_bits) * SLOT_S
        expected = [0.0, received_s, received_s, received_s + compute_s, sends_s, sent_s]
        assert stages(row) == pytest.approx(expected, abs=EXACT)
        assert (row.iterations, row.downlink_bits, row.uplink_bits) == (iterations, down_bits, up_bits)
        assert row.energy_rx_j == pytest.approx(RX_W * received_s)
        assert row.energy_compute_j == pytest.approx(1.0e-28 * (FLOPS * samples / 8) * 1.0e9**2)  # (J 28)
        assert row.energy_tx_j == pytest.approx(TX_W * (sent_s - sends_s))
    (round_,) = world.rows.of[Round]
    assert (round_.downlink_bits, round_.uplink_bits) == (FIRST[2] + OTHER[2], FIRST[3] + OTHER[3])
    assert world.rows.further == {name: list(values) for name, values in scalars.items()}


@pytest.mark.parametrize("scheduler", ["equal_share", "min_max_latency"])
@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_who_has_nothing_to_send_needs_no_share(scheduler: str, sharing: str) -> None:
    """As device 1 receives but does not send, device 0 has the whole uplink, which costs device 1 no energy."""
    silent = (STEPS, STEPS * BATCH, PAYLOAD_BITS, 0)
    radio = {"scheduler": scheduler, "sharing": sharing}
    world = World([50.0, 50.5], learner=spy(of={1: silent}), radio=radio).run()
    rows = world.rows.of[DeviceRound]
    sent_s = world.slots(0, TX_W, sharing=1) * SLOT_S
    assert rows[0].uplink_end_s - rows[0].uplink_start_s == pytest.approx(sent_s, abs=EXACT)
    assert rows[1].uplink_end_s == rows[1].uplink_start_s
    assert (rows[1].uplink_bits, rows[1].energy_tx_j, rows[1].outcome) == (0, 0.0, "completed")


@pytest.mark.parametrize(("share", "probed"), [(0.01, 1), (0.25, 1), (0.6, 2), (1.0, 4)])
def test_a_probe_samples_its_share_of_the_devices_and_at_least_one(share: float, probed: int) -> None:
    world = World([50.0, 60.0, 70.0, 80.0], learner=spy(probes=1, share=share)).run()
    assert [row.participants for row in world.rows.of[Round]] == [probed, 4]


def test_scalars_follow_their_devices_through_selection_and_probes() -> None:
    """Each row of devices.csv has the scalar of its device, for any set of participants."""
    scalars = {"rank": (10.0, 11.0, 12.0, 13.0)}
    learner = spy(scalars=scalars, probes=2, share=0.5)
    world = World([50.0, 60.0, 70.0, 80.0], learner=learner, policy=Schedule(count=1, rounds=3))
    world.run()
    rows = world.rows.of[DeviceRound]
    assert len(rows) == 2 * 2 + 3 * 4
    assert world.rows.further["rank"] == [scalars["rank"][row.device] for row in rows]


def test_reports_add_to_each_devices_own_bits() -> None:
    learner = spy(of={0: FIRST, 1: OTHER}, scalars={REPORTED_LOSS: (1.0, 1.0)})
    world = World([50.0, 240.0], learner=learner, policy=Listening(count=1, rounds=1, heard=[])).run()
    assert [row.uplink_bits for row in world.rows.of[DeviceRound]] == [FIRST[3] + 32, OTHER[3] + 32]


def test_a_dynamic_band_goes_to_who_is_left() -> None:
    """Two downlinks have half the band each; when the first ends, the other has all of it."""
    world = World([50.0, 240.0], radio={"sharing": "dynamic"}).run()
    half = [world.bits_per_slot(k, SERVER_W, 2) for k in (0, 1)]
    first = int(np.argmax(half))
    other = 1 - first
    first_slots = math.ceil(PAYLOAD_BITS / half[first])
    left = PAYLOAD_BITS - first_slots * half[other]
    other_slots = first_slots + math.ceil(left / world.bits_per_slot(other, SERVER_W, 1))
    ends = {r.device: r.downlink_end_s for r in world.rows.of[DeviceRound]}
    assert ends[first] == pytest.approx(first_slots * SLOT_S, abs=EXACT)
    assert ends[other] == pytest.approx(other_slots * SLOT_S, abs=EXACT)
    assert all(r.uplink_bits == PAYLOAD_BITS for r in world.rows.of[DeviceRound])


def test_a_dynamic_band_is_left_by_who_is_cut_off() -> None:
    """When device 1 leaves during its downlink, device 0 gets the whole band."""
    leaves_s = 0.02
    world = World([50.0, 60.0], crossings_s={1: [leaves_s]}, radio={"sharing": "dynamic"}).run()
    slots = round(leaves_s / SLOT_S)
    half = [world.bits_per_slot(k, SERVER_W, 2) for k in (0, 1)]
    assert all(slots * bits < PAYLOAD_BITS for bits in half)
    rows = {r.device: r for r in world.rows.of[DeviceRound]}
    assert rows[1].outcome == "left_downlink"
    assert rows[1].downlink_bits == pytest.approx(slots * half[1], abs=1)
    left = PAYLOAD_BITS - slots * half[0]
    ends = slots + math.ceil(left / world.bits_per_slot(0, SERVER_W, 1))
    assert rows[0].downlink_end_s == pytest.approx(ends * SLOT_S, abs=EXACT)


def test_a_tdd_frame_serves_each_direction_in_its_slots_and_only_these_cost_energy() -> None:
    """A DDDSU period with special slot 10:2:2 carries 3 + 10/14 slots of downlink and 1 + 2/14 of uplink."""
    world = World([50.0], radio={"tdd": {}}).run()
    (row,) = world.rows.of[DeviceRound]
    down = [1, 1, 1, 10 / 14, 0]
    carried, slots = 0.0, 0
    while carried < PAYLOAD_BITS:
        carried += world.bits_per_slot(0, SERVER_W, 1) * down[slots % 5]
        slots += 1
    assert row.downlink_end_s == pytest.approx(slots * SLOT_S, abs=EXACT)
    airtime_s = sum(down[n % 5] for n in range(slots)) * SLOT_S
    assert row.energy_rx_j == pytest.approx(RX_W * airtime_s)
    up = [0, 0, 0, 2 / 14, 1]
    first, carried = round(row.uplink_start_s / SLOT_S), 0.0
    slots = 0
    while carried < PAYLOAD_BITS:
        carried += world.bits_per_slot(0, TX_W, 1) * up[(first + slots) % 5]
        slots += 1
    assert row.uplink_end_s == pytest.approx((first + slots) * SLOT_S, abs=EXACT)
    airtime_s = sum(up[(first + n) % 5] for n in range(slots)) * SLOT_S
    assert row.energy_tx_j == pytest.approx(TX_W * airtime_s)


def test_power_per_resource_block_divides_the_power() -> None:
    full = World([240.0, 241.0]).run()
    spread = World([240.0, 241.0], radio={"budget": {"power_over_share": "per_resource_block"}}).run()
    for row, rival in zip(spread.rows.of[DeviceRound], full.rows.of[DeviceRound], strict=True):
        # half the power on half the band has the SNR of the whole band, and half of the bits
        slots = math.ceil(PAYLOAD_BITS / (full.bits_per_slot(row.device, TX_W, 1) / 2))
        assert row.uplink_end_s - row.uplink_start_s == pytest.approx(slots * SLOT_S, abs=EXACT)
        assert row.uplink_end_s - row.uplink_start_s > rival.uplink_end_s - rival.uplink_start_s


def test_a_cap_and_a_noise_figure_slow_transfers_down() -> None:
    capped = World([50.0], radio={"link": {"max_efficiency": 2.0}}).run().rows.of[DeviceRound][0]
    assert capped.downlink_end_s == pytest.approx(math.ceil(PAYLOAD_BITS / (10e6 * SLOT_S * 2)) * SLOT_S)
    noisy = World([240.0], radio={"budget": {"noise_figure_db": 10.0}}).run()
    row = noisy.rows.of[DeviceRound][0]
    snr = 2 ** (noisy.bits_per_slot(0, TX_W, 1) / (10e6 * SLOT_S)) - 1
    slots = math.ceil(PAYLOAD_BITS / (10e6 * SLOT_S * math.log2(1 + snr / 10)))
    assert row.uplink_end_s - row.uplink_start_s == pytest.approx(slots * SLOT_S, abs=EXACT)


# ---- participants of probe rounds


def probed(world: World) -> list[tuple[int, ...]]:
    return [call[2] for call in world.learner.calls if call[0] == "probe"]


def test_a_probes_devices_are_sampled_once_per_session() -> None:
    """Algorithm 1, line 16: all V rounds probe all present devices, not only the selected ones."""
    seen = set()
    for seed in range(4):
        world = World(
            [50.0, 60.0, 70.0, 80.0, 90.0, 100.0],
            learner=spy(probes=3, share=0.5),
            rules={"selector": {"name": "uniform", "count": 1}},
            policy=Schedule(count=2, rounds=1),
            seed=seed,
        ).run()
        first, second = probed(world)[:3], probed(world)[3:]
        assert len(first[0]) == 3
        assert first == [first[0]] * 3
        assert second == [second[0]] * 3
        seen |= {first[0], second[0]}
    assert len(seen) > 4, "of 20 samples"


def test_who_leaves_is_missing_in_the_probe_rounds_that_follow_and_who_comes_is_not_asked() -> None:
    """Device 1 leaves and device 2 returns in the first probe round; training takes all devices present after it."""
    world = World([50.0, 60.0, 70.0], learner=spy(probes=2), crossings_s={1: [0.02], 2: [-1.0, 0.02]}).run()
    assert probed(world) == [(0, 1), (0,)]
    assert [call[2] for call in world.learner.calls if call[0] == "train"] == [(0, 2)]


def test_a_probe_whose_devices_have_all_left_has_new_ones() -> None:
    world = World([50.0, 60.0], learner=spy(probes=3), crossings_s={0: [0.02], 1: [-1.0, 0.02]}).run()
    assert probed(world) == [(0,), (1,), (1,)]
