"""Test a report in a real browser: it opens from file://, plays, responds to keys, and fits a phone's screen."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from edgefl.analysis import load_runs
from edgefl.analysis.html import replay, report, write_report
from edgefl.analysis.html.replay import Column, pack
from edgefl.analysis.reports.moving import draw_moving
from edgefl.commands.cli import main
from edgefl.run.api import simulate
from edgefl.scenario.scenario import load
from tests.refusals import refused_at
from tests.tools.chromium import PROGRAM, Page, browser
from tests.tools.unpacked import unpack

in_browser = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium: `make test` installs it if there is apt-get"
)

WALKERS = """\
name: walkers
seed: 5
layout: {rings: 1, isd_m: 150}
devices:
  count: 20
  idle_power_w: 0.01
  battery_j: 50
  mobility: {name: random_waypoint, speed_min_m_s: 10, speed_max_m_s: 20}
radio: {preset: journal, bandwidth_hz: 2.0e+5, propagation: {shadowing: spatial}}
sessions: {name: schedule, count: 2, rounds: 6}
learning:
  dataset: digits
  partition: {name: dirichlet, alpha: 0.5}
  model: logistic
  local:
    lr: 0.05
    batch: 16
rounds: {pause_s: 0.5}
record: {positions_s: 0.1}
"""
SLIDER = "document.getElementById('time')"

NO_POSITIONS = ["sessions.count=1", "record.positions_s=none"]


@pytest.fixture(scope="module")
def walkers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "walkers.yaml").write_text(WALKERS)
    return simulate(load(folder / "walkers.yaml"), folder / "run", device="cpu")


@pytest.fixture(scope="module")
def file(walkers: Path) -> Path:
    return write_report(walkers)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as found:
        yield found


def move(page: Page, share: float) -> None:
    page.js(f"{SLIDER}.value = {10_000 * share}; {SLIDER}.dispatchEvent(new Event('input')); 1")


def choose(page: Page, cell: str) -> None:
    """Filter the devices by cell; with an empty text, show all."""
    page.js(
        f"(() => {{ const s = document.getElementById('only-cell'); s.value = '{cell}'; s.onchange(); }})()"
    )


def data_in(text: str) -> str:
    """Return the data of a report, as JSON."""
    return text.split('id="data">')[1].split("</script>")[0]


def test_it_is_one_small_file_that_loads_nothing(file: Path) -> None:
    text = file.read_text()
    assert file.stat().st_size < 1_000_000
    data = json.loads(data_in(text))
    rest = text.replace(data_in(text), "")
    assert len(data["charts"]) == 4
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", rest)
    assert not re.search(r"@import|url\(", rest)
    assert "handovers" in text.split('id="summary"')[1].split("</section>")[0]


def test_every_device_and_place_is_in_it(walkers: Path) -> None:
    runs = load_runs(walkers)
    run = next(runs.info.itertuples())
    found = replay.replay_of(runs, run)
    frames, rows = unpack(found["frames"]), unpack(found["rows"])
    last = runs.positions[runs.positions["time_s"] == runs.positions["time_s"].max()].sort_values("device")
    np.testing.assert_allclose(frames["x_m"][:, -1], last["x_m"], atol=0.051)
    np.testing.assert_array_equal(frames["cell"][:, -1], last["cell"].astype(float))
    assert len(rows["device"]) == len(runs.devices)
    assert rows["uplink_bits"].sum() == pytest.approx(runs.devices["uplink_bits"].sum(), rel=1e-3)
    left = runs.ledger.sort_values("device")["left_j"].to_numpy()
    # tolerance: half a unit of rounding, and the idle energy between the last recorded time and the end
    np.testing.assert_allclose(
        frames["battery"][:, -1], left / 50.0, atol=0.0025 + 0.1 * 0.01 / 50 + 0.5 / 50
    )


def test_what_is_thinned_is_said(walkers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_PLACES", 20 * 10)
    monkeypatch.setattr(replay, "MOST_ROWS", 60)
    runs = load_runs(walkers)
    found = replay.replay_of(runs, next(runs.info.itertuples()))
    times = runs.positions["time_s"].nunique()
    frames = unpack(found["frames"])
    assert frames["x_m"].shape[1] <= 10
    assert any(f"of the {times:,} times recorded" in note for note in found["notes"])
    assert any("thinned to every" in note and "devices.csv" in note for note in found["notes"])
    assert len(unpack(found["rows"])["device"]) < len(runs.devices)


def test_devices_that_stand_are_where_they_stand(digits: Path, tmp_path: Path) -> None:
    """Positions of static devices are written once, even if no positions are requested, and the replay shows them."""
    run = simulate(load(digits, ["sessions.count=1"]), tmp_path / "run", device="cpu")
    positions = load_runs(run).positions
    assert positions["time_s"].unique().tolist() == [0.0]
    text = write_report(run).read_text()
    (shown,) = json.loads(data_in(text))["replays"]
    assert shown["placed"]
    assert not shown["population"]["time"], "one point is no line"
    assert "No positions" not in text


def test_without_positions_the_replay_says_so(digits: Path, tmp_path: Path) -> None:
    run = simulate(load(digits, NO_POSITIONS), tmp_path / "run", device="cpu")
    assert "No positions were recorded (record.positions_s: none)" in write_report(run).read_text()


def test_what_is_written_by_others_does_not_run(walkers: Path, tmp_path: Path) -> None:
    evil = tmp_path / "run"
    shutil.copytree(walkers, evil)
    about = json.loads((evil / "run.json").read_text()) | {"name": "</script><script>alert(1)</script>"}
    (evil / "run.json").write_text(json.dumps(about))
    assert "<script>alert" not in report(load_runs(evil))


def test_a_run_is_one_picture_too(walkers: Path, digits: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["report", str(walkers), "--picture", str(tmp_path / "moving.png"), "--cell", "0"])
    with Image.open(tmp_path / "moving.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 300
    still = simulate(load(digits, NO_POSITIONS), tmp_path / "run", device="cpu")
    with refused_at("", "record.positions_s", kind=ValueError):
        draw_moving(still, tmp_path / "still.png")


@in_browser
def test_it_opens_without_a_complaint_and_draws_its_charts(page: Page, file: Path) -> None:
    page.open(file)
    assert page.complaints == []
    assert page.js("edgefl.errors") == []
    assert page.js("document.querySelectorAll('#chart-list .uplot').length") == 4
    inked = """[...document.querySelectorAll('.uplot canvas, #map, #strip')].map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let inked = 0; for (let i = 3; i < data.length; i += 4) inked += data[i] > 0; return inked; })"""
    counts = page.js(inked)
    assert len(counts) == 4 + 3 + 2
    assert min(counts) > 500
    few = "{x: [1, 2], lines: [{label: 'a', y: [1, 2]}], xLabel: 'training round', height: 200}"
    page.js(f"drawn = edgefl.plot(document.getElementById('chart-list'), {few}); 1")
    assert page.js("[drawn.axes[0]._splits, drawn.axes[1]._splits]") == [[1, 2], [0, 1, 2]], "integer ticks"


@in_browser
def test_times_of_a_run_with_hours_are_those_of_the_day(page: Page, file: Path) -> None:
    page.open(file)
    assert page.js("edgefl.clock") is None
    told = page.js("""(edgefl.clock = {begin_hour: 22.5, day_s: 240},
      [0, 15, 20].flatMap((s) => [edgefl.time(s), edgefl.ofDay(s, edgefl.clock)]))""")
    assert told == ["22:30:00", "22:30", "day\u00a02, 0:00:00", "0:00", "day\u00a02, 0:30:00", "0:30"]


@in_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_time_lines_stand_at_the_time_on_their_own_axes(page: Page, file: Path, width: int) -> None:
    """The line that marks the time is at the right place, both before any input and after the slider has moved."""
    offsets = """[...document.querySelectorAll('.lines .uplot')].map((one, i) => {
      const { plot } = edgefl.plots.filter((known) => known.small)[i], at = plot.valToPos(edgefl.state().t, 'x');
      const box = plot.over.getBoundingClientRect(), line = one.querySelector('.now').getBoundingClientRect();
      return [(line.left + line.right) / 2 - box.left - at, line.top - box.top, line.bottom - box.bottom];
    })"""
    page.open(file, width=width)
    for share in (None, 0.4, 1.0):
        if share is not None:
            move(page, share)
        found = page.js(offsets)
        assert len(found) == 3
        assert np.abs(found).max() < 1.0, share


@in_browser
@pytest.mark.parametrize("tested", [True, False])
def test_all_lines_of_a_replay_have_one_unit_of_time(
    page: Page, file: Path, tmp_path: Path, tested: bool
) -> None:
    """The title and all axes are in the unit of the run's 600 s, min, even if a line's last point is at 570 s."""
    text = file.read_text()
    whole = text.split('id="data">')[1].split("</script>")[0]
    data = json.loads(whole)
    run = data["replays"][0]
    run["simulated_s"] = 600.0
    short = {"x": [300.0, 570.0], "y": [0.4, 0.5], "every": 1}
    run["timeline"] |= {"accuracy": short if tested else {"x": [], "y": [], "every": 1}, "joules": short}
    run["population"] = {"title": "Devices", "time": [0.0, 600.0], "series": [{"label": "all", "y": [9, 8]}]}
    changed = tmp_path / "ten_minutes.html"
    changed.write_text(text.replace(whole, json.dumps(data)))
    page.open(changed)
    lines = "edgefl.plots.filter((known) => known.small).map(({ plot }) => plot"
    assert page.js(f"{lines}.axes[0]._values.at(-1))") == ["10"] * (2 + tested)
    titles = page.js(f"{lines}.root.querySelector('.u-title').textContent)")
    assert [title.endswith(", by simulated time in min") for title in titles] == [True, False, False][
        : 2 + tested
    ]


@in_browser
def test_a_filter_leaves_the_devices_of_one_cell(page: Page, file: Path) -> None:
    page.open(file)
    move(page, 0.5)
    cells = page.js("[...edgefl.replay.cell]")
    everybody = page.js("edgefl.replay.present")
    cell = int(max(set(cells) - {-1}, key=cells.count))
    choose(page, str(cell))
    assert 0 < page.js("edgefl.replay.present") == cells.count(cell) < everybody
    assert f"{cells.count(cell)}\u00a0devices" in page.js("document.getElementById('now').textContent")
    assert "in all: accuracy" in page.js("document.getElementById('now').textContent")
    page.js("document.body.focus(); 1")
    page.key("n")
    assert cells[page.js("edgefl.state().selected")] == cell
    rows = "[...document.querySelectorAll('#table-sessions-0 tbody tr')].filter((row) => !row.hidden)"
    assert set(page.js(f"{rows}.map((row) => row.cells[0].textContent)")) <= {str(cell)}
    choose(page, "")
    assert page.js("edgefl.replay.present") == everybody


@in_browser
def test_sessions_are_those_of_all_cells_or_of_the_chosen_cell(page: Page, file: Path, walkers: Path) -> None:
    """With all cells, each beginning of a session has a dotted line; a single cell's sessions are bands."""
    page.open(file)
    sessions = load_runs(walkers).sessions
    begins = "edgefl.replay.sessions().map(([begin]) => begin)"
    assert sorted(page.js(begins)) == pytest.approx(sorted(sessions["start_s"]), rel=1e-5)
    assert "a session begins" in page.js("document.getElementById('legend').textContent")
    assert "mean of cells" in page.js("document.getElementById('line-accuracy').textContent")
    choose(page, "1")
    own = sessions.loc[sessions["cell"] == 1, "start_s"]
    assert page.js(begins) == pytest.approx(sorted(own), rel=1e-5)
    assert "a session begins" not in page.js("document.getElementById('legend').textContent")
    assert "session\u00a01" in page.js("document.getElementById('now').textContent")


@in_browser
def test_the_map_is_where_people_are(page: Page, file: Path, tmp_path: Path) -> None:
    """The map leaves out a large empty part of the world, but shows a world full of devices completely."""
    text = file.read_text()
    page.open(file)
    box = page.js("edgefl.replay.world.box")
    assert box[0] < -225 < 225 < box[2]  # neighbouring sites are 150 m away, and their cells extend beyond
    data = json.loads(data_in(text))
    one = data["replays"][0]
    frames = unpack(one["frames"])
    few = {name: Column(200 + frames[name] / 20, 0.1) for name in ("x_m", "y_m")}
    kept = {name: Column(values) for name, values in frames.items() if name not in few and name != "cell"}
    cell = {"cell": Column(np.full_like(frames["cell"], 1))}
    one["frames"] = pack(kept | few | cell)
    one["sites"] = (10 * np.array(one["sites"])).tolist()
    one["isd_m"] = 1500
    away = tmp_path / "corner.html"
    away.write_text(text.replace(data_in(text), json.dumps(data)))
    page.open(away)
    left, low, right, high = page.js("edgefl.replay.world.box")
    assert left < 180 < 1500 < right < 1700  # devices at 180 m, and their serving site at 1,500 m
    assert high - low < 700
    assert page.complaints == []


@in_browser
def test_the_slider_moves_devices_to_where_they_were(page: Page, file: Path, walkers: Path) -> None:
    page.open(file)
    before = page.js("edgefl.state().places")
    move(page, 0.5)
    after = page.js("edgefl.state().places")
    assert np.abs(np.subtract(after, before)).max() > 1.0
    at_s = page.js("edgefl.state().t")
    positions = load_runs(walkers).positions
    tracks = positions.pivot(index="time_s", columns="device", values="x_m")
    halves = [np.interp(at_s, tracks.index, tracks[device]) for device in tracks]
    # a device that leaves on one side and enters on the other side is not drawn in between
    near = np.abs(np.subtract(after, halves)) < 0.06
    assert near.mean() > 0.9
    assert "accuracy" in page.js("document.getElementById('now').textContent")


@in_browser
def test_it_plays_and_answers_to_keys(page: Page, file: Path) -> None:
    page.open(file)
    page.key(" ")
    page.wait("edgefl.state().playing && edgefl.state().t > 0")
    page.key(" ")
    assert page.js("edgefl.state().playing") is False
    page.js(f"{SLIDER}.focus(); 1")
    page.key("Home")
    assert page.js("edgefl.state().t") == 0
    page.key("ArrowRight")
    assert page.js("edgefl.state().t / edgefl.span") == pytest.approx(0.01)
    page.key("End")
    assert page.js("edgefl.state().t / edgefl.span") == pytest.approx(1.0)
    page.key("n")
    assert page.js("edgefl.state().selected") == 0
    assert page.js("document.getElementById('device-panel').hidden") is False
    page.key("Escape")
    assert page.js("edgefl.state().selected") is None


@in_browser
def test_a_click_opens_the_time_line_of_a_device(page: Page, file: Path, walkers: Path) -> None:
    page.open(file)
    move(page, 0.5)
    page.js("document.getElementById('map').scrollIntoView({block: 'center', behavior: 'instant'}); 1")
    x, y = (
        page.js("""(() => { const box = document.getElementById('map').getBoundingClientRect(), r = edgefl.replay;
      return [box.left + r.world.x(r.px[7]), box.top + r.world.y(r.py[7])]; })()""")
    )
    page.click(x, y)
    chosen = page.js("edgefl.state().selected")
    assert chosen is not None
    assert page.js("edgefl.replay.nearest(edgefl.replay.world.x(edgefl.replay.px[7]),"
                   " edgefl.replay.world.y(edgefl.replay.py[7]))") == chosen  # fmt: skip
    devices = load_runs(walkers).devices
    mine = devices[devices["device"] == chosen]
    assert page.js("document.querySelectorAll('#device-table tbody tr').length") == min(60, len(mine))
    assert f"{len(mine)} rounds" in page.js("document.getElementById('device-about').textContent")
    assert page.js("document.getElementById('device-line').width") > 100


@in_browser
def test_cells_have_the_same_colour_on_the_map_and_beside_it(page: Page, file: Path) -> None:
    page.open(file)
    lines = page.js(
        "edgefl.plots[edgefl.plots.length - 1].plot.series.map((line) => [line.label, line._stroke])"
    )
    assert (
        page.js("new Set([...Array(49).keys()].map((n) => edgefl.colour(n) + edgefl.pattern(n))).size") == 49
    )
    looks = dict(lines[1:])
    assert len(looks) == 7
    for label, colour in looks.items():
        assert colour == page.js(f"edgefl.colour({label.removeprefix('cell ')})")


@in_browser
def test_every_chart_gives_its_data(page: Page, file: Path) -> None:
    page.open(file)
    page.js("edgefl.got = []; edgefl.download = (name, text) => edgefl.got.push([name, text]); 1")
    buttons = "[...document.querySelectorAll('button.download')].filter((button) => button.offsetParent)"
    page.js(f"{buttons}.forEach((button) => button.click()); 1")
    got = dict(page.js("edgefl.got"))
    assert {"accuracy.csv", "latency.csv", "energy.csv", "participants.csv", "runs.csv"} <= set(got)
    assert {"scenario.yaml", "run.json", "sessions-0.csv"} <= set(got)
    assert got["accuracy.csv"].startswith('line,"simulated time, s",accuracy\n')
    assert all(len(text.splitlines()) > 1 for text in got.values())


@in_browser
def test_long_notes_and_names_at_the_edge_fit_a_phone(page: Page, file: Path, tmp_path: Path) -> None:
    text = file.read_text()
    data = json.loads(data_in(text))
    corner = [[[200, 0], [400, 0], [400, 50], [200, 50]]]
    data["replays"][0]["areas"] = [{"name": "a park with a long name", "points": corner}]
    data["replays"][0]["notes"] = ["/a/path" + 30 * "/without/a/blank"]
    long = tmp_path / "long.html"
    long.write_text(text.replace(data_in(text), json.dumps(data)))
    page.open(long, width=390)
    assert page.js("document.documentElement.scrollWidth") <= 390
    ends = page.js("""(() => {
      const found = [], { fillText } = CanvasRenderingContext2D.prototype, { world } = edgefl.replay;
      CanvasRenderingContext2D.prototype.fillText = function (name, x) { if (/park/.test(name)) {
        const half = this.measureText(name).width / 2; found.push(x - half, world.width - x - half); } };
      world.drawGround();
      CanvasRenderingContext2D.prototype.fillText = fillText; return found; })()""")
    assert len(ends) == 2
    assert min(ends) >= 0


@in_browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_light_dark_and_a_phone(page: Page, file: Path, width: int, dark: bool) -> None:
    page.open(file, width=width, dark=dark)
    move(page, 0.3)
    assert page.complaints == []
    assert page.js("document.documentElement.scrollWidth") <= width
    ends = "[...document.querySelectorAll('#chart-list .uplot')].map((plot) => [plot, plot.closest('figure')]"
    ends += ".map((box) => box.getBoundingClientRect().right))"
    assert all(chart <= its_place + 1 for chart, its_place in page.js(ends))
    paper = page.js("getComputedStyle(document.body).backgroundColor")
    lightness = np.mean([int(part) for part in re.findall(r"\d+", paper)[:3]])
    assert (lightness < 60) == dark
    if width < 500:  # a phone shows the map and the play button without scrolling
        assert page.js("document.getElementById('play').getBoundingClientRect().bottom") < 844
    assert page.js("document.getElementById('map').clientWidth") > 0.85 * min(width, 600) * (
        0.6 if width > 760 else 1
    )


@in_browser
def test_a_thousand_devices_for_an_hour_move_at_30_frames_a_second(
    page: Page, walkers: Path, tmp_path: Path
) -> None:
    """The browser's processor time per frame, which other processes do not affect, allows 30 frames a second."""
    devices, times = 1000, 720
    runs = load_runs(walkers)
    text = report(runs)
    data = json.loads(data_in(text))
    one, rng = data["replays"][0], np.random.default_rng(1)
    walks = np.clip(np.cumsum(rng.normal(0, 10, (2, devices, times)), axis=-1), -220, 220)
    frames = {"x_m": Column(walks[0], 0.1), "y_m": Column(walks[1], 0.1)}
    frames["cell"] = Column(rng.integers(0, 7, (devices, 1)) + np.zeros((devices, times)))
    one["frames"] = pack({"time_s": Column(5.0 * np.arange(times)), **frames})
    rounds = unpack(one["rows"])
    mine = pd.DataFrame({name: values[rounds["device"] == 0] for name, values in rounds.items()})
    scale = 3600.0 / one["simulated_s"]
    mine[[name for name in mine if name.endswith("_s")]] *= scale
    table = pd.concat([mine.assign(device=device) for device in range(devices)])
    one["rows"] = pack({name: Column(table[name].to_numpy(float), 1e-3) for name in table})
    one |= {"simulated_s": 3600.0, "devices": list(range(devices)), "class_of": [0] * devices}
    file = tmp_path / "thousand.html"
    file.write_text(text.replace(data_in(text), json.dumps(data)))
    page.open(file)
    draw = """new Promise((done) => { let i = 0; const step = () => { edgefl.replay.draw(40 * i, 4);
      i++ < 60 ? requestAnimationFrame(step) : done(i); }; step(); })"""
    page.js(draw)
    before_s = page.cpu_s()
    frames_drawn = page.js(draw)
    frame_ms = 1000 * (page.cpu_s() - before_s) / frames_drawn
    assert 0 < frame_ms < 1000 / 30
    drawn = page.js("edgefl.state().drawn")
    page.js("document.getElementById('play').click(); 1")
    page.wait(f"edgefl.state().drawn > {drawn} + 30")
    assert page.complaints == []
