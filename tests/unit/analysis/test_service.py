"""Test the number of devices that each cell serves over time, and means over cells weighted by this number."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis.measures.service import Service
from edgefl.analysis.runs.clock import Clock, clock_of, of_day

SESSIONS = pd.DataFrame(
    {
        "cell": [0, 1, 0],
        "start_s": [0.0, 10.0, 60.0],
        "devices": ["1 2 3", "4", "1 3 4"],
        "session": [1, 1, 2],
    }
)
EVENTS = pd.DataFrame(
    [
        (20.0, "handover", 4, 0, 1),  # device 4 moves to cell 0, which leaves cell 1 empty
        (20.0, "waiting_for_devices", None, 1, None),
        (30.0, "departure", 1, 0, None),
        (40.0, "switched_off", 2, 0, None),
        (50.0, "switched_on", 2, 0, None),
        (52.0, "radio_link_failure", 3, 0, None),
        (53.0, "reestablished", 3, 0, None),
        (91.0, "radio_link_failure", 4, 1, None),  # the link is reestablished in cell 0
        (92.0, "reestablished", 4, 0, 1),
        (92.0, "handover", 4, 0, 1),
        (93.0, "handover", 4, 1, 0),  # the device returns to cell 0
        (70.0, "arrival", 5, 1, None),
        (80.0, "battery_empty", 5, 1, None),
        (90.0, "battery_back", 5, 1, None),
        (95.0, "session_end", None, 0, None),
    ],
    columns=["time_s", "event", "device", "cell", "from_cell"],
)
AT_S = np.array([0.0, 15.0, 25.0, 35.0, 45.0, 55.0, 65.0, 75.0, 85.0, 99.0])


def test_devices_are_counted_from_the_sessions_list_by_the_events_since() -> None:
    service = Service(SESSIONS, EVENTS)
    assert service.at(0, AT_S).tolist() == [3, 3, 4, 3, 2, 3, 3, 3, 3, 3]
    assert service.at(1, AT_S).tolist() == [0, 1, 0, 0, 0, 0, 0, 1, 0, 1]
    assert service.at(2, AT_S).tolist() == [0] * 10, "a cell without sessions serves no device"


def test_events_at_the_instant_of_a_session_start_count_in_the_order_of_rows() -> None:
    """Device 1 leaves before the session of 40 s starts, so it is not in its list; device 3 comes after."""
    rows = [
        (0.0, "session_start", None, 0),
        (40.0, "departure", 1, 0),
        (40.0, "session_end", None, 0),
        (40.0, "session_start", None, 0),
        (40.0, "arrival", 3, 0),
        (50.0, "departure", 3, 0),
    ]
    events = pd.DataFrame(rows, columns=["time_s", "event", "device", "cell"])
    sessions = pd.DataFrame({"cell": 0, "start_s": [0.0, 40.0], "devices": ["1 2", "2"], "session": [1, 2]})
    assert Service(sessions, events).at(0, np.array([39.0, 40.0, 45.0, 50.0])).tolist() == [2, 2, 2, 1]


def test_devices_that_are_off_or_empty_do_not_count_when_they_move_or_are_switched() -> None:
    """In a single cell, every event names the cell: device 5 arrives while it is off, and 6 is off while it is empty.

    Device 1 is switched off, departs, is switched on while it is away, and is served again from 50 s on.
    """
    rows = [
        (10.0, "arrival", 5, 0.0),
        (12.0, "switched_off", 1, 0.0),
        (14.0, "departure", 1, 0.0),
        (20.0, "switched_on", 5, 0.0),
        (25.0, "battery_empty", 6, 0.0),
        (26.0, "switched_off", 6, 0.0),
        (28.0, "battery_back", 6, 0.0),
        (30.0, "switched_on", 1, None),
        (40.0, "switched_on", 6, 0.0),
        (50.0, "arrival", 1, 0.0),
    ]
    events = pd.DataFrame(rows, columns=["time_s", "event", "device", "cell"])
    sessions = pd.DataFrame({"cell": [0], "start_s": [0.0], "devices": ["1 2 6"], "session": [1]})
    many = Service(sessions, events).at(0, np.array([11.0, 13.0, 15.0, 21.0, 27.0, 35.0, 45.0, 55.0]))
    assert many.tolist() == [3, 2, 2, 3, 2, 2, 3, 4]


def test_a_handed_over_device_counts_when_its_interruption_is_over() -> None:
    """Device 1 hands over to cell 1 at 20 s, is connected from 25 s on, and so is missing in the list at 22 s."""
    row = {
        "time_s": [20.0],
        "event": "handover",
        "device": 1,
        "cell": 1,
        "from_cell": 0,
        "interruption_s": 5.0,
    }
    lists = {
        "cell": [0, 1, 1],
        "start_s": [0.0, 0.0, 22.0],
        "devices": ["1 2", "3", "3"],
        "session": [1, 1, 2],
    }
    service = Service(pd.DataFrame(lists), pd.DataFrame(row))
    at_s = np.array([19.0, 21.0, 24.0, 26.0])
    assert service.at(0, at_s).tolist() == [2, 1, 1, 1]
    assert service.at(1, at_s).tolist() == [1, 1, 1, 2]


def test_cells_count_by_their_devices_and_an_empty_one_not_at_all() -> None:
    """The mean is (3 x 0.8 + 1 x 0.4) / 4 = 0.7 while both cells have devices, and 0.8 when cell 1 is empty."""
    service = Service(SESSIONS, EVENTS)
    of_cells = {0: np.full(10, 0.8), 1: np.array([np.nan, *[0.4] * 9])}
    mean = service.mean(of_cells, AT_S)
    assert mean[[0, 1, 2, 7]] == pytest.approx([0.8, 0.7, 0.8, 0.7])


def test_one_cell_is_its_own_mean_and_nobody_anywhere_changes_nothing() -> None:
    service = Service(SESSIONS, EVENTS)
    values = np.linspace(0, 1, 10)
    assert service.mean({1: values}, AT_S) is values
    away = Service(
        pd.DataFrame({"cell": [0, 1], "start_s": [0.0, 0.0], "devices": ["1", "2"]}),
        pd.DataFrame({"time_s": [5.0, 6.0], "event": "departure", "device": [1, 2], "cell": [0, 1]}),
    )
    times_s = np.array([1.0, 5.5, 7.0])
    mean = away.mean({0: np.array([0.2, 0.2, 0.9]), 1: np.array([0.4, 0.4, 0.9])}, times_s)
    assert mean == pytest.approx([0.3, 0.4, 0.4])


def test_a_clock_says_the_hour_and_the_day() -> None:
    clock = Clock(begin_hour=5.0)
    told = [clock.words(s) for s in (0.0, 14_400.0, 41_400.0, 68_400.0, 100_800.0)]
    assert told == ["5:00", "9:00", "16:30", "day 2, 0:00", "day 2, 9:00"]
    assert [of_day(hour) for hour in (4.0, 8.1, 23.999, 28.25)] == ["4:00", "8:06", "0:00", "4:15"]
    assert Clock(6.0, day_s=240.0).words(120.0) == "18:00", "a day of four minutes"
    assert Clock().words(12.5) == "12.5 s"


DAY = "sessions: {name: interval}\ndevices: {mobility: {name: itinerary, begin_hour: 7.5, day_s: 120}}"


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("sessions: {name: schedule, count: 2}", None),
        ("sessions: {name: membership}", Clock()),
        ("sessions: {name: daily, begin_hour: 5}", Clock(5.0)),
        (DAY, Clock(7.5, 120.0)),
    ],
)
def test_the_clock_is_read_from_the_scenario(text: str, clock: Clock | None, tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(text + "\n")
    info = pd.DataFrame({"variant": ["a"], "path": [str(tmp_path)]})
    assert clock_of(info) == clock
