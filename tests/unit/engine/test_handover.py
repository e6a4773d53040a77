"""Event A3 enters, leaves and triggers at exactly the stated times. TS 38.331, 5.5.4.4."""

from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import simpy

from edgefl.engine.handover import Decision, EventA3
from edgefl.engine.network import Network
from edgefl.engine.parts import Cause
from edgefl.engine.records import Event
from edgefl.engine.settings import HandoverSettings
from edgefl.testing import Rows

INTERVAL_S, TRIGGER_S = 0.2, 0.256
HYSTERESIS_DB, OFFSET_DB = 3.0, 1.0
SETTINGS = HandoverSettings(hysteresis_db=HYSTERESIS_DB, a3_offset_db=OFFSET_DB)
ENTERS, STAYS, LEAVES = OFFSET_DB + HYSTERESIS_DB + 0.01, 0.0, OFFSET_DB - HYSTERESIS_DB - 0.01


class One(NamedTuple):
    """A decision about the one device there is."""

    time_s: float
    device: int
    target: int


def singles(found: list[Decision]) -> list[One]:
    return [One(d.time_s, int(d.devices[0]), int(d.targets[0])) for d in found if len(d.devices) == 1]


def decisions(gaps_db: list[list[float]], settings: HandoverSettings = SETTINGS) -> list[One]:
    """Measurements of one device served by cell 0; gaps_db[t][n] is neighbour n + 1 over serving, in dB."""
    a3 = EventA3(settings, devices=1, cells=len(gaps_db[0]) + 1)
    found = []
    for number, gaps in enumerate(gaps_db):
        power_db = np.array([[-90.0, *(-90.0 + gap for gap in gaps)]])
        found += a3.measure(number * settings.measurement_interval_s, power_db, np.array([0]))
    return singles(found)


def test_triggers_exactly_the_time_to_trigger_after_entering() -> None:
    # enters at 0.4 s; the timer ends at 0.656 s, before the measurement at 0.8 s
    (decision,) = decisions([[STAYS], [STAYS], [ENTERS], [STAYS], [LEAVES]])
    assert decision == (pytest.approx(0.4 + TRIGGER_S), 0, 1)


@pytest.mark.parametrize(
    ("gap_db", "enters"), [(OFFSET_DB + HYSTERESIS_DB + 1e-9, True), (OFFSET_DB + HYSTERESIS_DB, False)]
)
def test_enters_only_beyond_offset_plus_hysteresis(gap_db: float, enters: bool) -> None:
    assert bool(decisions([[gap_db], [STAYS]])) == enters


@pytest.mark.parametrize(
    ("gap_db", "leaves"), [(OFFSET_DB - HYSTERESIS_DB - 1e-9, True), (OFFSET_DB - HYSTERESIS_DB, False)]
)
def test_leaves_only_below_offset_minus_hysteresis(gap_db: float, leaves: bool) -> None:
    assert bool(decisions([[ENTERS], [gap_db]])) != leaves


def test_a_second_entry_starts_the_timer_anew() -> None:
    (decision,) = decisions([[ENTERS], [LEAVES], [ENTERS], [STAYS]])
    assert decision.time_s == pytest.approx(0.4 + TRIGGER_S)


def test_the_first_timer_wins_and_the_stronger_among_equals() -> None:
    first = decisions([[ENTERS, STAYS], [ENTERS, ENTERS + 9]])[0]
    assert (first.target, first.time_s) == (1, pytest.approx(TRIGGER_S))
    equal = decisions([[ENTERS, ENTERS + 9], [ENTERS, ENTERS + 9]])[0]
    assert equal.target == 2


def test_without_time_to_trigger_the_measurement_decides() -> None:
    settings = HandoverSettings(time_to_trigger_s=0.0)
    (decision,) = decisions([[3.1]], settings)
    assert decision.time_s == 0.0


def test_devices_without_a_cell_are_not_measured() -> None:
    a3 = EventA3(SETTINGS, devices=2, cells=2)
    power_db = np.array([[-90.0, -60.0], [-90.0, -60.0]])
    assert a3.measure(0.0, power_db, np.array([0, -1])) == []
    found = a3.measure(INTERVAL_S, power_db, np.array([0, -1]))
    assert [d.device for d in singles(found)] == [0]
    # without a cell in between, the timer is gone
    a3 = EventA3(SETTINGS, devices=1, cells=2)
    a3.measure(0.0, power_db[:1], np.array([0]))
    a3.measure(0.2, power_db[:1], np.array([-1]))
    assert a3.measure(0.4, power_db[:1], np.array([0])) == []


# -- the same in the network: who is present where, and when ------------------------------------------


class Here:
    """One device whose only coordinate of interest is the time."""

    moves = True

    def positions_m(self, time_s: float) -> np.ndarray:
        return np.array([[time_s, 0.0]])

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.zeros(1)


def network(
    gap_db: Callable[[float], float], settings: HandoverSettings
) -> tuple[simpy.Environment, Network, Rows]:
    """Two cells; gap_db(time) is cell 1 over cell 0 in dB."""
    env, log = simpy.Environment(), Rows()

    def power_db(positions_m: np.ndarray) -> np.ndarray:
        return np.array([[0.0, gap_db(float(time_s))] for time_s in positions_m[:, 0]])

    one = Network(
        env,
        movement=Here(),
        cells=2,
        tick_s=settings.measurement_interval_s,
        handover=settings,
        recorder=log,
        power_db=power_db,
    )
    for process in one.processes():
        env.process(process)
    return env, one, log


def swings(*turns_s: float) -> Callable[[float], float]:
    """-10 dB at first; changes its sign at each of the times."""
    return lambda time_s: 10.0 if sum(time_s >= t - 1e-6 for t in turns_s) % 2 else -10.0


def present_at(
    env: simpy.Environment, one: Network, times_s: list[float]
) -> list[tuple[list[int], list[int]]]:
    found = []
    for time_s in times_s:
        env.run(until=time_s)
        found.append((one.present(0), one.present(1)))
    return found


def test_a_handover_interrupts_for_exactly_its_latency() -> None:
    settings = HandoverSettings(handover_latency_s=0.05)
    env, one, log = network(swings(0.4), settings)
    at_s = 0.4 + TRIGGER_S
    moments = [0.3, at_s - 1e-6, at_s + 1e-6, at_s + 0.05 - 1e-6, at_s + 0.05 + 1e-6]
    here, nowhere, there = ([0], []), ([], []), ([], [0])
    assert present_at(env, one, moments) == [here, here, nowhere, nowhere, there]
    (event,) = log.of[Event]
    assert (event.event, event.from_cell, event.cell, event.detail) == ("handover", 0, 1, "")
    assert event.time_s == pytest.approx(at_s)
    assert event.stay_s == pytest.approx(at_s), "in cell 0 since time 0"
    assert event.interruption_s == pytest.approx(0.05)


@pytest.mark.parametrize(("back_s", "ping_pong"), [(1.2, True), (1.6, False)])
def test_a_quick_return_is_a_ping_pong(back_s: float, ping_pong: bool) -> None:
    """Out at 0.656 s, back at back_s + 0.256 s: within or beyond the minimum time of stay of 1.0 s."""
    env, _, log = network(swings(0.4, back_s), HandoverSettings(min_time_of_stay_s=1.0))
    env.run(until=4.0)
    out, back = log.of[Event]
    assert (back.from_cell, back.cell) == (1, 0)
    assert back.time_s - out.time_s == pytest.approx(back_s - 0.4)
    assert back.detail == ("ping_pong" if ping_pong else "")
    # time of stay counts from the end of the interruption
    assert back.stay_s == pytest.approx(back_s - 0.4 - 0.05)


@pytest.mark.parametrize("since_s", [0.0, 0.4 + TRIGGER_S + 0.02])
def test_who_waits_for_a_device_is_woken_when_the_interruption_is_over(since_s: float) -> None:
    """Also who begins to wait only while the interruption lasts."""
    env, one, _ = network(swings(0.4), HandoverSettings(handover_latency_s=0.05))
    woken_s = []

    def wait() -> Iterator[simpy.Event]:
        yield env.timeout(since_s)
        yield one.arrival(1)
        woken_s.append(env.now)

    env.process(wait())
    env.run(until=2.0)
    assert woken_s == [pytest.approx(0.4 + TRIGGER_S + 0.05)]


def test_finish_hands_over_when_the_part_is_done_and_drop_at_once() -> None:
    for policy, expected_s in (("drop", 0.4 + TRIGGER_S), ("finish", 0.9)):
        env, one, log = network(swings(0.4), HandoverSettings(policy=policy))
        cuts: list[tuple[float, Cause]] = []

        def part(
            env: simpy.Environment = env, one: Network = one, cuts: list[tuple[float, Cause]] = cuts
        ) -> Generator[simpy.Event, None, None]:
            try:
                yield env.timeout(0.9)
            except simpy.Interrupt as interrupt:
                cuts.append((env.now, interrupt.cause))
            one.part_ended(0)

        one.part_begins(0, env.process(part()))
        env.run(until=2.0)
        (event,) = log.of[Event]
        assert event.time_s == pytest.approx(expected_s)
        assert cuts == ([(pytest.approx(expected_s), Cause.LEFT)] if policy == "drop" else [])
        assert (one.present(0), one.present(1)) == ([], [0])


# -- absent devices -----------------------------------------------------------------------------------


class Away(Here):
    """Two devices in cell 0; the second is absent during an interval."""

    def __init__(self, from_s: float, to_s: float) -> None:
        self._from_s, self._to_s = from_s, to_s

    def positions_m(self, time_s: float) -> np.ndarray:
        away = self._from_s <= time_s < self._to_s
        return np.array([[1.0, 0.0], [np.nan, np.nan] if away else [2.0, 0.0]])

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.zeros(2)


def away(from_s: float, to_s: float, **rules: Any) -> tuple[simpy.Environment, Network, Rows]:
    """Devices see cell 0, and from 1 s on cell 1; who is absent sees nothing."""
    env, log = simpy.Environment(), Rows()

    def power_db(positions_m: np.ndarray) -> np.ndarray:
        seen_db = np.array([[0.0, -10.0 if env.now < 1.0 - 1e-6 else 10.0]] * len(positions_m))
        return np.where(np.isfinite(positions_m[:, :1]), seen_db, -np.inf)

    one = Network(
        env,
        movement=Away(from_s, to_s),
        cells=2,
        tick_s=INTERVAL_S,
        handover=HandoverSettings(**{"time_to_trigger_s": 0.0, "handover_latency_s": 0.0, **rules}),
        recorder=log,
        radius_m=10.0,
        power_db=power_db,
    )
    for process in one.processes():
        env.process(process)
    return env, one, log


def test_an_absent_device_is_not_measured_and_not_present() -> None:
    env, one, log = away(0.5, 1.7)
    both, first, there = ([0, 1], []), ([0], []), ([], [0, 1])
    # from the moment on at which it is absent, before anybody has looked
    assert present_at(env, one, [0.45, 0.55, 0.9, 1.9]) == [both, first, first, there]
    events = [(e.event, e.device, round(e.time_s, 9), e.cell) for e in log.of[Event]]
    assert events == [("departure", 1, 0.6, 0), ("handover", 0, 1.0, 1), ("arrival", 1, 1.8, 1)]


def test_who_finishes_its_part_while_absent_is_not_handed_over() -> None:
    """The neighbour enters at 1.0 s; the device is absent from 1.1 s on, before its timer ends at 1.256 s."""
    env, one, log = away(1.1, 9.0, policy="finish", time_to_trigger_s=TRIGGER_S)

    def part() -> Iterator[simpy.Event]:
        one.part_begins(1, env.active_process)
        yield env.timeout(2.1)
        one.part_ended(1)

    env.process(part())
    env.run(until=4.0)
    assert [(e.event, e.device, e.time_s) for e in log.of[Event] if e.device == 1] == [("departure", 1, 2.1)]


def test_an_absence_that_nobody_saw_wakes_who_waits() -> None:
    """Away from 0.25 s to 0.35 s, looked at every 0.2 s: who waits from 0.3 s on is told at 0.4 s."""
    env, one, log = away(0.25, 0.35)
    one.power._on[0] = False  # the other one is off
    woken_s = []

    def wait() -> Iterator[simpy.Event]:
        yield env.timeout(0.3)
        assert one.present(0) == []
        yield one.arrival(0)
        woken_s.append(env.now)

    env.process(wait())
    env.run(until=2.0)
    assert woken_s == [pytest.approx(0.4)]
    assert not [e for e in log.of[Event] if e.event in ("departure", "arrival")]
