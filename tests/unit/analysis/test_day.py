"""Test a day in one cell: which sessions have the population of an earlier session, and the figure's values."""

from collections.abc import Callable
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL.PngImagePlugin import PngImageFile

from edgefl.analysis.commands.line import main
from edgefl.analysis.figures.style import variant_styles
from edgefl.analysis.reports.day import (
    DAY_NUMBERS,
    OPENINGS,
    _draw_openings,
    _notes,
    _openings,
    _with_gaps,
    report_day,
)
from edgefl.analysis.runs.load import load_runs

Write = Callable[..., Path]
# members: residents at night, workers by day, and two of the three residents from 18:00 on
MEMBERS = ["1 2 3", "7 8", "1 2"]
STARTS_H = [0, 4, 14]


def study(write_run: Write) -> Path:
    for name, accuracy in (("good", 0.9), ("bad", 0.5)):
        rounds = [
            {
                "session": session,
                "round": number + 1,
                "phase": "pilot" if session == 1 else "train",
                "start_s": 3600.0 * (start_h + number),
                "end_s": 3600.0 * (start_h + number) + 10,
                "accuracy": accuracy,
                "participants": len(devices.split()),
                "energy_j": 2.0,
            }
            for session, (start_h, devices) in enumerate(zip(STARTS_H, MEMBERS, strict=True), start=1)
            for number in range(3)
        ]
        sessions = [
            {"session": number, "labels": "0 1", "devices": devices, "start_s": 3600.0 * STARTS_H[number - 1]}
            for number, devices in enumerate(MEMBERS, start=1)
        ]
        scenario = {"sessions": {"name": "daily", "begin_hour": 4}}
        path = write_run(name, rounds, sessions, scenario=scenario)
    return path.parent


def test_whose_population_a_session_has() -> None:
    members = [frozenset(devices.split()) for devices in MEMBERS]
    begun = ["4:00", "8:00", "18:00"]
    assert _notes(members, begun, 0.5) == ["new population", "new population", "same as at 4:00"]
    assert _notes(members, begun, 0.7) == ["new population"] * 3  # the overlap is 2/3


@pytest.mark.usefixtures("rendered")
def test_the_figure_carries_its_numbers(write_run: Write, tmp_path: Path) -> None:
    drawn = report_day(study(write_run), reference="good", out=tmp_path / "figures")
    assert drawn.figure is not None
    picture = PngImageFile(drawn.figure)
    assert picture.size == (1600, 1280)
    numbers = pd.read_csv(StringIO(picture.text[DAY_NUMBERS])).set_index(["variant", "hour"])
    assert numbers.loc[("good", 8), "participants"] == 2
    assert numbers.loc["bad"].index.tolist() == [4, 5, 6, 8, 9, 10, 18, 19, 20]
    assert (numbers["accuracy"]["good"] == 0.9).all()


def test_no_line_crosses_hours_without_a_round() -> None:
    """In a cell that is empty from 9:00 to 17:00, lines end and begin there, and no device takes part."""
    hourly = pd.Series([10.0, 20.0, 30.0, 40.0], index=[8.0, 8.5, 17.0, 17.5])
    assert _with_gaps(hourly, 0.0).to_dict() == {8: 10, 8.5: 20, 9: 0, 16.5: 0, 17: 30, 17.5: 40}
    assert _with_gaps(hourly[:2], 0.0).equals(hourly[:2])
    assert _with_gaps(hourly[:1], 0.0).equals(hourly[:1])


def test_what_an_opening_is_worth(write_run: Write) -> None:
    """The devices of session 2 return in session 4, where `good` reaches 95 % of 0.8 in one round, and `bad` never.

    Rounds begin every 200 s, last 100 s and cost 3 J each; the two rounds of `bad`, 6 J, are only a lower bound.
    """
    members, labels = ["1 2 3", "7 8", "1 2 3", "7 8"], ["0", "1", "0", "1"]
    for name, accuracy in (("good", 0.8), ("bad", 0.5)):
        rounds = [
            {
                "session": session,
                "round": number,
                "start_s": 1000.0 * session + 200 * (number - 1),
                "latency_s": 100.0,
            }
            | {"accuracy": accuracy, "energy_j": 3.0, "phase": "pilot" if session == 1 else "train"}
            for session in range(1, 5)
            for number in (1, 2)
        ]
        sessions = [
            {
                "session": number + 1,
                "devices": devices,
                "labels": labels[number],
                "accuracy_start": accuracy / 2,
            }
            for number, devices in enumerate(members)
        ]
        path = write_run(name, rounds, sessions)
    runs = load_runs(path.parent)
    spent, goal, scope = _openings(runs.rounds, runs.sessions, "good", 0.5)
    assert scope == "sessions whose population came back"
    assert goal.short == "95 % of peak"
    good, bad = (spent[spent["variant"] == name].iloc[0] for name in ("good", "bad"))
    assert (good["accuracy_start"], good["seconds"], good["joules"], good["missed"]) == (
        40.0,
        100.0,
        3.0,
        False,
    )
    assert (bad["accuracy_start"], bad["seconds"], bad["joules"], bad["missed"]) == (25.0, 300.0, 6.0, True)
    figure = Figure()
    _draw_openings(figure, OPENINGS, spent, variant_styles(["good", "bad"], "good"), goal.short)
    labels = [[text.get_text() for text in ax.texts] for ax in figure.axes]
    # only time and energy depend on the target
    assert labels == [["40 %", "25 %"], ["1.67 min", "> 5.00 min"], ["3.00 J", "> 6.00 J"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cell", "3"], "no rounds in cell 3; cells with rounds: 0"),
        (["--reference", "god"], "did you mean 'good'"),
    ],
)
def test_what_cannot_be_drawn(
    options: list[str], message: str, write_run: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["day", str(study(write_run)), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_run_of_seconds_is_no_day(write_run: Write, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run("short", [{"session": 1, "round": 1, "accuracy": 0.5}], [{"session": 1}])
    assert main(["day", str(path)]) == 2
    said = capsys.readouterr().err
    assert "the rounds in cell 0 end after 10.0 s, but" in said
    assert "`edgefl compare`" in said
    assert not (path / "day.png").exists()


@pytest.mark.parametrize("target", ["0.8", "95 % of the best", "95 % of peak"])
def test_titles_of_openings_do_not_touch_and_hours_are_whole(target: str) -> None:
    spent = pd.DataFrame(
        {
            "variant": ["a"],
            "seed": 1,
            "accuracy_start": 67.0,
            "seconds": 8400.0,
            "joules": 77.5,
            "missed": False,
        }
    )
    figure = Figure(figsize=(8, 6.4), dpi=200)
    _draw_openings(figure, OPENINGS, spent, variant_styles(["a"], None), target)
    FigureCanvasAgg(figure).draw()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    texts = [text for ax in figure.axes for text in ax.findobj(Text) if text.get_text() in titles]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    assert len(boxes) == 3
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert boxes[-1].x1 < figure.bbox.width
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()][:3] == ["0", "1 h", "2 h"]
