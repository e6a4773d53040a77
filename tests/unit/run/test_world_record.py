"""Test that a recorded world agrees with the run, and that training in it has the same participants."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edgefl
from edgefl.analysis.runs.reading import EXACT
from edgefl.errors import EdgeflError
from tests.refusals import refused_at
from tests.tools.called import code_of

ROUND_S, ROUNDS, TICK_S = 2.0, 15, 0.1
BASE = f"""
name: world
seed: 3
duration_s: {ROUND_S * ROUNDS}
sessions: {{name: schedule, count: 1, rounds: {ROUNDS}}}
rounds: {{every_s: {ROUND_S}}}
workload: {{payload_bits: 20000, flops_per_sample: 1000}}
"""
WALK = """
radio: {preset: journal}
devices:
  count: 30
  mobility: {name: random_waypoint, speed_min_m_s: 5, speed_max_m_s: 15}
  churn: {name: duty_cycle, on_s: 6, off_s: 3}
"""
CELLS = """
layout: {rings: 1, isd_m: 200}
radio: {preset: journal, propagation: {shadowing: spatial, line_of_sight: probabilistic}}
devices:
  count: 30
  mobility: {name: random_waypoint, speed_min_m_s: 5, speed_max_m_s: 15}
"""
DENSE = """
radio: {preset: journal}
devices:
  density_per_km2: 150
  classes:
    walkers: {share: 0.5, mobility: random_waypoint, churn: {name: duty_cycle, on_s: 6, off_s: 3}}
    others: {share: 0.5, clock_hz: 2.0e+9}
"""
ABSENT = """
radio: {preset: journal}
devices: {count: 30, mobility: {name: trace, path: %s, begin_s: 20}}
cell: {radius_m: 300}
"""
GRID = Path(__file__).parents[3] / "scenarios" / "traces" / "grid.fcd.xml"
STILL = "devices: {count: 12, mobility: {name: static, doppler_speed_m_s: 10}}"
WORLDS = {"walk": WALK, "cells": CELLS, "classes": DENSE, "absent": ABSENT % GRID}


def scenario(tmp_path: Path, devices: str) -> edgefl.Scenario:
    file = tmp_path / "world.yaml"
    file.write_text(BASE + devices)
    return edgefl.load_scenario(file)


def members(run: Path) -> pd.DataFrame:
    """Return the participants of each cell's rounds."""
    order = ["session", "round", "cell", "device"]
    devices = pd.read_csv(run / "devices.csv")
    return devices[[*order, "phase"]].sort_values(order, ignore_index=True)


@pytest.mark.parametrize("world", WORLDS)
def test_training_on_it_meets_the_same_devices(world: str, tmp_path: Path) -> None:
    original = scenario(tmp_path, WORLDS[world])
    out = edgefl.record(original, tmp_path / "world")
    first = members(edgefl.simulate(original, tmp_path / "first"))
    again = members(edgefl.simulate(edgefl.load_scenario(out / "scenario.yaml"), tmp_path / "again"))
    pd.testing.assert_frame_equal(first, again)
    assert first.groupby(["round", "cell"]).device.apply(frozenset).nunique() > 1  # participants change
    # a round takes all present devices, as the table of presence for other frameworks says
    presence = pd.read_csv(out / "presence.csv")
    begins_s = pd.read_csv(tmp_path / "first" / "rounds.csv").set_index(["round", "cell"]).start_s
    for (number, cell), group in first.groupby(["round", "cell"]):
        # a round that begins at a tick may have the devices present before or after that tick
        start_s = begins_s[number, cell]
        was, is_ = (
            {*presence.device[(presence.cell == cell) & (presence.from_s <= at_s) & (presence.to_s > at_s)]}
            for at_s in (max(0.0, start_s - TICK_S / 2), start_s + TICK_S / 2)
        )
        assert was & is_ <= set(group.device) <= was | is_


def test_a_world_in_which_nobody_moves_is_repeated_exactly(tmp_path: Path) -> None:
    """A trace of a static device would have the fading of a speed of 0, not of the device's nominal speed."""
    original = scenario(tmp_path, STILL)
    out = edgefl.record(original, tmp_path / "world")
    first = edgefl.simulate(original, tmp_path / "first")
    again = edgefl.simulate(edgefl.load_scenario(out / "scenario.yaml"), tmp_path / "again")
    for table in ("rounds.csv", "devices.csv", "ledger.csv"):
        assert (first / table).read_bytes() == (again / table).read_bytes()


def test_availability_is_presence_in_the_form_of_fedscale(tmp_path: Path) -> None:
    out = edgefl.record(scenario(tmp_path, WALK), tmp_path / "world")
    presence = pd.read_csv(out / "presence.csv", **EXACT)
    clients = json.loads((out / "availability.json").read_text())
    assert list(clients) == [str(device) for device in range(30)]
    for device, client in clients.items():
        own = presence[presence.device == int(device)]
        assert client["active"] == own.from_s.tolist()
        assert client["inactive"] == own.to_s.tolist()
        assert client["finish_time"] == ROUND_S * ROUNDS
    # edgefl reads the table as an availability trace
    again = f"{{name: availability_trace, path: {out / 'availability.json'}}}"
    text = f"radio: {{preset: journal}}\ndevices: {{count: 30, churn: {again}}}"
    run = edgefl.simulate(scenario(tmp_path, text), tmp_path / "run")
    first = edgefl.simulate(scenario(tmp_path, WALK), tmp_path / "first")
    pd.testing.assert_frame_equal(members(run), members(first))


def test_costs_are_those_of_a_round(tmp_path: Path) -> None:
    """With static devices and spatial shadowing, a run's first round takes the time in the table of costs."""
    text = "devices: {count: 8}\nradio: {preset: journal, propagation: {shadowing: spatial}, bandwidth_hz: 1.0e+6}"
    still = scenario(tmp_path, text)
    out = edgefl.record(still, tmp_path / "world", links_s=ROUND_S, payload_bits=(20_000, 40_000))
    run = edgefl.simulate(still, tmp_path / "run")
    links, devices = pd.read_csv(out / "links.csv"), pd.read_csv(run / "devices.csv")
    assert set(links.payload_bits) == {20_000, 40_000}
    one, first = links[(links.time_s == 0) & (links.payload_bits == 20_000)], devices[devices["round"] == 1]
    assert one.downlink_s.tolist() == pytest.approx((first.downlink_end_s - first.downlink_start_s).tolist())
    assert one.downlink_j.tolist() == pytest.approx(first.energy_rx_j.tolist())
    # a round's uplink begins after computing, in other slots but with the same power
    table = pd.read_csv(out / "devices.csv")
    assert (one.uplink_j / one.uplink_s).tolist() == pytest.approx(table.send_w.tolist())
    gflops = 5 * 128 * 1000 / 1e9
    computed_s = first.compute_end_s - first.compute_start_s
    assert (table.compute_s_per_gflop * gflops).tolist() == pytest.approx(computed_s.tolist())
    assert (table.compute_j_per_gflop * gflops).tolist() == pytest.approx(first.energy_compute_j.tolist())


@pytest.mark.parametrize("sharing", ["static", "dynamic"])
def test_a_link_that_carries_nothing_has_empty_cells(sharing: str, tmp_path: Path) -> None:
    """Devices below the lowest CQI, in a cell of 2 km, have no costs, and do not change other devices' costs."""
    text = (
        "cell: {radius_m: 2000}\ndevices: {count: 20, mobility: static}\n"
        f"radio: {{monitoring: {{coverage_margin_db: none}}, sharing: {sharing}}}"
    )
    links = pd.read_csv(edgefl.record(scenario(tmp_path, text), tmp_path / "world") / "links.csv")
    first = links[links.time_s == 0]
    assert len(first) == 20  # devices that cannot transfer have rows, too
    for direction in ("downlink", "uplink"):
        seconds, joules = first[f"{direction}_s"], first[f"{direction}_j"]
        assert 0 < seconds.isna().sum() < 20
        assert (seconds.isna() == joules.isna()).all()
        assert (seconds.dropna() > 0).all()


def test_who_never_comes_keeps_its_number(tmp_path: Path) -> None:
    trace = tmp_path / "few.csv"
    trace.write_text("t,id,x,y\n0,a,50,0\n40,a,60,0\n500,b,50,0\n510,b,60,0\n0,c,0,50\n40,c,0,60\n")
    text = f"devices: {{count: 3, mobility: {{name: trace, path: {trace}}}}}"
    out = edgefl.record(scenario(tmp_path, text), tmp_path / "world")
    again = edgefl.simulate(edgefl.load_scenario(out / "scenario.yaml"), tmp_path / "again")
    assert set(members(again).device) == {0, 2}
    positions = pd.read_csv(out / "positions.csv")
    at_20 = positions[np.isclose(positions.t, 20.0)]
    assert at_20.x.tolist() == pytest.approx([55.0, 0.0])
    assert positions[positions.id == 1].t.tolist() == [-1.0]


def test_the_command_and_what_it_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = scenario(tmp_path, WALK)
    file, out = tmp_path / "world.yaml", tmp_path / "out"
    command = ["record", str(file), "--out", str(out), "--duration-s", "4", "--payload-bits", "1000"]
    assert code_of(*command) == 0
    assert "train with: edgefl run" in capsys.readouterr().out
    about = json.loads((out / "record.json").read_text())
    assert (about["duration_s"], about["payload_bits"]) == (4.0, [1000])
    assert edgefl.load_scenario(out / "scenario.yaml").duration_s == 4.0  # the end of presence
    with refused_at("", out, "is not empty"):
        edgefl.record(original, out)
    (tmp_path / "file").touch()
    with refused_at("", "file: is a file"):
        edgefl.record(original, tmp_path / "file")
    endless = original.model_copy(update={"duration_s": None})
    with refused_at(""):
        edgefl.record(endless, tmp_path / "endless")
    with refused_at(""):
        edgefl.record(original, tmp_path / "long", duration_s=1e7)
    with pytest.raises(EdgeflError, match="every_s=0: "):
        edgefl.record(original, tmp_path / "long", every_s=0)
    assert not (tmp_path / "long").exists()
