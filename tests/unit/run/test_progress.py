"""Test the progress line: time of day, rounds, remaining wall time."""

from dataclasses import MISSING, fields, replace
from io import StringIO

import pytest
from rich.console import Console

from edgefl.engine.records import Round
from edgefl.run.progress import ProgressDisplay, RunProgress, simulated_time, wall_time
from edgefl.scenario.day import Day
from edgefl.scenario.scenario import Scenario
from tests.tables import sections

NUMBERS = dict.fromkeys([field.name for field in fields(Round) if field.default is MISSING], 1)
TIMES = {"start_s": 3480.0, "end_s": 3900.0, "latency_s": 420.0}
ROW = Round(**{**NUMBERS, **TIMES, "session": 2, "round": 3, "phase": "train", "accuracy": 0.5})

FOUR = {"sessions": {"name": "schedule", "count": 4, "rounds": 6}}


def scenario(**changes: object) -> Scenario:
    small = sections("name=a; devices.count=2; workload={payload_bits: 1, flops_per_sample: 1}")
    return Scenario.model_validate({**small, **changes})


def test_a_day_by_its_duration() -> None:
    sessions = {"name": "daily", "at_hours": [8], "begin_hour": 7}
    progress = RunProgress(scenario(duration_s=39_000.0, sessions=sessions))
    progress.follow(ROW)
    assert progress.text(ROW) == "session 2 · 1 round · day 1 08:05 · accuracy 50.0 %"
    assert progress.share == pytest.approx(0.1)
    assert progress.left(60.0) == "9 min left"
    assert progress.left(1.0) == "", "too early to tell"


def test_rounds_by_their_sessions_in_the_mean_of_the_cells() -> None:
    progress = RunProgress(scenario(**FOUR))
    progress.follow(ROW)
    assert progress.share == pytest.approx(1.5 / 4)
    progress.follow(replace(ROW, cell=1, session=1, round=6))
    assert progress.share == pytest.approx((1.5 + 1) / 2 / 4)
    probe = replace(ROW, phase="probe", accuracy=None)
    progress.follow(probe)
    assert progress.share == pytest.approx((1 + 1) / 2 / 4)
    assert progress.text(probe) == "session 2/4 · 3 rounds · 3,900 s simulated"


def test_whichever_ends_first() -> None:
    sessions = {"name": "schedule", "count": 100, "rounds": 6}
    progress = RunProgress(scenario(duration_s=7800.0, sessions=sessions))
    progress.follow(ROW)
    assert progress.share == 0.5


def test_the_clock_of_a_short_day() -> None:
    day = Day(begin_hour=22.5, day_s=240.0)  # each of the day's 24 hours lasts ten seconds
    clocks = {0.0: "day 1 22:30", 15.0: "day 2 00:00", 14.9: "day 1 23:59", 255.0: "day 3 00:00"}
    assert {time_s: day.clock(time_s) for time_s in clocks} == clocks


@pytest.mark.parametrize(
    ("seconds", "text"), [(20.0, "20 s"), (0.40441, "0.4044 s"), (999.94, "999.9 s"), (86400.0, "86,400 s")]
)
def test_a_simulated_time_has_no_exponent(seconds: float, text: str) -> None:
    assert simulated_time(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(7, "7 s"), (89, "89 s"), (720, "12 min"), (12_240, "3.4 h"), (181_440, "2.1 days")]
)
def test_wall_time_for_people(seconds: float, text: str) -> None:
    assert wall_time(seconds) == text


@pytest.mark.parametrize(
    ("width", "told"), [(80, "session 2/4 · 3,900 s · 50.0 %"), (140, "1 round · 3,900 s simulated")]
)
def test_nothing_is_cut_off_in_80_columns_without_colour(width: int, told: str) -> None:
    console = Console(width=width, color_system=None, force_terminal=True, file=StringIO())
    with ProgressDisplay(console, {"similarity-seed100": scenario(**FOUR)}) as progress:
        progress.update("similarity-seed100", ROW)
        with console.capture() as capture:
            console.print(progress._progress)
    shown = capture.get()
    assert told in shown
    assert "…" not in shown
    assert "similarity-seed100" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_a_log_has_a_line_for_each_run_as_soon_as_it_has_ended() -> None:
    """Without a terminal there are no bars, and each run's line is written when the run ends."""
    log = StringIO()
    names = ("similarity seed 1", "previous seed 1", "average seed 1")
    with ProgressDisplay(Console(file=log, width=80), dict.fromkeys(names, scenario(**FOUR))) as progress:
        progress.update(names[0], ROW)
        assert log.getvalue() == ""
        progress.update(names[0], lambda: ["2.00 h simulated", "accuracy 40.0 %"])
        assert log.getvalue().startswith(
            "1/3 similarity seed 1: session 2/4 · 1 round · 2.00 h simulated · accuracy 40.0 % in "
        )
        assert log.getvalue().endswith(" s of wall time\n"), "the wall time is labelled"
        progress.failed(names[1])
        progress.update(names[2], list)
    lines = log.getvalue().splitlines()
    assert lines[1:] == ["2/3 previous seed 1: failed", "3/3 average seed 1: complete before"]
