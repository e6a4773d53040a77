"""Test pictures and films of a moving network: its cells, devices' positions at a time, and the frames."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from edgefl.analysis.commands.line import main
from edgefl.analysis.measures.moving_run import MovingRun, moving_run
from edgefl.analysis.reports import moving
from edgefl.analysis.reports.moving import draw_moving, frame_times_s
from edgefl.analysis.runs.clock import Clock, hour_of
from edgefl.analysis.runs.load import load_runs

Write = Callable[..., Path]
ISD_M = 500.0
LAYOUT = {"rings": 1, "isd_m": ISD_M, "sectors": 3, "azimuth_deg": 30.0, "sites": None}
STREET = [[-300.0, 0.0], [300.0, 0.0]]
# hourly positions: device 1 stays, and device 2 walks to the end of the street, where cell 5 serves it
HOURS = 4


def run(write_run: Write, **scenario: Any) -> Path:
    rounds = [
        {
            "session": 1,
            "round": number,
            "start_s": 3600.0 * number,
            "end_s": 3600.0 * number + 5,
            "accuracy": 0.5 + number / 10,
        }
        for number in range(HOURS)
    ]
    places = [
        {
            "time_s": 3600 * hour,
            "device": device,
            "x_m": x,
            "y_m": 0,
            "cell": cell,
            "gain_db": -90,
            "sinr_db": 9,
        }
        for hour in range(HOURS + 1)
        for device, x, cell in ((1, 50.0, 0), (2, -300 + 150 * hour, 0 if hour < HOURS else 5))
    ]
    ledger = [{"device": 1, "class": "residents"}, {"device": 2, "class": "workers"}]
    written = {
        "layout": LAYOUT,
        "cell": {"radius_m": 250.0},
        "devices": {"mobility": {"name": "itinerary", "begin_hour": 6}},
        "streets": {"lines_m": [STREET]},
        "areas": {"flats": {"disc": {"centre_m": [50, 0], "radius_m": 60}}},
        **scenario,
    }
    sessions = [{"session": 1, "devices": "1 2", "start_s": 0.0}]
    path = write_run("town", rounds, sessions, ledger=ledger, scenario=written)
    pd.DataFrame(places).to_csv(path / "positions.csv", index=False)
    drawing = {"areas": [{"name": "flats", "centre": [50, 0], "radius": 60}], "streets": [STREET]}
    (path / "map.json").write_text(json.dumps(drawing))
    return path


def day_of(path: Path) -> MovingRun:
    return moving_run(load_runs(path), 0)


def test_people_walk_between_records_and_change_cells_half_way(write_run: Write) -> None:
    day = day_of(run(write_run))
    places_m, serving = day.at(1800.0)
    assert places_m.tolist() == [[50.0, 0.0], [-225.0, 0.0]]
    assert serving.tolist() == [0, 0]
    assert [day.at(3600 * hour)[1][1] for hour in (3.4, 3.6, 9.0)] == [0, 5, 5]
    assert day.ground.streets == [STREET]
    assert [words for _, words in day.sessions] == ["1 residents"]
    assert day.served == [0]
    assert {name: of.tolist() for name, of in day.classes.items()} == {
        "residents": [True, False],
        "workers": [False, True],
    }


def test_the_clock_hides_nothing_in_a_corner(write_run: Write) -> None:
    day = day_of(run(write_run))
    corners = day.places_m.copy()
    corners[:, 0], corners[:, 1] = (-900.0, 900.0), (900.0, -900.0)
    drawn = moving._MovingDrawing(MovingRun(**{**vars(day), "places_m": corners}))
    drawn.show(0.0)
    there = drawn.figure.axes[0].transData.transform(corners[0, 0])
    assert there[1] + 6 < drawn._clock.get_window_extent().y0, "a dot is 6 pixels high and wide"


@pytest.mark.parametrize(("time_s", "shown"), [(0.0, []), (5.0, [50.0]), (3600.0, [50.0]), (4000.0, [60.0])])
def test_an_accuracy_holds_until_the_next_round_ends(
    write_run: Write, time_s: float, shown: list[float]
) -> None:
    """Rounds end 5 s after each hour; the accuracy does not rise between them."""
    drawn = moving._MovingDrawing(day_of(run(write_run)))
    drawn.show(time_s)
    line, dot, *_ = drawn._cursors
    assert list(dot.get_ydata()) == pytest.approx(shown)
    assert line.get_drawstyle() == "steps-post"
    assert len(line.get_xdata()) == (0 if not shown else 2 if time_s < 4000 else 3)


def test_a_film_has_more_frames_where_people_move(write_run: Write) -> None:
    day = day_of(run(write_run))
    still = day.places_m.copy()
    still[:3, 1] = still[2, 1]  # device 2 starts to walk after two hours
    times_s = frame_times_s(MovingRun(**{**vars(day), "places_m": still}))
    assert len(times_s) == moving.FRAMES
    assert times_s[0] == 0
    assert times_s[-1] == 3600 * HOURS
    assert (np.diff(times_s) > 0).all()
    # an hour at rest takes 3600 / RESTING_S frames, and a walk of 150 m takes 150 / WALKED_M more
    rest, walk = 3600 / moving.RESTING_S, 150 / moving.WALKED_M
    share = 2 * rest / (4 * rest + 2 * walk)
    assert (times_s < 7200).mean() == pytest.approx(share, abs=1 / moving.FRAMES)


@pytest.mark.parametrize(
    ("clock", "end_s", "hour", "said"),
    [
        (
            Clock(),
            589.5,
            5.0,
            "5.00 h is not in the run, which lasts from 0 s to 590 s; write 0:00:45 for 45 s",
        ),
        (Clock(begin_hour=7.5), 1200.0, 3.0, "3:00 is not in the run, which lasts from 7:30 to 7:50"),
        (
            Clock(begin_hour=7.5),
            86400.0,
            32.0,
            "day 2, 8:00 is not in the run, which lasts from 7:30 to day 2, 7:30",
        ),
        (Clock(6.0, day_s=240.0), 40.0, 5.5, "5:30 is not in the run, which lasts from 6:00 to 10:00"),
    ],
)
def test_an_hour_outside_the_run_is_refused_as_the_clock_shows_it(
    clock: Clock, end_s: float, hour: float, said: str
) -> None:
    day: Any = SimpleNamespace(clock=clock, times_s=np.array([0.0, end_s]))
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        moving._time_s(day, hour)


def test_what_cannot_be_drawn_is_said(write_run: Write, tmp_path: Path) -> None:
    path = run(write_run)
    with pytest.raises(ValueError, match="no rounds of cell 7; cells with rounds: 0"):
        draw_moving(path, tmp_path / "town.png", cell=7)
    with pytest.raises(ValueError, match=r"^12:00 is not in the run, which lasts from 6:00 to 10:00$"):
        draw_moving(path, tmp_path / "town.png", at_hour=12)
    with pytest.raises(ValueError, match=r"town\.txt: end the name with \.png"):
        draw_moving(path, tmp_path / "town.txt")
    (path / "positions.csv").unlink()
    with pytest.raises(ValueError, match=r"run them with record\.positions_s"):
        draw_moving(path, tmp_path / "town.png")


@pytest.mark.usefixtures("rendered")
def test_pictures_and_films(write_run: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = run(write_run)
    still, film = tmp_path / "town.png", tmp_path / "town.webp"
    draw_moving(path, still, at_hour=8, phone=True)
    with Image.open(still) as picture:
        assert picture.size == (780, 1140)
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20) or []}
        assert (0x00, 0x72, 0xB2) in colours, "devices have the colour of their cell"
    monkeypatch.setattr(moving, "FRAMES", 3)
    draw_moving(path, film)
    with Image.open(film) as picture:
        assert getattr(picture, "n_frames", 1) == 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--picture", "town.jpg"], "end the name with .png"),
        (["--picture", "town.png", "--cell", "17"], "no rounds of cell 17"),
        (["--picture", "town.png", "--at", "20"], "20:00 is not in the run"),
        (["--picture", "town.png", "--at", "7:75"], "no hour '7:75': give 7.75, 7:45 or 7:45:00"),
        (["--picture", "town.gif", "--at", "8"], "a film shows the whole run"),
        (["--at", "8:00"], "name its file with --picture"),
        (["--picture", "town.png", "--out", "town.txt"], "ends in .html"),
    ],
)
def test_a_picture_that_cannot_be_drawn_leaves_no_report(
    write_run: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wrong: list[str],
    said: str,
) -> None:
    path = run(write_run)
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(path), *wrong]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not [*tmp_path.glob("town.*"), *path.glob("report.html")]


@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg", ".gif", ".webp"])
def test_a_picture_replaces_only_pictures_of_its_kind(
    write_run: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A picture written before is replaced, and so is an empty file, but not a text or a picture of another kind."""
    monkeypatch.setattr(moving, "FRAMES", 3)
    path, out = run(write_run), (tmp_path / "town").with_suffix(ending)
    for other in (b"my notes\n", b"\xff\xd8\xff a JPEG"):
        out.write_bytes(other)
        with pytest.raises(
            ValueError, match=f"exists and is no {ending[1:].upper()}: choose another --picture"
        ):
            draw_moving(path, out)
        assert out.read_bytes() == other
    out.write_bytes(b"")
    draw_moving(path, out)
    first = out.read_bytes()
    assert first
    draw_moving(path, out)
    assert len(out.read_bytes()) == pytest.approx(len(first), rel=0.01)


def test_the_hour_of_a_picture_is_a_number_or_a_clock_time() -> None:
    assert [hour_of(text) for text in ("7.75", "7:45", "07:45:00")] == [7.75] * 3
