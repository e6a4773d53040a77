"""Compare the start times of rounds with hand derivations."""

import pytest
import simpy

from edgefl.engine.federation.timetable import Timetable, wait_until


def begins(timetable: Timetable, latencies_s: list[float]) -> list[float]:
    """Return the start times of rounds with these latencies, the first at 0, and each as early as allowed."""
    now_s, starts_s = 0.0, []
    for latency_s in latencies_s:
        now_s = max(now_s, timetable.next_s)
        starts_s.append(now_s)
        timetable.begun(now_s)
        now_s += latency_s
        timetable.ended(now_s)
    return starts_s


def test_rounds_begin_on_the_grid_or_at_once_after_a_long_one() -> None:
    # the third round lasts until 46, past 30 and 40, so the fourth begins at once, and the fifth on the grid
    assert begins(Timetable(every_s=10.0), [3.0, 10.0, 26.0, 1.0, 1.0]) == [0.0, 10.0, 20.0, 46.0, 50.0]


def test_a_pause_follows_each_round_and_may_miss_the_grid() -> None:
    assert begins(Timetable(pause_s=2.0), [3.0, 1.0, 1.0]) == [0.0, 5.0, 8.0]
    assert begins(Timetable(every_s=10.0, pause_s=8.0), [1.0, 3.0, 1.0]) == [0.0, 10.0, 21.0]


def test_steps_that_no_float_holds_stay_on_the_grid() -> None:
    """As 0.1 is inexact, 3 x 0.1 > 0.3 and k x 0.1 / 0.1 may be below k, but no round is doubled or skipped."""
    timetable = Timetable(every_s=0.1)
    assert begins(timetable, [0.01] * 5000) == [k * 0.1 for k in range(5000)]


def test_after_an_empty_cell_the_next_time_of_the_grid_counts() -> None:
    timetable = Timetable(every_s=10.0)
    timetable.begun(10.0)
    timetable.ended(12.0)
    timetable.resumed(34.5)
    assert timetable.next_s == 40.0
    timetable.resumed(40.0)
    assert timetable.next_s == 40.0
    without = Timetable()
    without.ended(12.0)
    without.resumed(34.5)
    assert without.next_s == 12.0, "without a grid, a round begins when a device arrives"


@pytest.mark.parametrize(
    ("now_s", "then_s"), [(1e6 + 0.1, 86_400_000.3), (0.306, 0.828), (0.0, 0.1), (5.0, 5.0)]
)
def test_waiting_ends_at_the_very_float(now_s: float, then_s: float) -> None:
    env = simpy.Environment(now_s)
    env.run(until=env.process(wait_until(env, then_s)))
    assert env.now == then_s
