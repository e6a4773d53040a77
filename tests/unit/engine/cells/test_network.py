"""Test networks of several cells: devices that are off have no cell, and policy `finish` decides after the work."""

from collections.abc import Generator, Sequence

import numpy as np
import pytest
import simpy

from edgefl.engine.devices.battery import Battery
from edgefl.engine.parts import Cause
from edgefl.engine.records import Event
from edgefl.engine.settings import HandoverSettings
from tests.unit.engine.cells.watched import RAW, Cells, Row, by_turns, watched
from tests.unit.engine.moving import Moving

TRIGGER_S = 0.256
EVERY_SECOND = HandoverSettings(l3_filter_k=0, measurement_interval_s=1.0)


def approx(*rows: Row) -> list[tuple[str, object, int | None]]:
    return [(event, pytest.approx(time_s), cell) for event, time_s, cell in rows]


# -- off or empty -------------------------------------------------------------------------------------


def test_a_device_that_is_off_hands_over_to_nobody_and_selects_a_cell_when_it_is_on() -> None:
    """The strongest cell changes at 0.4, 1.4 and 2.4 s, which would be three handovers if the device were on."""
    cells = Cells(by_turns(0.4, 1.4, 2.4), switches_s=[0.0, 0.3, 3.1])
    assert [cells.cell_of(time_s) for time_s in (0.29, 0.31, 3.09, 3.11)] == [0, None, None, 1]
    assert cells.rows() == approx(("switched_off", 0.3, 0), ("switched_on", 3.1, 1))


def test_without_switching_it_would_have_handed_over() -> None:
    rows = Cells(by_turns(0.4, 1.4, 2.4)).rows()
    assert [(event, cell) for event, _, cell in rows] == [("handover", 1), ("handover", 0), ("handover", 1)]


@pytest.mark.parametrize(
    ("trigger_s", "off_s", "on_s"),
    # the timer would end at 0.656 s, after the next measurement, or at 0.5 s, as decided at 0.4 s
    [(0.256, 0.5, 0.55), (0.1, 0.45, 0.47)],
)
def test_switching_off_stops_the_time_to_trigger(trigger_s: float, off_s: float, on_s: float) -> None:
    """Cell 1 enters at 0.4 s and stays within the hysteresis; after switching on, the device selects cell 0."""
    settings = RAW.model_copy(update={"time_to_trigger_s": trigger_s})

    def powers_db(time_s: float) -> list[float]:
        return [0.0, 10.0 if 0.39 < time_s < 0.41 else -1.0]

    (handover,) = Cells(powers_db, settings).rows()
    assert handover == ("handover", pytest.approx(0.4 + trigger_s), 1)
    rows = Cells(powers_db, settings, switches_s=[0.0, off_s, on_s]).rows()
    assert rows == approx(("switched_off", off_s, 0), ("switched_on", on_s, 0))


@pytest.mark.parametrize(
    ("off_s", "turn_s", "on_s"),
    [(2.02, 2.04, 2.06), (0.3, 2.04, 2.06)],  # off between two measurements, or during many
)
def test_switching_off_ends_the_memory_of_the_filter(off_s: float, turn_s: float, on_s: float) -> None:
    """With k = 19 the filter remembers values for seconds, but forgets them when the device is switched off."""
    settings = HandoverSettings(l3_filter_k=19)
    rows = Cells(by_turns(turn_s), settings, switches_s=[0.0, off_s, on_s]).rows(until_s=6.0)
    assert rows == approx(("switched_off", off_s, 0), ("switched_on", on_s, 1))


def test_selection_after_an_interval_off_is_no_return() -> None:
    """A handover back to cell 0 is a ping-pong, but not if the device was switched off and on in cell 1 meanwhile."""
    settings = RAW.model_copy(update={"min_time_of_stay_s": 2.0})
    for switches_s, detail in (([], "ping_pong"), ([0.0, 0.9, 1.0], "")):
        cells = Cells(by_turns(0.4, 1.2), settings, switches_s=switches_s)
        cells.env.run(until=4.0)
        back = cells.log.of[Event][-1]
        assert (back.event, back.cell, back.detail) == ("handover", 0, detail)
        since_s = switches_s[-1] if switches_s else 0.4 + TRIGGER_S + settings.handover_latency_s
        assert back.stay_s == pytest.approx(1.2 + TRIGGER_S - since_s)


def test_an_empty_device_has_no_cell_until_it_is_back() -> None:
    """With 1 J, 2 W idle and 1 W of recharge, the battery is empty from 1 to 1.2 s, and the device has no cell."""
    battery = Battery(1.0, 1.0, 0.2)
    cells = Cells(by_turns(0.9), battery=battery, idle_power_w=2.0, switches_s=[0.0, 1.05, 1.1])
    expected = [
        ("battery_empty", 1.0, 0),
        ("switched_off", 1.05, None),
        ("switched_on", 1.1, None),
        ("battery_back", 1.2, 1),
    ]
    assert cells.rows(until_s=1.3) == approx(*expected)


@pytest.mark.parametrize(
    ("switches_s", "expected"),
    [
        ([], "departure 0.6 0, arrival 1.2 1"),
        # off when it leaves, or off when it returns
        ([0.0, 0.3, 0.9], "switched_off 0.3 0, departure 0.6 -, switched_on 0.9 -, arrival 1.2 1"),
        ([0.0, 0.7, 1.5], "departure 0.6 0, switched_off 0.7 -, arrival 1.2 -, switched_on 1.5 1"),
        # on between two checks, when the network has noticed neither the departure nor the return
        ([0.0, 0.3, 0.55], "switched_off 0.3 0, switched_on 0.55 -, departure 0.6 -, arrival 1.2 1"),
    ],
)
def test_arrival_and_departure_take_turns_whether_on_or_off(switches_s: list[float], expected: str) -> None:
    """A device is outside from 0.5 to 1.1 s, which is noticed at 0.6 and 1.2 s; cell 1 is best from 1 s."""
    cells = Cells(by_turns(1.0), switches_s=switches_s, absent_s=(0.5, 1.1))
    rows = map(str.split, expected.split(", "))
    wanted = [(event, float(at_s), None if cell == "-" else int(cell)) for event, at_s, cell in rows]
    assert cells.rows() == approx(*wanted)


def test_who_waits_for_a_device_is_woken_when_one_is_switched_on() -> None:
    cells = Cells(by_turns(0.4), switches_s=[0.0, 0.3, 1.5])
    woken: list[tuple[float, list[int]]] = []

    def wait() -> Generator[simpy.Event, None, None]:
        yield cells.network.arrival(1)
        woken.append((cells.env.now, cells.network.present(1)))

    cells.env.process(wait())
    cells.env.run(until=2.0)
    assert woken == [(1.5, [0])]


def test_who_is_off_at_first_selects_its_cell_when_it_is_switched_on() -> None:
    cells = Cells(by_turns(0.4), switches_s=[1.0])
    assert cells.cell_of(0.5) is None
    assert cells.rows() == approx(("switched_on", 1.0, 1))


# -- with `finish`, the end of the work decides again -------------------------------------------------

FINISH = RAW.model_copy(update={"policy": "finish"})


def test_who_has_returned_by_the_end_of_its_part_stays() -> None:
    """Cell 1 is better from 0.4 s to 1.4 s; when the work ends at 2 s, cell 0 is best, and no handover follows."""
    cells = Cells(by_turns(0.4, 1.4), FINISH)
    causes = cells.works_until(2.0)
    assert cells.rows() == []
    assert causes == []


def test_at_the_end_of_its_part_a_device_goes_to_the_then_strongest() -> None:
    """Cell 1 is better from 0.4 s, and cell 2 is best from 1.0 s: when the work ends, the target is cell 2."""

    def powers_db(time_s: float) -> list[float]:
        return [0.0, 10.0 if time_s > 0.39 else -10.0, 15.0 if time_s > 0.99 else -10.0]

    cells = Cells(powers_db, FINISH)
    cells.works_until(2.0)
    assert cells.rows() == approx(("handover", 2.0, 2))


def test_a_neighbour_must_have_been_better_for_the_time_to_trigger() -> None:
    """Cell 1 enters at 1.8 s: the end of the work at 2 s does not bring the trigger at 2.056 s forward."""
    cells = Cells(by_turns(1.8), FINISH)
    cells.works_until(2.0)
    assert cells.rows() == approx(("handover", 1.8 + TRIGGER_S, 1))


def test_who_is_switched_off_while_it_waits_to_leave_goes_nowhere() -> None:
    cells = Cells(by_turns(0.4), FINISH, switches_s=[0.0, 1.0])
    causes = cells.works_until(2.0)
    assert cells.rows() == approx(("switched_off", 1.0, 0))
    assert causes == [Cause.OFF]


def test_who_finishes_outside_departs_at_the_end_of_its_part_unless_it_is_back() -> None:
    for end_s, expected in ((0.9, [("departure", 0.9, 0), ("arrival", 1.2, 0)]), (1.3, [])):
        cells = Cells(by_turns(), FINISH, absent_s=(0.5, 1.1))
        cells.works_until(end_s)
        assert cells.rows() == approx(*expected)


def some(*walkers: int) -> Moving:
    """Return four devices, one of them absent; only `walkers` move, at 1 m/s."""
    places_m = np.array([[0.0, 0.0], [10.0, 0.0], [20.0, 0.0], [np.nan, np.nan]])
    steps = np.isin(np.arange(4), walkers)[:, None] * [1.0, 0.0]
    return Moving(lambda time_s: places_m + time_s * steps)


@pytest.mark.parametrize(("walkers", "asked"), [((), 0), ((0,), 1), ((0, 2), 2), ((0, 1, 2), 4)])
def test_only_who_has_moved_is_measured_anew(walkers: Sequence[int], asked: int) -> None:
    """With cells at 0 and 30 m, walkers hand over at the same times as if all devices were measured."""
    rows: list[int] = []

    def power_db_of(positions_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        rows.append(len(positions_m))
        power = -np.abs(positions_m[:, :1] - np.array([0.0, 30.0]))
        return np.where(np.isnan(power), -np.inf, power).astype(np.float32)

    env = simpy.Environment()
    _, log = watched(env, some(*walkers), 2, power_db_of, EVERY_SECOND)
    rows.clear()  # ignore the measurements of the initial cell selection
    env.run(until=25.5)
    # the first measurement is of all devices
    assert rows == [4] + [asked] * 24 * bool(asked)
    handovers = {event.device: event.time_s for event in log.of[Event] if event.event == "handover"}
    # with 3 dB of hysteresis |30 - x| + 3 < x holds from x = 16.5, which is measured at x = 17
    expected = {1: 7.0 + TRIGGER_S, 0: 17.0 + TRIGGER_S}
    assert handovers == pytest.approx({device: expected[device] for device in walkers if device in expected})


def test_who_is_measured_anew_is_measured_as_itself() -> None:
    """Device 1 receives cell 0 8 dB stronger, so 30 - x + 3 + 8 < x holds from x = 20.5, as measured at x = 21."""

    def power_db_of(positions_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        power = -np.abs(positions_m[:, :1] - np.array([0.0, 30.0]))
        power[ids == 1, 0] += 8.0
        return np.where(np.isnan(power), -np.inf, power).astype(np.float32)

    env = simpy.Environment()
    _, log = watched(env, some(1), 2, power_db_of, EVERY_SECOND)
    env.run(until=15.5)
    handovers = [(event.device, event.time_s) for event in log.of[Event] if event.event == "handover"]
    assert handovers == [(1, pytest.approx(11.0 + TRIGGER_S))]


def test_handovers_that_nobody_waits_for_leave_no_timer() -> None:
    world = Cells(lambda time_s: (0.0, 10.0 if time_s > 0.1 else -10.0))
    world.env.run(until=0.47)
    assert [event.event for event in world.log.of[Event]] == ["handover"]
    coming_s = [time_s for time_s, *_ in world.env._queue if time_s > 0.48]
    assert coming_s == [pytest.approx(0.6)], "the next event is a measurement"
