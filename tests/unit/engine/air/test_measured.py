"""Test replayed rates: times by Z / R or an integral, handovers from the table, and energy by power x time."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgefl import simulate
from edgefl.config.yaml_source import write
from edgefl.run.controlled import Controlled, ControlledRun
from edgefl.run.plan import prepare
from edgefl.scenario import scenario
from tests.refusals import refused_at

BITS = 10_000_000
SLOT_S = 0.5e-3


def replayed(folder: Path, table: str, name: str = "rates.csv", **sections: Any) -> dict[str, Any]:
    """Return a scenario of the table's devices, which compute 5 x 128 samples of 1e6 FLOPs at 8e9 FLOP/s: 0.08 s."""
    path = folder / name
    path.write_text(table)
    devices = {line.split(",")[1] for line in table.split()[1:]} if "device" in table else {""}
    return {
        "name": "measured",
        "radio": {"measured": {"path": str(path)}},
        "devices": {"count": len(devices)},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": BITS, "flops_per_sample": 1e6},
        **sections,
    }


def parts(document: dict[str, Any], folder: Path) -> pd.DataFrame:
    return pd.read_csv(simulate(document, folder / "run") / "devices.csv")


@pytest.mark.parametrize(("down", "up"), [(1e6, 1e6), (7e6, 3e6), (123_456.7, 1e9), (2e7, 333_333.0)])
def test_a_constant_rate_moves_z_bits_in_z_over_r(tmp_path: Path, down: float, up: float) -> None:
    """A transfer takes ceil(Z / (R tau)) slots; devices that transfer at the same time do not share their rates."""
    table = f"time_s,device,downlink_bit_s,uplink_bit_s\n0,a,{down},{up}\n0,b,{2 * down},{up}\n"
    rows = parts(replayed(tmp_path, table), tmp_path)
    for row, faster in zip(rows.itertuples(), (1, 2), strict=True):
        took_s = row.downlink_end_s - row.downlink_start_s
        assert took_s == pytest.approx(-(-BITS // (down * faster * SLOT_S)) * SLOT_S, abs=1e-9)
        took_s = row.uplink_end_s - row.uplink_start_s
        assert took_s == pytest.approx(-(-BITS // (up * SLOT_S)) * SLOT_S, abs=1e-9)


def test_a_decider_expects_the_measured_rates_which_devices_do_not_share(tmp_path: Path) -> None:
    """A transfer is expected to take Z / R, although three devices may take part."""
    rows = [f"0,{name},{rate}e6,{2 * rate}e6\n" for name, rate in zip("abc", (2, 8, 40), strict=True)]
    document = replayed(tmp_path, "time_s,device,downlink_bit_s,uplink_bit_s\n" + "".join(rows))
    run = ControlledRun(scenario.load(document), Controlled())
    assert run.waiting is not None
    assert run.waiting.down_s == pytest.approx([BITS / 2e6, BITS / 8e6, BITS / 40e6])
    assert run.waiting.up_s == pytest.approx([BITS / 4e6, BITS / 16e6, BITS / 80e6])
    run.stop()


def test_rates_that_change_are_integrated(tmp_path: Path) -> None:
    """A downlink of 10 Mbit takes 1 s at 4 Mbit/s, 2 s at 0, and 2 s for 6 Mbit at the last row's 3 Mbit/s.

    From 5.08 s, an uplink of 10 Mbit takes 0.92 s at 2 Mbit/s, and 2.04 s for 8.16 Mbit at 4 Mbit/s, until 8.04 s.
    """
    table = "t,device,dl_Mbps,ul_kbps\n100,a,4,1000\n101,a,0,2000\n103,a,3,2000\n106,a,9,4000\n"
    (row,) = parts(replayed(tmp_path, table), tmp_path).itertuples()
    assert (row.downlink_start_s, row.downlink_end_s) == (0.0, pytest.approx(5.0))
    assert row.uplink_start_s == pytest.approx(5.08)
    assert row.uplink_end_s == pytest.approx(8.04)


def test_energy_is_power_times_time(tmp_path: Path) -> None:
    """Receiving takes 1 s at 0.5 W; sending takes 5 s at 23 dBm / 0.5 efficiency plus 1 W for the circuits."""
    power = {"power": "journal", "circuit_power_w": 0.5, "pa_efficiency": 0.5, "uplink_circuit_power_w": 1.0}
    table = "time_s,device,downlink_mbit_s,uplink_mbit_s\n0,a,10,2\n"
    document = replayed(tmp_path, table)
    document["devices"] |= power
    (row,) = parts(document, tmp_path).itertuples()
    assert row.energy_rx_j == pytest.approx(0.5)
    assert row.energy_tx_j == pytest.approx((10 ** (23 / 10 - 3) / 0.5 + 1.0) * 5.0)


CELLS = (
    "time_s,device,downlink_mbit_s,uplink_mbit_s,cell\n0,a,10,10,n\n0,b,10,10,s\n7,a,10,10,s\n9,b,10,10,n\n"
)


@pytest.mark.parametrize("policy", ["drop", "finish"])
def test_a_device_hands_over_when_its_cell_changes(tmp_path: Path, policy: str) -> None:
    """Rounds begin every 3 s, transfers take 1 s, and cells change at 7 s (in a round) and at 9 s (as one begins)."""
    document = replayed(
        tmp_path,
        CELLS,
        layout={"sites": [[0, 0], [500, 0]]},
        handover={"policy": policy},
        sessions={"name": "interval", "length_s": 12},
        rounds={"every_s": 3},
        duration_s=12,
    )
    run = simulate(document, tmp_path / "run")
    events, rows = pd.read_csv(run / "events.csv"), pd.read_csv(run / "devices.csv")
    moves = events[events.event == "handover"]
    ends_s = {"drop": 7.0, "finish": 8.08}[policy]
    assert moves.device.tolist() == [0, 1]
    assert moves.time_s.tolist() == pytest.approx([ends_s, 9.0])
    assert moves[["cell", "from_cell"]].to_numpy().tolist() == [[1, 0], [0, 1]]
    of_a = rows[(rows.device == 0) & (rows.downlink_start_s == 6)]
    assert of_a.outcome.tolist() == [{"drop": "left_downlink", "finish": "completed"}[policy]]
    before, after = rows[rows.downlink_start_s < 6], rows[rows.downlink_start_s > 8.5]
    assert before.groupby("device").cell.unique().tolist() == [[0], [1]]
    assert set(after[after.device == 0].cell) == {1}


def test_a_device_that_is_off_changes_its_cell_without_an_event(tmp_path: Path) -> None:
    """Device 0 is off from 6.5 to 8 s. As its cell changes at 7 s, it returns in the new cell, without a handover."""
    on = {"0": {"active": [0, 8], "inactive": [6.5, 90]}, "1": {"active": [0], "inactive": [90]}}
    (tmp_path / "on.json").write_text(
        json.dumps({id_: {**times, "finish_time": 100} for id_, times in on.items()})
    )
    document = replayed(tmp_path, CELLS, layout={"sites": [[0, 0], [500, 0]]}, duration_s=20)
    document |= {"sessions": {"name": "interval", "length_s": 20}, "rounds": {"every_s": 3}}
    document["devices"]["churn"] = {"name": "availability_trace", "path": str(tmp_path / "on.json")}
    events = pd.read_csv(simulate(document, tmp_path / "run") / "events.csv")
    assert events[events.event == "handover"].device.tolist() == [1]
    assert events[(events.event == "switched_on") & (events.time_s == 8)].cell.tolist() == [1]


def test_dates_units_columns_and_a_single_device(tmp_path: Path) -> None:
    """Dates in two time zones are replayed on one clock, and a named column has the unit of its key."""
    table = "When;DL;UL\n2026-11-26T08:00:00Z;10000;5000\n2026-11-26T09:00:02+01:00;20000;5000\n"
    document = replayed(tmp_path, table)
    columns = {"time_s": "When", "downlink_kbit_s": "DL", "uplink_kbit_s": "UL"}
    document["radio"]["measured"] |= {"columns": columns, "begin_s": 1795680001.5}
    # from 08:00:01.5Z on: 5 Mbit in 0.5 s at 10 Mbit/s, then 5 Mbit at 20 Mbit/s
    (row,) = parts(document, tmp_path).itertuples()
    assert row.downlink_end_s == pytest.approx(0.75)
    assert row.uplink_end_s - row.uplink_start_s == pytest.approx(2.0)


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {"time_s": [0.0, 1.0], "device": [7, 7], "downlink_bit_s": [1e7, 2e7], "uplink_bit_s": [5e6, 5e6]}
    )
    document = replayed(tmp_path, "")
    table.to_parquet(tmp_path / "rates.parquet")
    document["radio"]["measured"]["path"] = str(tmp_path / "rates.parquet")
    (row,) = parts(document, tmp_path).itertuples()
    assert (row.downlink_end_s, row.uplink_end_s - row.uplink_start_s) == pytest.approx((1.0, 2.0))


def test_a_run_beyond_the_table_is_noted(tmp_path: Path) -> None:
    table = "time_s,device,downlink_mbit_s,uplink_mbit_s\n0,a,10,2\n3,a,10,2\n"
    run = simulate(replayed(tmp_path, table), tmp_path / "run")
    (note,) = [one for one in json.loads((run / "run.json").read_text())["notes"] if "measured" in one]
    assert "end at 3 s" in note
    assert "last rate stays in force" in note


HEAD = "time_s,device,downlink_mbit_s,uplink_mbit_s\n"


@pytest.mark.parametrize(
    ("table", "doubted"),
    [
        (HEAD + "0,a,80,10\n1,a,0,20\n2,a,90,30\n", ""),
        (HEAD + "0,a,80,10\n900,a,70,20\n", ""),  # counters of a network, every quarter of an hour
        (HEAD.replace("mbit", "gbit") + "0,a,80,2\n", "the median downlink rate is 80,000 Mbit/s"),
        (HEAD.replace("mbit", "kbit") + "0,a,80,0.5\n", "the median uplink rate is 0.0005 Mbit/s"),
        (HEAD + "0,a,80,10\n1000,a,70,20\n2000,a,90,30\n", "typically 1,000 s apart"),
    ],
)
def test_an_unlikely_unit_is_noted(tmp_path: Path, table: str, doubted: str) -> None:
    notes = [note for note in prepare(scenario.load(replayed(tmp_path, table))).notes if "measured" in note]
    assert len(notes) == bool(doubted)
    assert not doubted or doubted in notes[0]


@pytest.mark.parametrize(
    ("table", "nouns"),
    [
        ("", (":1:", "no column")),
        (HEAD, ("no rows",)),
        ("time_s,device,downlink,uplink_mbps\n0,a,1,1\n", (":1:", "downlink rates", "'downlink'")),
        ("time_s,device,dl_mbps,downlink_kbps,ul_bps\n0,a,1,1,1\n", (":1:", "2 columns")),
        (HEAD + "0,a,1\n", (":2:", "3 cells in a table of 4 columns")),
        (HEAD + "0,a,fast,1\n", (":2:", "downlink_mbit_s is 'fast'", "bit/s")),
        (HEAD + '0,a,"1,5",1\n', (":2:", "downlink_mbit_s is '1,5'", "write a point: 1.5")),
        (HEAD + "0,a,1,-1\n", (":2:", "uplink_mbit_s is '-1'")),
        (HEAD + "0,a,1,nan\n", (":2:", "uplink_mbit_s is 'nan'")),
        (HEAD + "0,a,1,1e9\n", (":2:", "uplink_mbit_s is '1e9'")),
        (HEAD + "0,,1,1\n", (":2:", "device is ''")),
        (HEAD + "noon,a,1,1\n", (":2:", "time_s is 'noon'", "seconds")),
        (HEAD + "1764144000000,a,1,1\n", (":2:", "time_s is '1764144000000'", "seconds")),
        (HEAD + "0,a,1,1\n5,a,1,1\n5,a,1,1\n", (":4:", "line 3", "sort")),
        (HEAD + "0,a,1,1\n5,a,0,1\n", (":3:", "downlink_mbit_s is 0 in the last row of device 'a'")),
    ],
)
def test_a_wrong_table_names_the_line(tmp_path: Path, table: str, nouns: tuple[str, ...]) -> None:
    document = replayed(tmp_path, table)
    document["devices"]["count"] = 1
    with refused_at("radio.measured.path", "rates.csv", *nouns):
        prepare(scenario.load(document))


def test_numbers_that_do_not_fit(tmp_path: Path) -> None:
    document = replayed(tmp_path, CELLS, layout={"sites": [[0, 0], [500, 0], [900, 0]]})
    with refused_at("layout.sites", "cells is 3", "has 2", "with 2 places"):
        prepare(scenario.load(document))
    del document["layout"]  # an error must not be placed at a section that the scenario lacks
    with refused_at(
        "radio.measured.path", "cells is 1", "has 2", "layout.sites: [[x, y], ...] with 2 places"
    ):
        prepare(scenario.load(document))
    document = replayed(tmp_path, CELLS, layout={"sites": [[0, 0], [500, 0]]})
    document["devices"]["count"] = 3
    with refused_at("devices.count", "3 devices", "has 2"):
        prepare(scenario.load(document))
    (tmp_path / "rates.csv").unlink()
    with refused_at("radio.measured.path", "rates.csv"):
        prepare(scenario.load(document))


@pytest.mark.parametrize(
    "key",
    [
        "radio.scheduler=round_robin",
        "radio.sharing=dynamic",
        "radio.tdd.pattern=DDDSU",
        "radio.neighbour_load=0.3",
        "radio.interference=slot",
        "radio.path_loss=uma",
        "radio.bandwidth_hz=2.0e+7",
        "radio.downlink=broadcast",
        "radio.link.rates=cqi",
        "radio.propagation.shadowing=spatial",
        "radio.budget.noise_figure_db=3",
        "radio.monitoring.t310_s=1",
        "radio.background=load",
        "handover.time_to_trigger_s=1",
        "devices.indoor_share=0.5",
        "devices.max_bandwidth_hz=2.0e+7",
        "cell.ut_height_m=3",
    ],
)
def test_what_would_compute_rates_is_refused(tmp_path: Path, key: str) -> None:
    table = "time_s,device,downlink_mbit_s,uplink_mbit_s\n0,a,10,2\n"
    (tmp_path / "one.yaml").write_text(write(replayed(tmp_path, table)))
    with refused_at("", key.partition("=")[0], "radio.measured", "leave it out"):
        scenario.load(tmp_path / "one.yaml", overrides=[key])


def test_the_written_scenario_is_the_same_again(tmp_path: Path) -> None:
    one = scenario.load(replayed(tmp_path, CELLS, layout={"sites": [[0, 0], [500, 0]]}))
    assert scenario.dump(scenario.load(scenario.written(one))) == scenario.dump(one)
