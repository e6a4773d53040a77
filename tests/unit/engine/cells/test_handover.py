"""Test that event A3 enters, leaves and triggers at exactly the times of TS 38.331, 5.5.4.4."""

import itertools
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import simpy

from edgefl.engine.cells.handover import EventA3, Layer3Filter, _Decision
from edgefl.engine.cells.network import Network
from edgefl.engine.parts import Cause
from edgefl.engine.records import Event
from edgefl.engine.settings import HandoverSettings
from edgefl.testing import Rows
from tests.unit.engine.cells.watched import Cells, by_turns, watched
from tests.unit.engine.moving import Moving

INTERVAL_S, TRIGGER_S = 0.2, 0.256
HYSTERESIS_DB, OFFSET_DB = 3.0, 1.0
SETTINGS = HandoverSettings(hysteresis_db=HYSTERESIS_DB, a3_offset_db=OFFSET_DB)
ENTERS, STAYS, LEAVES = OFFSET_DB + HYSTERESIS_DB + 0.01, 0.0, OFFSET_DB - HYSTERESIS_DB - 0.01


class One(NamedTuple):
    """A decision about the test's single device."""

    time_s: float
    device: int
    target: int


def singles(found: list[_Decision]) -> list[One]:
    return [One(d.time_s, int(d.devices[0]), int(d.targets[0])) for d in found if len(d.devices) == 1]


def decisions(gaps_db: list[list[float]], settings: HandoverSettings = SETTINGS) -> list[One]:
    """Return the decisions of one device in cell 0; gaps_db[t][n] is neighbour n + 1 relative to cell 0, in dB."""
    a3 = EventA3(settings, devices=1, cells=len(gaps_db[0]) + 1)
    found = []
    for number, gaps in enumerate(gaps_db):
        power_db = np.array([[-90.0, *(-90.0 + gap for gap in gaps)]])
        found += a3.measure(number * settings.measurement_interval_s, power_db, np.array([0]))
    return singles(found)


def test_triggers_exactly_the_time_to_trigger_after_entering() -> None:
    # the event enters at 0.4 s, and the timer ends at 0.656 s, before the measurement at 0.8 s
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


def test_devices_without_a_cell_are_not_measured() -> None:
    a3 = EventA3(SETTINGS, devices=2, cells=2)
    power_db = np.array([[-90.0, -60.0], [-90.0, -60.0]])
    assert a3.measure(0.0, power_db, np.array([0, -1])) == []
    found = a3.measure(INTERVAL_S, power_db, np.array([0, -1]))
    assert [d.device for d in singles(found)] == [0]
    # a measurement without a serving cell stops the timer
    a3 = EventA3(SETTINGS, devices=1, cells=2)
    a3.measure(0.0, power_db[:1], np.array([0]))
    a3.measure(0.2, power_db[:1], np.array([-1]))
    assert a3.measure(0.4, power_db[:1], np.array([0])) == []


def test_a_target_is_the_strongest_that_has_not_left() -> None:
    a3 = EventA3(SETTINGS, devices=1, cells=3)
    assert a3.target(0, 9.0) is None, "without a measurement"
    for time_s, powers_db in ((0.0, [ENTERS, -9.0]), (0.2, [ENTERS, ENTERS]), (0.4, [STAYS, ENTERS])):
        a3.measure(time_s, np.array([[0.0, *powers_db]]), np.array([0]))
    ends_s = TRIGGER_S, INTERVAL_S + TRIGGER_S
    moments_s = [ends_s[0] - 1e-6, ends_s[0] + 1e-6, ends_s[1] + 1e-6]
    assert [a3.target(0, time_s) for time_s in moments_s] == [None, 1, 2]
    a3.measure(0.6, np.array([[0.0, STAYS, LEAVES]]), np.array([0]))
    assert a3.target(0, 0.6) == 1
    a3.measure(0.8, np.array([[0.0, LEAVES, LEAVES]]), np.array([0]))
    assert a3.target(0, 0.8) is None


# -- the filter of measurements: TS 38.331, 5.5.3.2 ---------------------------------------------------


def filtered(measured_db: list[float], measuring: list[bool] | None = None, **rules: float) -> list[float]:
    """Return the filtered values of one device's measurements of one cell."""
    subject = Layer3Filter(HandoverSettings(**rules), devices=1, cells=1)
    return [
        float(subject.filtered_db(np.array([[power_db]]), np.array([there]))[0, 0])
        for power_db, there in zip(measured_db, measuring or [True] * len(measured_db), strict=True)
    ]


def test_the_first_measurement_counts_fully_and_later_ones_with_weight_a() -> None:
    # k = 4: a = 1/2; k = 8: a = 1/4
    assert filtered([-80.0, -80.0, -100.0, -100.0]) == [-80.0, -80.0, -90.0, -95.0]
    assert filtered([-80.0, -100.0, -100.0], l3_filter_k=8) == [-80.0, -85.0, -88.75]
    assert filtered([-80.0, -100.0, -90.0], l3_filter_k=0) == [-80.0, -100.0, -90.0]


def test_at_another_interval_the_filter_keeps_its_time_characteristic() -> None:
    """With measurements every 0.2, 0.1 or 0.4 s, the filter has the same value 0.4 s after a step of 8 dB."""
    expected = 8.0 * (1 - 0.5**2)
    for interval_s, samples in ((0.2, 2), (0.1, 4), (0.4, 1)):
        after = filtered([0.0] + [8.0] * samples, measurement_interval_s=interval_s)[-1]
        assert after == pytest.approx(expected, rel=1e-6)  # single precision


def test_who_did_not_measure_begins_anew() -> None:
    found = filtered([-80.0, -100.0, -60.0, -64.0], [True, False, True, True])
    assert found[2:] == [-60.0, -62.0]
    # the values of an absent device leave no trace
    assert filtered([-80.0, np.nan, -60.0, -64.0], [True, False, True, True])[2:] == [-60.0, -62.0]
    subject = Layer3Filter(HandoverSettings(), devices=2, cells=1)
    both = np.array([True, True])
    subject.filtered_db(np.array([[-80.0], [-80.0]]), both)
    subject.forget(0)
    assert subject.filtered_db(np.array([[-60.0], [-60.0]]), both)[:, 0].tolist() == [-60.0, -70.0]


class ByHand:
    """A device that filters, times and decides by the formulas, without the network's vectorised code."""

    def __init__(self, rules: HandoverSettings, serving: int) -> None:
        self.rules, self.serving = rules, serving
        self.filtered_db: dict[int, float] = {}
        self.entered_s: dict[int, float] = {}

    def measure(self, time_s: float, powers_db: list[float]) -> tuple[float, int] | None:
        """Return the time and target of a handover before the next measurement."""
        rules = self.rules
        a = 1 - (1 - 1 / 2 ** (rules.l3_filter_k / 4)) ** (rules.measurement_interval_s / 0.2)
        for cell, power_db in enumerate(powers_db):
            before_db = self.filtered_db.get(cell, power_db)
            self.filtered_db[cell] = (1 - a) * before_db + a * power_db
        own_db = self.filtered_db[self.serving]
        for cell, power_db in self.filtered_db.items():
            if power_db + rules.hysteresis_db < own_db + rules.a3_offset_db or cell == self.serving:
                self.entered_s.pop(cell, None)
            elif power_db - rules.hysteresis_db > own_db + rules.a3_offset_db:
                self.entered_s.setdefault(cell, time_s)
        if not self.entered_s:
            return None
        first = min(self.entered_s, key=lambda cell: (self.entered_s[cell], -self.filtered_db[cell]))
        ends_s = self.entered_s[first] + rules.time_to_trigger_s
        if ends_s > time_s + rules.measurement_interval_s - 1e-9:
            return None
        self.entered_s, self.serving = {}, first
        return ends_s, first


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"l3_filter_k": 0, "hysteresis_db": 1.0},
        {"measurement_interval_s": 0.1, "a3_offset_db": -1.0, "time_to_trigger_s": 0.0},
        {"l3_filter_k": 11, "time_to_trigger_s": 0.64},
    ],
)
def test_all_devices_together_decide_as_each_does_by_hand(rules: dict[str, float]) -> None:
    """Devices computed together hand over as if computed alone, for four cells whose powers vary by 5 dB."""
    settings = HandoverSettings(**rules)
    devices, cells, measurements = 12, 4, 150
    steps_db = 2 * np.random.default_rng(5).standard_normal((measurements, devices, cells))
    powers_db = list(itertools.accumulate(steps_db, lambda before_db, step_db: 0.92 * before_db + step_db))
    a3, layer3 = EventA3(settings, devices, cells), Layer3Filter(settings, devices, cells)
    serving = powers_db[0].argmax(axis=1)
    by_hand = [ByHand(settings, int(cell)) for cell in serving]
    found, expected = [], []
    for number, power_db in enumerate(powers_db):
        time_s = number * settings.measurement_interval_s
        measured_db = layer3.filtered_db(power_db, np.ones(devices, dtype=bool))
        for decision in a3.measure(time_s, measured_db, serving):
            serving[decision.devices] = decision.targets
            a3.forget(decision.devices)
            columns = decision.devices.tolist(), decision.targets.tolist()
            found += [(decision.time_s, *row) for row in zip(*columns, strict=True)]
        for device, one in enumerate(by_hand):
            decided = one.measure(time_s, power_db[device].tolist())
            expected += [(decided[0], device, decided[1])] if decided else []
    assert len(expected) > 50
    assert sorted(found) == [pytest.approx(row, abs=1e-9) for row in sorted(expected)]


# -- the same in the network: who is present where, and when ------------------------------------------


def network(turns_s: Sequence[float], settings: HandoverSettings) -> tuple[simpy.Environment, Network, Rows]:
    """Return a network of two cells without a filter; cell 1 is stronger from the first time to the second."""
    cells = Cells(by_turns(*turns_s), settings.model_copy(update={"l3_filter_k": 0}))
    return cells.env, cells.network, cells.log


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
    env, one, log = network([0.4], settings)
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
    """Only a device that returns within the minimum time of stay, 1.0 s, counts as a ping-pong."""
    env, _, log = network([0.4, back_s], HandoverSettings())
    env.run(until=4.0)
    out, back = log.of[Event]
    assert (back.from_cell, back.cell) == (1, 0)
    assert back.time_s - out.time_s == pytest.approx(back_s - 0.4)
    assert back.detail == ("ping_pong" if ping_pong else "")
    # the time of stay starts at the end of the interruption
    assert back.stay_s == pytest.approx(back_s - 0.4 - 0.05)


@pytest.mark.parametrize("since_s", [0.0, 0.41, 0.4 + TRIGGER_S + 0.02, 0.4 + TRIGGER_S + 0.049])
def test_who_waits_for_a_device_is_woken_when_the_interruption_is_over(since_s: float) -> None:
    """A process is woken at the end of the interruption, even if it begins to wait during the interruption."""
    env, one, _ = network([0.4], HandoverSettings(handover_latency_s=0.05))
    woken_s = []

    def wait() -> Iterator[simpy.Event]:
        yield env.timeout(since_s)
        yield one.arrival(1)
        woken_s.append(env.now)

    env.process(wait())
    env.run(until=0.75)  # before the measurement at 0.8
    assert woken_s == [pytest.approx(0.4 + TRIGGER_S + 0.05)]
    assert one.present(1) == [0]


def test_finish_hands_over_when_the_part_is_done_and_drop_at_once() -> None:
    for policy, expected_s in (("drop", 0.4 + TRIGGER_S), ("finish", 0.9)):
        env, one, log = network([0.4], HandoverSettings(policy=policy))
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


def away(from_s: float, to_s: float, **rules: Any) -> tuple[simpy.Environment, Network, Rows]:
    """Return a network whose two devices prefer cell 0 until 1 s and then cell 1; device 1 is absent for a while."""
    env = simpy.Environment()

    def places_m(time_s: float) -> list[list[float]]:
        # devices move a little, so that they are measured at each tick
        return [[1.0, 0.1 * time_s], [np.nan] * 2 if from_s <= time_s < to_s else [2.0, 0.1 * time_s]]

    def power_db_of(positions_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        seen_db = np.array([[0.0, -10.0 if env.now < 1.0 - 1e-6 else 10.0]] * len(positions_m))
        return np.where(np.isfinite(positions_m[:, :1]), seen_db, -np.inf)

    at_once = {"time_to_trigger_s": 0.0, "handover_latency_s": 0.0, "l3_filter_k": 0}
    settings = HandoverSettings(**at_once | rules)
    return env, *watched(env, Moving(places_m), 2, power_db_of, settings, radius_m=10.0)


def test_an_absent_device_is_not_measured_and_not_present() -> None:
    env, one, log = away(0.5, 1.7)
    both, first, there = ([0, 1], []), ([0], []), ([], [0, 1])
    # the device is absent from the time it leaves, even before a measurement notices it
    assert present_at(env, one, [0.45, 0.55, 0.9, 1.9]) == [both, first, first, there]
    events = [(e.event, e.device, round(e.time_s, 9), e.cell) for e in log.of[Event]]
    assert events == [("departure", 1, 0.6, 0), ("handover", 0, 1.0, 1), ("arrival", 1, 1.8, 1)]


def test_who_finishes_its_part_while_absent_is_not_handed_over() -> None:
    """No handover follows if the device leaves at 1.1 s, before its timer ends at 1.256 s."""
    env, one, log = away(1.1, 9.0, policy="finish", time_to_trigger_s=TRIGGER_S)

    def part() -> Iterator[simpy.Event]:
        one.part_begins(1, env.active_process)
        yield env.timeout(2.1)
        one.part_ended(1)

    env.process(part())
    env.run(until=4.0)
    assert [(e.event, e.device, e.time_s) for e in log.of[Event] if e.device == 1] == [("departure", 1, 2.1)]


def test_an_absence_that_nobody_saw_wakes_who_waits() -> None:
    """If a device is absent from 0.25 to 0.35 s, between checks, a process waiting from 0.3 s wakes at 0.4 s."""
    env, one, log = away(0.25, 0.35)
    one.power._on[0] = False  # the other device is off
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


def test_a_cell_out_of_range_is_no_target_and_one_in_range_replaces_it() -> None:
    """A site out of range, at -inf, is not a target, and as serving cell it is worse than any other."""
    a3 = EventA3(SETTINGS, devices=1, cells=3)
    out = -np.inf
    found = []
    for number, powers in enumerate(
        [[-90.0, out, out], [out, out, out], [out, out, -120.0], [out, out, -120.0]]
    ):
        found += a3.measure(number * INTERVAL_S, np.array([powers]), np.array([0]))
    # cell 2 comes into range at 0.4 s, while the serving cell is out of range
    assert singles(found) == [(pytest.approx(0.4 + TRIGGER_S), 0, 2)]


def test_the_filter_starts_when_a_cell_comes_into_range_and_forgets_one_that_leaves() -> None:
    """With k = 4 at 0.2 s, F_n = (F_(n-1) + M_n) / 2, and F_1 = M_1 for a new cell (38.331, 5.5.3.2)."""
    filter_ = Layer3Filter(HandoverSettings(l3_filter_k=4), devices=1, cells=2)
    everyone = np.array([True])
    measured = [[-80.0, -np.inf], [-90.0, -np.inf], [-90.0, -100.0], [-np.inf, -110.0], [-70.0, -110.0]]
    expected = [[-80.0, -np.inf], [-85.0, -np.inf], [-87.5, -100.0], [-np.inf, -105.0], [-70.0, -107.5]]
    for powers, filtered in zip(measured, expected, strict=True):
        power_db = np.asfortranarray([powers], dtype=np.float32)
        np.testing.assert_array_equal(filter_.filtered_db(power_db, everyone), [filtered])
