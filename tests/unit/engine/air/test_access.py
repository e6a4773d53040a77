"""Compare access before a transfer with hand derivations: connection states, slow start, energy, interruptions."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.engine.air.access import AccessSettings, lead_of, slow_start_s
from edgefl.engine.air.presets import NR
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.power_models import ALWAYS_ON, Connection
from edgefl.engine.records import DeviceRound, LedgerRow, Round
from edgefl.testing import Scripted, SmallWorld, small_world

SLOT_S = 0.5e-3
DOWN_BITS, UP_BITS = 3_000_000, 1_000_000
SETUP_S, GRANT_S, BEFORE_DOWN_S, BEFORE_UP_S = 0.1, 0.015, 0.03, 0.05
# no round trip, so that the access time does not depend on the rate
ACCESS = {
    "setup_s": SETUP_S,
    "grant_s": GRANT_S,
    "before_downlink_s": BEFORE_DOWN_S,
    "before_uplink_s": BEFORE_UP_S,
}
PAUSE_S = 0.4
COMPUTE_S = 0.08  # for 640 samples
LISTEN_W = 0.6  # 100 units of 6 mW
# a device listens for 10 ms, then sleeps in cycles of 160 ms, and is released after a time that each test sets
POWER = {"name": "tr38840", "inactivity_s": 0.01}
HOW = pytest.mark.parametrize(
    "how", [{}, {"deadline_s": 1e6}, {"battery_j": 100.0}], ids=["plan", "process", "battery"]
)


def run(
    access: Any, release_s: float, rounds: int = 2, **sections: Any
) -> tuple[list[DeviceRound], SmallWorld]:
    """Run rounds of one device on a link that does not fade, with a pause of 0.4 s after each round."""
    devices = {
        "power": {**POWER, "release_s": release_s},
        "battery_j": sections.pop("battery_j", None),
        **sections.pop("devices", {}),
    }
    world = small_world(
        [50.0],
        learner=sections.pop("learner", Scripted(work=(5, 640, DOWN_BITS, UP_BITS))),
        policy={"name": "schedule", "count": 1, "rounds": rounds},
        devices=devices,
        rules={"pause_s": PAUSE_S, "deadline_s": sections.pop("deadline_s", None)},
        radio={"access": access, **sections.pop("radio", {})},
        **sections,
    ).run()
    return world.rows.of[DeviceRound], world


def waited_s(rows: list[DeviceRound], rounds: list[Round]) -> list[tuple[float, float]]:
    """Return the times from a round's start to its download and from the end of computing to its upload."""
    assert all(row.compute_end_s and row.uplink_start_s and row.downlink_start_s for row in rows)
    return [
        (row.downlink_start_s - round_.start_s, row.uplink_start_s - row.compute_end_s)  # type: ignore[operator]
        for row, round_ in zip(rows, rounds, strict=True)
    ]


def awake_after_s(silent_s: float) -> float:
    """Return the remaining sleep in s of a device silent for silent_s, which wakes for 8 ms of each 160 ms."""
    if silent_s < 0.01:
        return 0.0
    for begins_s in (0.01 + 0.16 * cycle for cycle in itertools.count()):
        if silent_s < begins_s:
            return begins_s - silent_s
        if silent_s < begins_s + 0.008:
            return 0.0
    raise AssertionError


@HOW
@pytest.mark.parametrize(
    "release_s", [0.05, 0.3, 10.0], ids=["always idle", "idle after a pause", "connected"]
)
def test_a_round_takes_the_access_longer(release_s: float, how: dict[str, Any]) -> None:
    """Access delays each transfer by what the connection's state requires; its energy is listening power x time."""
    plain, plain_world = run(None, release_s, **how)
    rows, world = run(ACCESS, release_s, **how)
    waits = waited_s(rows, world.rows.of[Round])
    after_computing = GRANT_S if release_s > COMPUTE_S + BEFORE_UP_S else SETUP_S
    after_pause = SETUP_S if release_s <= PAUSE_S + BEFORE_DOWN_S else awake_after_s(PAUSE_S + BEFORE_DOWN_S)
    wanted = [
        (BEFORE_DOWN_S + SETUP_S, BEFORE_UP_S + after_computing),
        (BEFORE_DOWN_S + after_pause, BEFORE_UP_S + after_computing),
    ]
    for (down_s, up_s), (first_s, second_s) in zip(waits, wanted, strict=True):
        # a transfer begins at a slot boundary
        assert -1e-9 <= down_s - first_s < SLOT_S + 1e-9
        assert -1e-9 <= up_s - second_s < SLOT_S + 1e-9
    listened = [SETUP_S, SETUP_S if release_s <= PAUSE_S + BEFORE_DOWN_S else 0.0]
    for row, without, first_s in zip(rows, plain, listened, strict=True):
        assert row.energy_rx_j - without.energy_rx_j == pytest.approx(LISTEN_W * first_s, abs=1e-12)
        assert row.energy_tx_j - without.energy_tx_j == pytest.approx(LISTEN_W * after_computing, abs=1e-12)
    with_it, without_it = (one.simulation.ledger.circuits()["circuit_j"] for one in (world, plain_world))
    assert with_it - without_it == pytest.approx([2 * LISTEN_W * after_computing], abs=1e-12)
    told = world.rows.further["access_s"]
    assert told == pytest.approx([sum(of_round) for of_round in wanted], abs=2 * SLOT_S)
    assert "access_s" not in plain_world.rows.further


@HOW
def test_the_books_have_each_moment_once(how: dict[str, Any]) -> None:
    """A tail ends when the radio listens for the next transfer; without a tail or listening, a device is idle."""
    idle_w = 0.01
    rows, world = run(ACCESS, 0.3, devices={"idle_power_w": idle_w}, **how)
    power = world.simulation.network.power
    ledger: LedgerRow
    (ledger,) = world.simulation.ledger.rows(power.running_s(), idle_w, power.charges())
    drx_w = 6e-3 * (8 * 100 + 152 + 450) / 160
    gaps_s = [COMPUTE_S + BEFORE_UP_S, PAUSE_S + BEFORE_DOWN_S, COMPUTE_S + BEFORE_UP_S, math.inf]
    tails_j = [LISTEN_W * 0.01 + drx_w * (min(gap_s, 0.3) - 0.01) for gap_s in gaps_s]
    assert [row.energy_tail_j for row in rows] == pytest.approx(
        [tails_j[0] + tails_j[1], tails_j[2] + tails_j[3]], abs=drx_w * 3 * SLOT_S
    )
    # the device is idle until the first transfer wakes its radio, and after the first round's tail
    rests_s = BEFORE_DOWN_S + (PAUSE_S + BEFORE_DOWN_S - 0.3)
    assert ledger.idle_j == pytest.approx(idle_w * rests_s, abs=idle_w * 4 * SLOT_S)
    if ledger.left_j is not None:
        assert 100.0 - ledger.left_j == pytest.approx(ledger.total_j, abs=1e-8)


@given(bits=st.integers(0, 50_000_000), rate=st.floats(1e4, 1e10), round_trip_s=st.floats(0.0, 1.0))
@settings(max_examples=100)
def test_slow_start_segment_by_segment(bits: int, rate: float, round_trip_s: float) -> None:
    """Compare with a step-by-step simulation of a sender's congestion window on a link of constant rate."""
    segment = 1460 * 8
    window, sent, link_free_s, last_s = 10, 0, 0.0, 0.0
    acks_s: list[float] = []
    total = -(-bits // segment)
    now_s = 0.0
    if total > 100:  # comparing more than 100 segments is slow
        total, bits = 100, 100 * segment
    while sent < total:
        # send a window back to back, and the next window when the first acknowledgement of this window arrives
        burst = min(window, total - sent)
        begun_s = max(now_s, link_free_s)
        last_s = begun_s + (bits - sent * segment if sent + burst == total else burst * segment) / rate
        link_free_s = last_s
        acks_s.append(begun_s + round_trip_s)
        now_s, sent, window = acks_s[-1], sent + burst, window * 2
    stalled_s = last_s - bits / rate
    found = slow_start_s(bits, rate, round_trip_s)
    assert found == pytest.approx(stalled_s, rel=1e-9, abs=1e-9 + 1e-12 * last_s)


def test_slow_start_of_a_small_and_a_large_model() -> None:
    """A small model waits for a round trip; a large model waits until the window exceeds bandwidth times delay."""
    rate, round_trip_s = 100e6, 0.02
    small, large = (slow_start_s(bits, rate, round_trip_s) for bits in (250_000, 21_000_000))
    assert small == pytest.approx(round_trip_s - 116_800 / rate)
    stalls = [round_trip_s - 116_800 * 2**k / rate for k in range(8)]
    assert large == pytest.approx(sum(stall_s for stall_s in stalls if stall_s > 0))
    assert slow_start_s(21_000_000, 1e6, round_trip_s) == 0.0  # on a slow link the sender never waits


def test_states_of_a_connection() -> None:
    rules = AccessSettings(setup_s=0.1, grant_s=0.015, round_trip_s=0.02)
    sleeper, awake = Connection(0.1, 0.16, 0.008, 10.0), ALWAYS_ON
    cases = [  # seconds since the last transfer, timers, and slots (rest, listening) before down- and uplink
        (math.inf, sleeper, (0, 200 + 40), (0, 200)),
        (10.0, sleeper, (0, 200 + 40), (0, 200)),
        (0.05, sleeper, (0, 40), (0, 30)),
        (0.105, sleeper, (0, 40), (0, 30)),  # within the on-duration that begins at 0.1
        (0.11, sleeper, (300, 40), (0, 30)),  # asleep from 0.108 until 0.26
        (0.26, sleeper, (0, 40), (0, 30)),
        (math.inf, awake, (0, 40), (0, 30)),
    ]
    for since_s, timers, down, up in cases:
        for direction, wanted in (("downlink", down), ("uplink", up)):
            # with so few bits, slow start adds no time
            lead = lead_of(rules, SLOT_S, direction, 100_000, since_s, timers, 1e9)  # type: ignore[arg-type]
            assert lead == wanted, (since_s, direction)
    assert lead_of(rules, SLOT_S, "uplink", 0, 0.0, sleeper, 1e9).slots == 0
    assert lead_of(None, SLOT_S, "uplink", 100_000, math.inf, sleeper, 1e9).slots == 0


def test_a_deadline_ends_the_wait_for_access() -> None:
    """A deadline of 60 ms leaves 30 ms of rest and 30 ms of listening, which costs energy; no bit is sent."""
    rows, world = run(ACCESS, 10.0, rounds=1, deadline_s=0.06)
    assert [row.outcome for row in rows] == ["late_downlink"]
    assert rows[0].downlink_bits == 0
    assert rows[0].energy_rx_j == pytest.approx(LISTEN_W * 0.03)
    assert world.rows.further["access_s"] == pytest.approx([0.06])


def test_a_device_that_leaves_while_it_listens() -> None:
    """A device pays for listening until it leaves."""
    rows, _ = run(ACCESS, 10.0, rounds=1, switches_s=[[0.0, 0.1]])
    assert [row.outcome for row in rows] == ["off_downlink"]
    assert rows[0].energy_rx_j == pytest.approx(LISTEN_W * 0.07)


def test_a_broadcast_waits_for_its_last_listener() -> None:
    """All devices begin to receive at the same time; a device without a setup rests longer before it listens."""
    world = small_world(
        [50.0, 60.0],
        devices={"power": {**POWER, "release_s": 10.0}},
        radio={"access": ACCESS, "downlink": "broadcast"},
    ).run()
    first, second = world.rows.of[DeviceRound]
    assert first.downlink_start_s == second.downlink_start_s == pytest.approx(BEFORE_DOWN_S + SETUP_S)
    assert world.rows.further["access_s"][0] == pytest.approx(BEFORE_DOWN_S + SETUP_S + BEFORE_UP_S + GRANT_S)


@pytest.mark.parametrize(
    "server", [{"name": "synchronous"}, {"name": "fedasync"}, {"name": "fedbuff", "buffer": 1}]
)
def test_every_server_feels_it(server: dict[str, Any]) -> None:
    """With every server, access delays two models by the access times of their four transfers."""
    ends_s = []
    for access in (None, ACCESS):
        world = small_world(
            [50.0],
            learner=Scripted(work=(5, 640, DOWN_BITS, UP_BITS)),
            policy={"name": "schedule", "count": 1, "rounds": 2},
            devices={"power": {**POWER, "release_s": 10.0}},
            rules={"server": server},
            radio={"access": access, "sharing": "dynamic", "scheduler": "round_robin"},
        ).run()
        ends_s.append(world.env.now)
    between = awake_after_s(BEFORE_DOWN_S)
    wanted_s = (BEFORE_DOWN_S + SETUP_S) + (BEFORE_DOWN_S + between) + 2 * (BEFORE_UP_S + GRANT_S)
    assert ends_s[1] - ends_s[0] == pytest.approx(wanted_s, abs=4 * SLOT_S)


def test_after_a_failed_link_a_device_has_no_connection() -> None:
    """After an upload has failed below the lowest rate, the next download needs a setup even before the release."""
    rows, world = run(
        ACCESS,
        10.0,
        devices={"transmit_power_dbm": -40},
        radio={"link": {"rates": "cqi"}, "monitoring": {"t310_s": 0.05}},
    )
    assert [row.outcome for row in rows] == ["failed_uplink"] * 2
    starts_s = [round_.start_s for round_ in world.rows.of[Round]]
    for row, start_s in zip(rows, starts_s, strict=True):
        assert row.downlink_start_s == pytest.approx(start_s + BEFORE_DOWN_S + SETUP_S, abs=SLOT_S)


SPREAD = 0.3


def computed_s(jitter: float | None, rounds: int, devices: int = 3, **sections: Any) -> list[list[float]]:
    """Return the computing time of each device in each round."""
    world = small_world(
        [50.0 + k for k in range(devices)],
        policy={"name": "schedule", "count": 1, "rounds": rounds},
        devices={"compute_jitter": jitter},
        **sections,
    ).run()
    of: list[list[float]] = [[] for _ in range(devices)]
    for row in world.rows.of[DeviceRound]:
        assert row.compute_end_s is not None
        assert row.compute_start_s is not None
        of[row.device].append(row.compute_end_s - row.compute_start_s)
        assert row.energy_compute_j == pytest.approx(0.1 * COMPUTE_S)  # jitter does not change the energy
    return of


def test_computing_takes_longer_in_some_rounds() -> None:
    """The jitter factor is log-normal with mean 1, and its logarithm has the given standard deviation."""
    rounds, devices = 300, 3
    logs = np.log(np.array(computed_s(SPREAD, rounds, devices)) / COMPUTE_S)
    many = rounds * devices
    assert abs(logs.mean() + SPREAD**2 / 2) < 4 * SPREAD / math.sqrt(many)
    assert abs(logs.std() - SPREAD) < 4 * SPREAD / math.sqrt(2 * many)
    assert abs(np.corrcoef(logs)[0, 1]) < 4 / math.sqrt(rounds)


def test_jitter_is_the_same_whatever_happens_to_others() -> None:
    """Jitter depends on seed, device and round only; plans, processes and more devices do not change it."""
    first = computed_s(SPREAD, 4)
    assert computed_s(SPREAD, 4, rules={"deadline_s": 1e6}) == [pytest.approx(one, rel=1e-9) for one in first]
    assert computed_s(SPREAD, 4, devices=5)[:3] == [pytest.approx(one, rel=1e-9) for one in first]
    assert computed_s(None, 2) == [pytest.approx([COMPUTE_S] * 2)] * 3


def test_a_preset_fills_what_a_scenario_leaves_out() -> None:
    """In nr, setting a key keeps the preset's other keys, and null removes access; the journal preset has none."""
    nr = AccessSettings(**NR["radio.access"])
    assert RadioSettings().access == nr
    assert RadioSettings(access={"setup_s": 0.1}).access == nr.model_copy(update={"setup_s": 0.1})  # type: ignore[arg-type]
    assert RadioSettings(access=None).access is None
    assert RadioSettings(preset="journal").access is None
    assert RadioSettings(preset="journal", access={}).access == AccessSettings()  # type: ignore[arg-type]
