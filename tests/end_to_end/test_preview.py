"""Test that the preview of a scenario shows the figures of its run."""

import json
import math
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image, ImageChops

from edgefl.commands.preview_data import Preview, _sessions, _walk, make_preview
from edgefl.commands.preview_picture import _costs, _explained, _signal, draw
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.records import EventName
from edgefl.run.api import simulate
from edgefl.run.forecast import Forecast
from edgefl.run.plan import prepare
from edgefl.run.probe import Probe
from edgefl.scenario.scenario import Scenario, load
from edgefl.scenario.world import World
from edgefl.testing.cell import within
from tests.tables import sections
from tests.tools.called import code_of

NR: dict[str, Any] = {
    "link": {"rates": "cqi", "control_overhead": 0.14, "harq_bler": 0.1},
    "monitoring": {"t310_s": 1.0},
}
GOODPUT = 0.86 / 1.1
CARRIED = (
    GOODPUT * 273 * 12 * 14 / 50_000
)  # useful resource elements per Hz and s; a slot has 100 MHz x 0.5 ms
QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.yaml"
HEXAGONS = """\
name: hexagons
seed: 5
duration_s: 20
layout: {rings: 1, isd_m: 150}
devices:
  count: 12
  mobility: {name: random_waypoint, speed_min_m_s: 15, speed_max_m_s: 20}
radio: {preset: journal, bandwidth_hz: 1.0e+6, propagation: {shadowing: spatial}}
sessions: {name: interval, length_s: 10}
rounds: {every_s: 1}
workload: {payload_bits: 250_000, flops_per_sample: 30_000}
record: {positions_s: 1}
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    file = tmp_path_factory.mktemp("preview") / "hexagons.yaml"
    file.write_text(HEXAGONS)
    return load(file)


@pytest.fixture(scope="module")
def preview(scenario: Scenario) -> Preview:
    return make_preview(scenario)


@pytest.fixture(scope="module")
def run(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(scenario, tmp_path_factory.mktemp("preview") / "run")


def test_devices_go_where_the_run_has_them(preview: Preview, run: Path) -> None:
    positions = pd.read_csv(run / "positions.csv")
    for device in (0, 7):
        mine = positions[positions["device"] == device]
        x_m = np.interp(mine["time_s"], preview.times_s, preview.tracks_m[:, device, 0])
        assert np.abs(x_m - mine["x_m"]).max() < 2.7  # a device moves 20 m/s x 0.13 s between two samples


def test_handovers_are_those_of_the_run(preview: Preview, run: Path) -> None:
    events = pd.read_csv(run / "events.csv")
    handovers = events[(events["event"] == EventName.HANDOVER) & (events["time_s"] <= preview.walked_s)]
    assert len(handovers) > 5
    assert len(preview.handovers_m) == len(handovers)
    assert preview.handovers_per_hour == pytest.approx(len(handovers) * 3600 / preview.walked_s)
    assert 0 < preview.borders < 3 * len(handovers)
    for seen, span in ((preview, "over 20 s"), (replace(preview, walked_s=5.0), "in the first 5 s")):
        told = "\n".join(seen.lines("a plan"))
        assert f", {len(handovers) / preview.borders:.2g} per border crossed" in told
        of_a_device = f"{seen.handovers_per_device_hour:,.1f} per device and hour of service"
        assert f"{seen.handovers_per_hour:,.0f} per hour {span}, {of_a_device}" in told


PASSING = """
name: passing
duration_s: 1260
layout: {rings: 1, isd_m: 300}
devices: {count: 40, mobility: {name: trace, path: cars.csv}}
radio: {propagation: {shadowing_std_db: 0, line_of_sight: always}}
sessions: {name: interval, length_s: 1260}
rounds: {every_s: 60}
workload: {payload_bits: 100_000, flops_per_sample: 1000}
"""


@pytest.fixture
def passing(tmp_path: Path) -> Scenario:
    """40 cars that pass one after another, one every 30 s, each for 60 s."""
    rows = (
        f"c{one},{30 * one + at_s},{x_m},{10 * one - 200}"
        for one in range(40)
        for at_s, x_m in ((0, -430), (60, 430))
    )
    (tmp_path / "cars.csv").write_text("\n".join(["id,t,x,y", *rows]))
    (tmp_path / "passing.yaml").write_text(PASSING)
    return load(tmp_path / "passing.yaml")


def test_handovers_per_device_count_the_hours_in_the_cells(passing: Scenario) -> None:
    preview = make_preview(passing, most_s=0.01)
    service_s = 2 * preview.walked_s
    assert len(preview.handovers_m) > 5
    expected = len(preview.handovers_m) / (service_s / 3600)
    # the preview counts devices at 150 times, 8.5 s apart; the first 30 s have one car
    assert preview.handovers_per_device_hour == pytest.approx(expected, rel=0.2)


def test_handovers_are_drawn_where_they_happen(passing: Scenario) -> None:
    """The walk advances in steps of a 2000th of its time, here 63 s, in which a car passes through all cells."""
    world = prepare(passing, device="cpu", threads=1).world
    places_m, _, _ = _walk(world.rehearsal(), 126_000)
    assert len(places_m) > 5
    assert np.hypot(*places_m.T).max() < 450  # a car that has left has no position


def test_the_note_about_handovers_comes_before_the_run() -> None:
    """If UMi sites are too far apart, a note in the preview says before the run that walkers hand over often."""
    walk = sections("""
        name=walk; duration_s=30; layout={rings: 1, isd_m: 400, federations: centre}; rounds.every_s=15
        devices.mobility={name: random_waypoint, area_factor: 1.0, speed_min_m_s: 1.0, speed_max_m_s: 1.8}
        devices.count=60; sessions={name: schedule, count: 1, rounds: 2}
        workload={payload_bits: 1e5, flops_per_sample: 1e3}
    """)
    preview = make_preview(load(walk), "cpu")
    (note,) = (one for one in preview.notes if one.startswith("handovers: "))
    assert f"{len(preview.handovers_m):,}, {len(preview.handovers_m) / preview.borders:.1f} for each" in note
    assert "radio.path_loss: uma" in note


def test_rounds_cost_what_they_cost_in_the_run(preview: Preview, run: Path) -> None:
    rounds = pd.read_csv(run / "rounds.csv").sort_values("end_s")
    # devices move, so the probe, the mean of the first rounds, only approximates the mean over all rounds
    assert preview.forecast.probe.latency_s == pytest.approx(rounds["latency_s"].mean(), rel=0.5)
    assert preview.forecast.probe.energy_j == pytest.approx(rounds["energy_j"].mean(), rel=0.5)
    assert preview.forecast.simulated_s == (20.0, 20.0)


def test_the_rounds_and_devices_behind_the_joules_are_told_with_them(preview: Preview) -> None:
    (told,) = (line for line in preview.lines("") if line.startswith("a round "))
    assert "simulated time  20 s" in preview.lines(""), "not roughly: its duration is given"
    probe = preview.forecast.probe
    assert f"{probe.energy_j:.3g} J for {probe.participants:.3g} participants" in told
    one = replace(probe, energy_rounds=1, participants=1.0)  # only the first round's tails have ended
    ends = {"duration_s": None, "sessions": {"name": "schedule", "count": 1, "rounds": 4}}
    forecast = replace(preview.forecast, probe=one, scenario=preview.forecast.scenario.with_(**ends))
    assert replace(preview, forecast=forecast).lines("")[1].endswith(" s, roughly")
    (told,) = (line for line in replace(preview, forecast=forecast).lines("") if line.startswith("a round "))
    time = f"(mean of the first {probe.rounds} rounds)"
    energy = f"{probe.energy_j:.3g} J for 1 participant (the first round, whose radio tails have ended)"
    assert f"{time} and {energy}" in told


def test_connecting_and_devices_without_a_link_are_told_with_their_joules(tmp_path: Path) -> None:
    """Far indoors some devices of a weak cell have no link; the first round's joules include connecting."""
    scenario = load(
        sections("""
            name=weak; seed=3; cell={radius_m: 400}; devices={count: 20, indoor_share: 0.8}
            radio={budget: {server_power_dbm: 20}}; sessions={name: schedule, count: 1, rounds: 2}
            workload={payload_bits: 1e5, flops_per_sample: 1e3}
        """)
    )
    preview = make_preview(scenario, "cpu")
    rounds = pd.read_csv(simulate(scenario, tmp_path / "run", device="cpu") / "rounds.csv")
    later_j, out = (rounds.energy_j - rounds.energy_tail_j).iloc[1], rounds.out_of_coverage.max()
    assert 1 < out < 20
    (told,) = (note for note in preview.notes if "of connecting" in note)
    assert told.endswith(f"s and {later_j:.3g} J plus radio tails")
    assert f"{out} devices had no link when a round began, and took no part in it" in preview.notes


@pytest.mark.parametrize(
    ("rounds", "counted", "told"),
    [
        (1, 1, "first round of 1,130 s and 23.4 J"),
        (2, 1, "first 2 rounds of 1,130 s, first round of 23.4 J"),
        (14, 14, "first 14 rounds of 1,130 s and 23.4 J"),
        (14, 9, "first 14 rounds of 1,130 s, first 9 rounds of 23.4 J"),
    ],
)
def test_the_title_tells_which_rounds_cost_this(
    preview: Preview, rounds: int, counted: int, told: str
) -> None:
    probe = Probe(rounds, 1130.2, 1.0, 1.0, 1.0, 1.0, energy_j=23.43, energy_rounds=counted)
    assert _costs(replace(preview, forecast=replace(preview.forecast, probe=probe))) == told


def test_everybody_is_somewhere(preview: Preview) -> None:
    assert (preview.population.sum(axis=1) == 12).all()
    assert preview.population.shape[1] == 7


def test_who_is_switched_on_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "churn.yaml"
    file.write_text(HEXAGONS.replace("layout: {rings: 1, isd_m: 150}\n", ""))
    changes = ["devices.churn={name: poisson, on_s: 4, off_s: 2}", "devices.mobility=static"]
    scenario = load(file, [*changes, "radio.propagation.shadowing=round"])
    preview = make_preview(scenario)
    events = pd.read_csv(simulate(scenario, tmp_path / "run") / "events.csv")
    steps = events["event"].map({EventName.SWITCHED_ON: 1, EventName.SWITCHED_OFF: -1}).fillna(0)
    assert (steps[events["time_s"] > 0] != 0).sum() > 20
    counted = [steps[(events["time_s"] > 0) & (events["time_s"] <= at_s)].sum() for at_s in preview.times_s]
    assert (preview.population[:, 0] - preview.population[0, 0] == counted).all()
    # no text of the picture is cut off at the right edge, also the title about devices that are off
    drawn: list[Figure] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FigureCanvasAgg, "print_figure", lambda canvas, *_, **__: drawn.append(canvas.figure))
        draw(preview, tmp_path / "churn.png")
    ends = [text.get_window_extent().x1 for text in drawn[0].findobj(Text) if "dotted" in text.get_text()]
    assert ends
    assert max(ends) <= drawn[0].bbox.width


def test_a_probe_that_ended_early_says_so(preview: Preview, scenario: Scenario) -> None:
    assert not [note for note in preview.notes if "the first" in note]
    # a probe completes two rounds even if it is allowed no time
    (note,) = [note for note in make_preview(scenario, most_s=0.0).notes if "to end" in note]
    assert "over the first 2 rounds to end" in note


@pytest.mark.parametrize(
    ("radio", "at_0_db", "at_60_db"),
    [
        ({}, 1.0, math.log2(1 + 1e6)),
        ({"link": {"max_efficiency": 7.4}}, 1.0, 7.4),
        # CQI 3 needs 2 + 10 log10(2^0.877 - 1) = 1.2 dB, so 0 dB has CQI 2; 60 dB has the highest, CQI 15
        (NR, 0.3770 * CARRIED, 7.4063 * CARRIED),
        (within(NR, {"link": {"max_efficiency": 5.5547}}), 0.3770 * CARRIED, 5.5547 * CARRIED),
    ],
)
def test_the_bar_of_the_map_obeys_the_rates(
    scenario: Scenario, preview: Preview, radio: dict[str, Any], at_0_db: float, at_60_db: float
) -> None:
    settings = RadioSettings.model_validate(
        within({"preset": "journal", "propagation": {"shadowing": "spatial"}}, radio)
    )
    world = SimpleNamespace(scenario=scenario.model_copy(update={"radio": settings}))
    found = replace(preview, world=cast(World, world)).carried(np.array([0.0, 60.0]))
    assert found == pytest.approx([at_0_db, at_60_db])


@pytest.mark.parametrize(
    ("snr_db", "most", "below", "above"),
    [
        (np.full((4, 4), 8.3), 20.0, ["8.3"], ["3.0"]),  # log2(1 + 10^0.83) = 2.96
        (np.linspace(8.28, 8.31, 16).reshape(4, 4), 20.0, ["8.3"], ["3.0"]),
        (np.linspace(28.0, 52.0, 16).reshape(4, 4), 8.3, ["30", "35", "40", "45", "50"], ["8.3"]),
        (
            np.linspace(14.0, 38.0, 16).reshape(4, 4),
            8.3,
            ["15", "20", "25", "30", "35"],
            ["5.0", "6.7", "8.3"],
        ),
    ],
)
def test_equal_values_have_one_tick(
    scenario: Scenario, preview: Preview, snr_db: np.ndarray, most: float, below: list[str], above: list[str]
) -> None:
    radio = within({"preset": "journal", "link": {"max_efficiency": most}}, {})
    settings = RadioSettings.model_validate(radio)
    world = SimpleNamespace(scenario=scenario.model_copy(update={"radio": settings}))
    figure = Figure()
    seen = replace(preview, world=cast(World, world), snr_db=snr_db)
    _signal(figure, figure.add_axes((0, 0.2, 1, 0.8)), seen)
    FigureCanvasAgg(figure).draw()
    bar = figure.axes[-1]
    shown = [[label.get_text() for label in axes.get_xticklabels()] for axes in (bar, bar.child_axes[-1])]
    assert shown == [below, above]


def test_the_map_is_strong_at_the_sites(preview: Preview) -> None:
    axis = np.linspace(-preview.reach_m, preview.reach_m, len(preview.snr_db))
    near = [
        preview.snr_db[np.abs(axis - y).argmin(), np.abs(axis - x).argmin()] for x, y in preview.world.sites_m
    ]
    assert min(near) > np.nanmedian(preview.snr_db)


def test_the_map_shows_streets_and_whole_areas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map reaches to the area's end, 700 m from the origin; 0.001 degrees of latitude are 111.2 m of street."""
    way = {"type": "LineString", "coordinates": [[11.57, 48.13], [11.57, 48.131]]}
    (tmp_path / "ways.json").write_text(json.dumps(way))
    town = sections(f"""
        name=map; origin_lon_lat=[11.57, 48.13]; layout={{sites: [[0, 0], [100, 0]], radius_m: 150}}
        areas.far_away.rectangle={{from_m: [600, 0], to_m: [700, 10]}}; devices={{count: 2}}
        streets.geojson.path={tmp_path / "ways.json"}; sessions={{name: schedule, count: 1, rounds: 1}}
        workload={{payload_bits: 1e5, flops_per_sample: 1e3}}
    """)
    preview = make_preview(load(town), "cpu", most_s=0.0)
    assert preview.reach_m == pytest.approx(1.05 * 700)
    (area,), (street,) = preview.ground.areas, preview.ground.streets
    assert area["name"] == "far_away"
    assert street == [[0.0, 0.0], [0.0, pytest.approx(111.2, abs=0.05)]]
    labels: list[str] = []
    monkeypatch.setattr("edgefl.analysis.figures.map.note", lambda _, words, *__, **___: labels.append(words))
    draw(preview, tmp_path / "map.png", dpi=20)
    assert "far_away" in labels  # as in the scenario, not "far away"
    monkeypatch.undo()
    draw(preview, tmp_path / "map.png", dpi=20)
    drawn, bare = Image.open(tmp_path / "map.png"), tmp_path / "bare.png"
    draw(replace(preview, ground=preview.ground._replace(streets=[], areas=[])), bare, dpi=20)
    assert ImageChops.difference(drawn.convert("RGB"), Image.open(bare).convert("RGB")).getbbox()


@pytest.mark.parametrize(
    ("changes", "made"),
    [
        ({"sessions": {"name": "daily", "at_hours": [8, 18]}, "duration_s": 86_400.0}, 3),
        # a session that would begin at the end of the run is not created
        ({"sessions": {"name": "daily", "at_hours": [8, 18]}, "duration_s": 64_800.0}, 2),
        ({"sessions": {"name": "interval", "length_s": 10, "count": 2}, "duration_s": 60.0}, 2),
        ({"sessions": {"name": "interval", "length_s": 10}, "duration_s": 1000.0}, 8),  # shows at most 8
        ({"sessions": {"name": "schedule", "count": 3, "rounds": 4}}, 3),
        # 45 s are nine rounds, in three sessions
        ({"sessions": {"name": "schedule", "rounds": 4}, "rounds": {"every_s": 5}, "duration_s": 45.0}, 3),
    ],
)
def test_labels_are_shown_of_the_sessions_that_the_run_makes(changes: dict[str, Any], made: int) -> None:
    learning = {"dataset": "digits", "model": "logistic", "local": {"batch": 16}}
    scenario = load({"name": "some", "devices": {"count": 4}, "learning": learning, **changes})
    assert _sessions(Forecast(scenario, probe=Probe(1, 1.0, 1.0, 1.0, 1.0, 1.0))) == made


def test_the_command_draws_a_picture(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "picture.png"
    assert code_of("preview", digits, "--out", target) == 0
    told = capsys.readouterr().out
    assert "8 in one cell" in told
    assert "picture: " in told
    with Image.open(target) as picture:
        assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 500
    assert code_of("preview", digits, "--out", "picture.txt") == 2
    target.write_text("my notes")
    assert code_of("preview", digits, "--out", target) == 2
    assert "exists and is no PNG: choose another --out, or delete the file" in capsys.readouterr().err
    assert target.read_text() == "my notes"


def test_federations_are_looked_at_without_training(tmp_path: Path) -> None:
    """The probe's rounds have the bits and FLOPs of each federation's task, and train no model."""
    digits = "{dataset: digits, local: {batch: 16}, model: %s}"
    scenario = load(
        sections(f"""
            name=both; devices={{count: 6}}; sessions={{name: schedule, count: 1, rounds: 2}}
            radio={{preset: journal, sharing: dynamic, scheduler: equal_share}}
            federations.a={{share: 0.5, learning: {digits % "logistic"}}}
            federations.b={{share: 0.5, learning: {digits % "{name: mlp2, hidden: 16}"}}}
        """)
    )
    made = make_preview(scenario, "cpu", most_s=math.inf)
    assert [line.partition(",")[0] for line in made.forecast.about] == [
        "federation a: 3 devices",
        "federation b: 3 devices",
    ]
    assert "model mlp2" in made.forecast.about[1]
    tables = simulate(scenario, tmp_path / "run", device="cpu").rglob("rounds.csv")
    rounds = pd.concat(map(pd.read_csv, tables))
    assert made.forecast.probe.latency_s == pytest.approx(rounds["latency_s"].mean(), rel=1e-9)
    assert made.forecast.probe.energy_j == pytest.approx(rounds["energy_j"].mean(), rel=1e-9)
    assert made.forecast.rounds == (4, 4)


def test_a_hundred_devices_take_at_most_five_seconds(tmp_path: Path) -> None:
    """A preview takes at most 5 s of processor time, including the start of Python and all imports.

    The journal's radio is used; `nr` takes one second more. Processor time does not depend on other processes.
    """
    keys = ["--set", "devices.count=100", "--set", "radio.preset=journal"]
    words = ["preview", str(QUICKSTART), *keys, "--out", str(tmp_path / "picture.png")]
    command = [sys.executable, "-c", "from edgefl.commands.cli import main; main()", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5.0


@pytest.mark.parametrize(
    ("mobility", "said"),
    [
        ("static", ""),
        ("{name: random_waypoint, speed_min_m_s: 1, speed_max_m_s: 2}", " in the time shown"),
    ],
)
def test_devices_that_walk_are_not_called_still(mobility: str, said: str) -> None:
    """For pedestrians, the preview only notes that they do not move in the time shown, a round of milliseconds."""
    still = sections(f"""
        name=still; devices={{count: 2, mobility: {mobility}}}; sessions={{name: schedule, count: 1, rounds: 1}}
        workload={{payload_bits: 1000, flops_per_sample: 1}}
    """)
    preview = make_preview(load(still))
    assert _explained(preview) == f"Dots: devices, which do not move{said}."


def test_devices_that_walk_far_in_small_steps_have_tracks() -> None:
    """In 5 s at 2 m/s they walk 10 m, but less than half a metre between two of the preview's times."""
    walk = sections("""
        name=walk; devices={count: 2, mobility: {name: random_waypoint, speed_min_m_s: 2, speed_max_m_s: 2}}
        duration_s=5; workload={payload_bits: 1000, flops_per_sample: 1}
        sessions={name: interval, length_s: 5}
    """)
    preview = make_preview(load(walk))
    assert np.hypot(*np.diff(preview.tracks_m, axis=0).transpose(2, 0, 1)).max() < 0.5
    assert _explained(preview) == "Dots: devices at the start; lines: their tracks."


def test_each_federation_has_costs_of_its_own(tmp_path: Path) -> None:
    """The federation b sends 300 times as many bits, so a has ended its rounds before b's first round has."""
    both = load(
        sections("""
            name=both; devices.count=8; federations.a={share: 0.5}; sessions={name: schedule, count: 1, rounds: 4}
            federations.b={share: 0.5, workload: {payload_bits: 3e7, flops_per_sample: 1}}
            workload={payload_bits: 1e5, flops_per_sample: 1}; devices.indoor_share=0
        """)
    )
    preview, run = make_preview(both), simulate(both, tmp_path / "run")
    told = [line for line in preview.lines("") if line.startswith("a round of ")]
    assert [line.rpartition("; ")[2] for line in told] == ["0.1 Mbit per transfer", "30 Mbit per transfer"]
    for name in ("a", "b"):
        rounds = pd.read_csv(run / name / "rounds.csv")
        probe = preview.forecast.probe.by_federation[name]
        assert probe.latency_s == pytest.approx(rounds["latency_s"][: probe.rounds].mean(), rel=1e-6)
        assert probe.rounds >= 2
    some = replace(preview.forecast.probe, by_federation={"a": preview.forecast.probe.by_federation["a"]})
    late = replace(preview, forecast=replace(preview.forecast, probe=some)).lines("")
    assert "a round of b    not measured, as no round ended in time; 30 Mbit per transfer" in late
    ends_s = pd.read_csv(run / "b" / "rounds.csv")["end_s"].max()
    assert preview.forecast.simulated_s.least == pytest.approx(ends_s, rel=0.25)


def test_a_federation_that_leaves_out_devices_is_tried_until_they_have_connected() -> None:
    """Two of b's eight devices take part in a round, so each has been in four rounds after 16 rounds."""
    both = sections("""
        name=both; devices.count=16; federations.a={share: 0.5}; sessions={name: schedule, count: 1, rounds: 20}
        federations.b={share: 0.5, rounds: {selector: {name: uniform, count: 2}}}
        workload={payload_bits: 1e5, flops_per_sample: 1}; devices.indoor_share=0
    """)
    tried = make_preview(load(both)).forecast.probe.by_federation
    assert tried["b"].rounds >= 16
    assert tried["b"].gradual
    assert not tried["a"].gradual
