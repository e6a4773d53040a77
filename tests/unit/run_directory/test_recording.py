"""Test what a run records of its devices: rounds, formats of tables, and positions."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edgefl import simulate
from edgefl.analysis import handover_figures, load_runs
from edgefl.run_directory.settings import RecordSettings
from edgefl.scenario.scenario import Scenario, load
from tests.refusals import refused_at
from tests.tables import sections
from tests.tools.invariants import check_run
from tests.tools.journal import with_journal

SMALL = sections("""
    name=a; seed=3; devices={count: 4, mobility: {name: random_waypoint, area_factor: 1.5}}
    sessions={name: schedule, count: 2, rounds: 5}; workload={payload_bits: 1000000, flops_per_sample: 1e6}
""")


def scenario(**changes: Any) -> Scenario:
    return Scenario.model_validate(with_journal({**SMALL, **changes}))


def tables(path: Path, *but: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.glob("*.csv") if file.stem not in but}


def test_every_nth_round() -> None:
    assert [number for number in range(1, 8) if RecordSettings(devices=3).keeps(number)] == [1, 4, 7]
    assert all(RecordSettings(devices=1).keeps(number) for number in range(1, 8))
    assert not any(RecordSettings(devices="none").keeps(number) for number in range(1, 8))


def test_fewer_rows_change_nothing_else(tmp_path: Path) -> None:
    whole = simulate(scenario(), tmp_path / "all")
    parts = pd.read_csv(whole / "devices.csv")
    for devices, kept in (("none", []), (2, [1, 3, 5])):
        run = simulate(scenario(record={"devices": devices}), tmp_path / str(devices))
        assert tables(run, "devices") == tables(whole, "devices")
        rows = pd.read_csv(run / "devices.csv").astype(parts.dtypes)
        pd.testing.assert_frame_equal(rows, parts[parts["round"].isin(kept)].reset_index(drop=True))
        assert check_run(run) == []
    (tmp_path / "2" / "devices.csv").write_text((whole / "devices.csv").read_text())
    assert "rounds.csv does not" not in str(check_run(tmp_path / "2"))


@pytest.mark.parametrize("devices", ["some", 0, 1.5, True])
def test_what_is_no_choice(devices: Any) -> None:
    with refused_at("", "devices"):
        RecordSettings(devices=devices)


def test_analysis_says_what_is_missing_instead_of_adding_up_what_is_there(tmp_path: Path) -> None:
    """If a run with all rows of devices and a run with a third are compared, a note names the missing rows."""
    simulate(scenario(name="whole"), tmp_path / "whole")
    simulate(scenario(name="thinned", record={"devices": 3}), tmp_path / "thinned")
    runs = load_runs(tmp_path)
    (note,) = runs.notes
    assert note.startswith("1 of 2 runs have device rows of one round in 3 (record.devices)")
    thinned, whole = handover_figures(runs).sort_values("variant").itertuples(index=False)
    assert whole.wasted_j >= 0
    assert whole.broken >= 0
    assert np.isnan([thinned.broken, thinned.wasted_bits, thinned.wasted_j, thinned.wasted_share]).all()
    # all devices were present all the time, also in rounds without rows
    assert thinned.handovers_per_device_hour == whole.handovers_per_device_hour
    assert thinned.interruption_share == whole.interruption_share


def test_positions_by_hand(tmp_path: Path) -> None:
    """Positions are right for a device that walks along x at 1 m/s and leaves after 9 s, and for a static device."""
    trace = tmp_path / "t.csv"
    trace.write_text("t,id,x,y\n0,u,20,0\n9,u,29,0\n0,v,0,40\n1000,v,0,40\n")
    one = scenario(
        devices={"count": 2, "mobility": {"name": "trace", "path": str(trace)}},
        workload={"payload_bits": 1_000_000_000, "flops_per_sample": 0},
        record={"positions_s": 4},
        radio={"propagation": {"shadowing": "spatial"}},
    )
    run = simulate(one, tmp_path / "run")
    rows = pd.read_csv(run / "positions.csv")
    assert list(rows.columns) == ["time_s", "device", "x_m", "y_m", "cell", "gain_db", "sinr_db"]
    walked = rows[rows["device"] == 0]
    assert walked[["time_s", "x_m", "y_m"]].to_numpy().tolist() == [[0, 20, 0], [4, 24, 0], [8, 28, 0]]
    stands = rows[rows["device"] == 1]
    assert stands["time_s"].tolist() == [4.0 * k for k in range(len(stands))]
    assert (stands["cell"] == 0).all()
    assert stands["gain_db"].nunique() == 1
    assert -120 < stands["gain_db"].iloc[0] < -60
    pd.testing.assert_frame_equal(load_runs(run).positions.drop(columns=["variant", "seed"]), rows)


@pytest.mark.parametrize("radio", [{}, {"propagation": {"shadowing": "spatial"}}])
def test_watching_positions_disturbs_nothing(radio: dict[str, Any], tmp_path: Path) -> None:
    """Recording positions changes no other table, even at the same time as other events, such as movement's ticks."""
    devices = {"count": 4, "indoor_share": 0.5, "mobility": {"name": "random_waypoint", "area_factor": 1.5}}
    never = scenario(radio=radio, devices=devices, record={"positions_s": "none"})
    whole = simulate(never, tmp_path / "without")
    run = simulate(scenario(radio=radio, devices=devices, record={"positions_s": 0.1}), tmp_path / "with")
    auto = simulate(scenario(radio=radio, devices=devices), tmp_path / "auto")
    assert tables(run, "positions") == tables(whole) == tables(auto, "positions")
    assert pd.read_csv(auto / "positions.csv")["gain_db"].isna().all(), "gains were not requested"
    assert not (whole / "positions.csv").exists()
    positions = pd.read_csv(run / "positions.csv")
    assert positions["gain_db"].notna().any() == bool(radio)
    with refused_at("", "record.positions_s", kind=ValueError):
        _ = load_runs(whole).positions


def test_the_gain_is_that_of_the_link(tmp_path: Path) -> None:
    from edgefl.rng import Streams
    from edgefl.scenario.world import World

    cells = sections("""
        layout.rings=1; devices={count: 30, indoor_share: 0.5}; radio.neighbour_load=0.5
        radio.propagation={shadowing: spatial, line_of_sight: probabilistic}
    """)
    world = World(scenario(**cells), Streams(3))
    positions_m = world.movement.positions_m(0.0)
    ids = np.arange(30)
    for cell in (0, 3):
        radio = world.radio(None)
        state = radio.gains.of_round(positions_m, range(30), cell, (1, "train", 1))
        gains_db, sinr = radio.readings(positions_m, ids, np.full(30, cell))
        # positions from a map have single precision
        assert np.allclose(gains_db, state.gains_db, rtol=0, atol=2e-3)
        assert np.allclose(sinr, radio.budget.snr(state)["downlink"], rtol=2e-3, atol=0)


def test_the_sinr_by_hand(tmp_path: Path) -> None:
    """A device in line of sight is 100 m from its site, and 200 m from a site that sends in a quarter of slots."""
    trace = tmp_path / "t.csv"
    trace.write_text("t,id,x,y\n0,u,100,0\n1000,u,100,0\n")
    # max_wait_s ends the other cell's wait for devices, as no device ever enters that cell
    two_sites = sections(f"""
        layout.sites=[[0, 0], [300, 0]]; rounds.max_wait_s=5; record.positions_s=1
        devices={{count: 1, mobility: {{name: trace, path: {trace}}}}}; radio.neighbour_load=0.25
        radio.propagation={{shadowing: spatial, shadowing_std_db: 0}}; radio.bandwidth_hz=20e6
        radio.budget={{noise_figure_db: 7, interference_margin_db: 1}}
    """)
    run = simulate(scenario(**two_sites), tmp_path / "run")

    def gain(distance_m: float) -> float:
        """Return the gain by TR 38.901, Table 7.4.1-1: UMi in line of sight before the breakpoint, here 210 m."""
        return 10 ** -(3.24 + 2.1 * np.log10(np.hypot(distance_m, 8.5)) + 2 * np.log10(3.5))

    power_w, margin = 10**1.3, 10**0.1  # 43 dBm; the margin applies to noise and interference
    noise_w = 10**-20.4 * 20e6 * 10**0.7
    expected = power_w * gain(100) / ((noise_w + 0.25 * power_w * gain(200)) * margin)
    row = pd.read_csv(run / "positions.csv").iloc[0]
    assert row["gain_db"] == pytest.approx(10 * np.log10(gain(100)), abs=0.006)  # the table has two decimals
    assert row["sinr_db"] == pytest.approx(10 * np.log10(expected), abs=0.006)


def test_writing_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    file = tmp_path / "a.yaml"
    file.write_text(
        "name: a\ndevices: {count: 1}\nsessions: {name: schedule, count: 1, rounds: 1}\n"
        "workload: {payload_bits: 1, flops_per_sample: 1}\nrecord:\n  tables: parquet\n"
    )
    with refused_at("record.tables", "a.yaml:6", "pyarrow"):
        simulate(load(file), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_reading_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulate(scenario(), tmp_path / "run")
    (run / "devices.csv").unlink()
    (run / "devices.parquet").mkdir()
    (run / "devices.parquet" / "000000.parquet").touch()
    runs = load_runs(run)  # imported before pyarrow is hidden, as pandas uses pyarrow for text
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused_at("", "devices.parquet", "pip install 'edgefl-cosim", kind=ValueError):
        _ = runs.devices


def test_both_forms_hold_the_same(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    b = {"mobility": {"name": "random_waypoint", "area_factor": 1.5}}
    devices = {"count": 4, "classes": {"a": {"share": 0.5}, "b": b}}
    record = {"positions_s": 0.5}
    plain = simulate(scenario(devices=devices, record=record), tmp_path / "csv")
    parquet = simulate(
        scenario(devices=devices, record={**record, "tables": "parquet"}), tmp_path / "parquet"
    )
    assert tables(parquet) == tables(plain, "devices", "positions")
    one, other = load_runs(plain), load_runs(parquet)
    for table in ("devices", "positions"):
        assert len(getattr(one, table)) > 0
        pd.testing.assert_frame_equal(getattr(other, table), getattr(one, table))
    assert check_run(parquet) == []


def test_a_table_of_several_files_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an open table end with a complete row and lack only the latest rows; a resumed run rewrites them."""
    pytest.importorskip("pyarrow")
    from edgefl.engine.records import DeviceRound
    from edgefl.run_directory import parquet

    monkeypatch.setattr(parquet, "ROWS", 3)
    for _ in range(2):
        table = parquet.ParquetTable(tmp_path / "devices.parquet", DeviceRound, grows=True)
        for round_ in range(1, 5):
            table.write_columns(
                {"class": ["a", "b"], "loss": [None, 0.5]},
                {"session": 1, "round": round_, "phase": "train", "device": [0, 1], "distance_m": np.ones(2)},
            )
            files = sorted(path.name for path in (tmp_path / "devices.parquet").iterdir())
            assert files == ["000000.parquet", "000001.parquet"][: round_ // 2]
        table.close()
    rows = pd.read_parquet(tmp_path / "devices.parquet")
    assert rows["round"].tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert rows["loss"].isna().tolist() == [True, False] * 4
    row = {"session": 1, "round": 1, "phase": "train", "device": [0, 1], "distance_m": 1.0}
    with refused_at("", "late"):
        table.write_columns({"late": [1.0, 1.0]}, row)
    with pytest.raises(KeyError, match="no_such"):
        table.write_columns({}, {"no_such": 1})
