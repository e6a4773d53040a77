"""A scenario's picture and figures before it runs are those of the run."""

import os
import resource
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from edgefl import cli
from edgefl.engine.records import EventName
from edgefl.outlook import Outlook, look
from edgefl.outlook_figure import draw, spread_m
from edgefl.scenario import Scenario, load
from edgefl.simulation import simulate

QUICKSTART = Path(__file__).parents[2] / "scenarios" / "quickstart.yaml"
HEXAGONS = """\
name: hexagons
seed: 5
duration_s: 20
layout: {rings: 1, isd_m: 150}
devices:
  count: 12
  mobility: {name: random_waypoint, speed_min_m_s: 15, speed_max_m_s: 20}
radio: {bandwidth_hz: 1.0e+6, shadowing: spatial}
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
def outlook(scenario: Scenario) -> Outlook:
    return look(scenario)


@pytest.fixture(scope="module")
def run(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(scenario, tmp_path_factory.mktemp("preview") / "run")


def test_devices_go_where_the_run_has_them(outlook: Outlook, run: Path) -> None:
    positions = pd.read_csv(run / "positions.csv")
    for device in (0, 7):
        mine = positions[positions["device"] == device]
        x_m = np.interp(mine["time_s"], outlook.times_s, outlook.tracks_m[:, device, 0])
        assert np.abs(x_m - mine["x_m"]).max() < 2.7  # between two looks a device walks 20 m/s x 0.13 s


def test_handovers_are_those_of_the_run(outlook: Outlook, run: Path) -> None:
    events = pd.read_csv(run / "events.csv")
    handovers = events[(events["event"] == EventName.HANDOVER) & (events["time_s"] <= outlook.walked_s)]
    assert len(handovers) > 5
    assert len(outlook.handovers_m) == len(handovers)
    assert outlook.handovers_per_hour == pytest.approx(len(handovers) * 3600 / outlook.walked_s)


def test_rounds_cost_what_they_cost_in_the_run(outlook: Outlook, run: Path) -> None:
    rounds = pd.read_csv(run / "rounds.csv").sort_values("end_s")
    # the mean of the first rounds of moving devices against the mean of all: the same size, no more
    assert outlook.latency_s == pytest.approx(rounds["latency_s"].mean(), rel=0.5)
    assert outlook.energy_j == pytest.approx(rounds["energy_j"].mean(), rel=0.5)
    assert outlook.simulated_s == (20.0, 20.0)


def test_everybody_is_somewhere(outlook: Outlook) -> None:
    assert (outlook.population.sum(axis=1) == 12).all()
    assert outlook.population.shape[1] == 7


def test_who_is_never_there_is_no_warning(outlook: Outlook, tmp_path: Path) -> None:
    tracks_m = outlook.tracks_m.copy()
    tracks_m[:, 0] = np.nan  # never there
    tracks_m[1:, 1] = np.nan  # at one moment only
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(replace(outlook, tracks_m=tracks_m), tmp_path / "a.png")
    spread = spread_m(tracks_m)
    assert spread[:2].tolist() == [0, 0]
    assert spread[2:].tolist() == np.ptp(tracks_m[:, 2:], axis=0).max(axis=1).tolist()


def test_the_map_is_strong_at_the_sites(outlook: Outlook) -> None:
    axis = np.linspace(-outlook.reach_m, outlook.reach_m, len(outlook.snr_db))
    near = [
        outlook.snr_db[np.abs(axis - y).argmin(), np.abs(axis - x).argmin()] for x, y in outlook.world.sites_m
    ]
    assert min(near) > np.nanmedian(outlook.snr_db)


@pytest.mark.slow
def test_labels_of_sessions_are_those_of_the_run(digits: Path, tmp_path: Path) -> None:
    scenario = load(digits, ["sessions.rounds=1"])
    mix = look(scenario).mix
    sessions = pd.read_csv(simulate(scenario, tmp_path / "run", device="cpu") / "sessions.csv")
    assert {
        int(row.session): {int(label) for label in str(row.labels).split()} for row in sessions.itertuples()
    } == {session: {label for label, count in labels.items() if count} for session, labels in mix.items()}


@pytest.mark.slow
def test_the_command_draws_a_picture(
    digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "picture.png"
    with pytest.raises(SystemExit) as ended:
        cli.main(["preview", str(digits), "--out", str(target)])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert "8 in one cell" in told
    assert "picture: " in told
    with Image.open(target) as picture:
        assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 500
    with pytest.raises(SystemExit) as refused:
        cli.main(["preview", str(digits), "--out", "picture.txt"])
    assert refused.value.code == 2


@pytest.mark.slow
def test_a_hundred_devices_take_at_most_five_seconds(tmp_path: Path) -> None:
    """Of processor time, so that a busy machine does not fail it; with the start of Python and all imports."""
    command = [sys.executable, "-c", "from edgefl.cli import main; main()", "preview", str(QUICKSTART)]
    options = ["--set", "devices.count=100", "--out", str(tmp_path / "picture.png")]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*command, *options], check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5.0
