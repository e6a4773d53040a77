"""Test phones from a file: the keys that a row sets, the assignment of rows to devices, and refused files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.federation.device import Processors
from edgefl.engine.settings import DeviceSettings
from edgefl.rng import Streams
from edgefl.run.plan import prepare
from edgefl.scenario.scenario import load
from edgefl.scenario.world import World
from tests.refusals import refused_at

SIGMAS = 4.5
PHONES = """\
name,clock_ghz,flops_per_cycle,transmit_power_dbm,battery_wh
small,1.8,4,23,10.5
"large, new",2.8,16,26,
"""
# in FedScale's format: ms per inference, and kbit/s
CAPACITY = {
    "432802": {"computation": 162.0, "communication": 5648.1},
    "7": {"computation": 44.0, "communication": 12_000.0},
}


def written(folder: Path, text: str, name: str = "phones.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def fleet(path: Path, count: int, seed: int = 1, *, by: str = "ids", **file: Any) -> Fleet:
    devices = {"count": count, "classes_by": by, "file": {"path": path, **file}}
    return Fleet.drawn(DeviceSettings.model_validate(devices), count, Streams(seed))


# ---- keys that a row sets


def test_a_row_sets_the_keys_that_its_columns_name(tmp_path: Path) -> None:
    """Units are converted (2.8 GHz to 2.8e9 Hz, 10.5 Wh to 37,800 J); empty cells keep the value in `devices`."""
    both = fleet(written(tmp_path, PHONES), 2)
    small, large = both.device(0), both.device(1)
    assert (small.clock_hz, small.flops_per_cycle, small.transmit_power_dbm) == (1.8e9, 4, 23)
    assert small.battery_j == pytest.approx(37_800, rel=1e-12)
    assert (large.clock_hz, large.transmit_power_dbm, large.battery_j) == (2.8e9, 26, None)
    assert small.idle_power_w == large.idle_power_w == DeviceSettings(count=1).idle_power_w
    assert both.notes == ()
    # 1e9 FLOPs at 1.8e9 x 4 and 2.8e9 x 16 FLOPs per second
    processors = Processors(both, 1e9)
    assert processors.cost(0, 1)[0] == pytest.approx(1 / 7.2, rel=1e-12)
    assert processors.cost(1, 1)[0] == pytest.approx(1 / 44.8, rel=1e-12)


def test_fedscales_capacities_give_its_own_computing_times(tmp_path: Path) -> None:
    """A sample of 3 F FLOPs (forward and backward) takes 3 x computation / 1000 s, as in FedScale's client.

    Source: get_completion_time of fedscale/cloud/internal/client_metadata.py.
    """
    flops = 0.6e9
    path = written(tmp_path, json.dumps(CAPACITY), "capacity.json")
    clients = fleet(path, 2, columns={"latency_ms": "computation"}, latency_flops=flops)
    for device, client in enumerate(CAPACITY.values()):
        seconds, _ = Processors(clients, 3 * flops).cost(device, 20)
        assert seconds == pytest.approx(20 * 3 * client["computation"] / 1000, rel=1e-12)
    assert len(clients.notes) == 1
    assert "communication" in clients.notes[0], "rates come from the radio"


def test_a_latency_holds_at_the_clock_of_its_row(tmp_path: Path) -> None:
    """1e9 FLOPs in 50 ms at 2 GHz are 10 FLOPs per cycle; with half the clock they take 100 ms."""
    path = written(tmp_path, "clock_ghz,latency_ms\n2,50\n")
    one = fleet(path, 1, latency_flops=1e9)
    assert one.device(0).flops_per_cycle == pytest.approx(10, rel=1e-12)
    assert Processors(one, 1e9).cost(0, 1, 1e9)[0] == pytest.approx(0.1, rel=1e-12)


def test_scores_are_relative_to_their_mean(tmp_path: Path) -> None:
    """Scores 900 and 300 have mean 600, so they scale the 8 FLOPs per cycle of `devices` by 1.5 and 0.5."""
    text = "- {Model: A, 'AI Score': 900}\n- {Model: B, 'AI Score': 300}\n- {Model: C}\n"
    drawn = fleet(written(tmp_path, text, "ranking.yaml"), 3, columns={"score": "AI Score"})
    assert [drawn.device(number).flops_per_cycle for number in range(3)] == [12, 4, 8]


def test_a_score_is_a_speed_whatever_the_clock_of_its_row(tmp_path: Path) -> None:
    """Scores 900, 300 and 600 have mean 600, so they scale 8 GFLOP/s by 1.5, 0.5 and 1."""
    path = written(tmp_path, "clock_ghz,score\n3,900\n1.5,300\n,600\n")
    phones = fleet(path, 3)
    times_s = [Processors(phones, 8e9).cost(device, 1)[0] for device in range(3)]
    assert times_s == pytest.approx([1 / 1.5, 2, 1], rel=1e-12)
    assert Processors(phones, 8e9).cost(0, 1, 1e9)[0] == pytest.approx(3 / 1.5, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "clock_hz;battery_j\n1e9;5\n2e9;\n"),
        ("b.csv", "\ufeffbattery_j,clock_mhz\r\n5,1000\r\n\r\n,2000\r\n"),
        ("c.json", '[{"clock_hz": 1e9, "battery_j": 5}, {"clock_hz": 2e9, "battery_j": null}]'),
        ("d.json", '{"x": {"clock_hz": 1e9, "battery_kj": 0.005}, "y": {"clock_ghz_": 2, "clock_hz": 2e9}}'),
        ("e.yaml", "one: {clock_hz: 1e9, battery_j: 5}\ntwo: {clock_hz: 2e9}\n"),
    ],
)
def test_the_same_table_in_many_forms(tmp_path: Path, name: str, text: str) -> None:
    both = fleet(written(tmp_path, text, name), 2)
    assert [(one.clock_hz, one.battery_j) for one in both.kinds] == [(1e9, 5), (2e9, None)]
    assert len(both.notes) == (name == "d.json")  # a note on an unknown column proposes the nearest key
    assert all("clock_ghz?" in note for note in both.notes)


# ---- assignment of rows to devices


def test_rows_are_drawn_evenly_and_independently_of_further_devices(tmp_path: Path) -> None:
    path = written(tmp_path, "clock_hz\n1e9\n2e9\n3e9\n")
    clocks = fleet(path, 600, by="seed").column(lambda kind: kind.clock_hz)
    counts = np.bincount((clocks / 1e9).astype(int))[1:]
    assert np.abs(counts - 200).max() < SIGMAS * np.sqrt(600 * 2 / 9)  # the binomial standard deviation
    more = fleet(path, 700, by="seed").column(lambda kind: kind.clock_hz)
    assert np.array_equal(more[:600], clocks)
    assert not np.array_equal(fleet(path, 600, 2, by="seed").column(lambda kind: kind.clock_hz), clocks)


def mixed(tmp_path: Path, **changes: Any) -> World:
    path = written(tmp_path, "clock_hz\n1e9\n2e9\n3e9\n")
    classes = {"phone": {"count": 3, "file": {"path": str(path)}}, "sensor": {"clock_hz": 5e8}}
    scenario = load(
        {
            "name": "mixed",
            "devices": {"count": 5, "classes_by": "ids", "classes": classes},
            "sessions": {"name": "schedule", "count": 1, "rounds": 1},
            "workload": {"payload_bits": 1000, "flops_per_sample": 1e6},
            **changes,
        }
    )
    return World(scenario, Streams(scenario.seed))


def test_a_class_may_come_from_a_file(tmp_path: Path) -> None:
    both = mixed(tmp_path).fleet
    assert both.column(lambda kind: kind.clock_hz).tolist() == [1e9, 2e9, 3e9, 5e8, 5e8]
    assert both.class_names() == ["phone"] * 3 + ["sensor"] * 2


def test_all_rows_of_a_class_belong_to_its_federation(tmp_path: Path) -> None:
    federations = {"a": {"classes": ["sensor"]}, "b": {"classes": ["phone"]}}
    assert mixed(tmp_path, federations=federations).federation_of.tolist() == [1, 1, 1, 0, 0]


def test_a_class_without_the_file_of_all_devices(tmp_path: Path) -> None:
    path = written(tmp_path, "clock_hz\n2e9\n")
    classes = {"phone": {"count": 1}, "sensor": {"file": None}}
    devices = {"count": 2, "classes_by": "ids", "file": {"path": path}, "classes": classes}
    drawn = Fleet.drawn(DeviceSettings.model_validate(devices), 2, Streams(1))
    assert drawn.column(lambda kind: kind.clock_hz).tolist() == [2e9, 1e9]


# ---- refused files


@pytest.mark.parametrize(
    ("text", "file", "nouns"),
    [
        ("clock_hz\n1e9\n2.4\n", {}, ("phones.csv:3", "clock_hz", ">= 1000000", "2.4 GHz is 2.4e+9")),
        ("clock_ghz\n1.8\n2400\n", {}, ("phones.csv:3", "clock_ghz", "times 1e+09", "<=")),
        ("name;battery_j\nx;20,5\n", {}, ("phones.csv:2", "'20,5'", "write a point: 20.5")),
        ("name,battery_j\nx,full\n", {}, ("phones.csv:2", "'battery_j'", "'full'", "12.5")),
        ("battery_j\n15 Wh\n", {}, ("phones.csv:2", "15 Wh", "write 54000")),
        ("pa_efficiency\n40\n", {}, ("phones.csv:2", "write 0.4 for 40 %")),
        ("clock_hz\n1e9,2\n", {}, ("phones.csv:2", "2 cells", "1 columns")),
        ("clock_hz,clock_hz\n1,2\n", {}, ("phones.csv:1", "twice")),
        ("clock_hz,clock_ghz\n1e9,1\n", {}, ("'clock_hz' and 'clock_ghz'", "remove one")),
        ("soc,price\nx,2\n", {}, ("no column sets a key", "soc, price")),
        ("clock_hz\n", {}, ("no entries",)),
        ("speed\n7\n", {"columns": {"scor": "speed"}}, ("columns", "'scor'", "did you mean 'score'")),
        ("speed\n7\n", {"columns": {"score": "spead"}}, ("columns", "'spead'", "it has speed")),
        ("latency_ms\n7\n", {}, ("latency_flops", "FLOPs")),
        ("clock_hz\n1e9\n", {"latency_flops": 1e9}, ("latency_flops", "no column latency_ms")),
        ("latency_ms,score\n7,8\n", {"latency_flops": 1e9}, ("latency_s and score", "remove one")),
        ("score\n5\n-1\n", {}, ("phones.csv:3", "score is -1", "above 0")),
        ("score\n1e-9\n1e9\n", {}, ("phones.csv:2", "flops_per_cycle", ">= 0.001")),
        ("clock_hz\nnan\n", {}, ("phones.csv:2", "'nan'")),
    ],
)
def test_a_wrong_table_is_refused_with_row_and_column(
    tmp_path: Path, text: str, file: dict[str, Any], nouns: Sequence[str]
) -> None:
    with refused_at("devices.file", *nouns):
        fleet(written(tmp_path, text), 1 if text.count("\n") < 3 else 2, **file)


@pytest.mark.parametrize(
    ("name", "text", "nouns"),
    [
        ("a.json", '{"x": {"clock_hz": 1e9}, "x": {}}', ("'x' occurs twice",)),
        ("b.json", '{"x": {"clock_hz": NaN}}', ("NaN",)),
        ("c.json", '[{"clock_hz": 1e9}, 7]', ("entry '2'", "is 7")),
        ("d.json", "\n{", ("d.json:2", "not JSON")),
        ("e.yaml", "x:\n  clock_hz: 1e9\ny: 7\n", ("e.yaml:3", "is 7")),
        ("f.yaml", "x: [\n", ("f.yaml:",)),
        ("g.json", '"x"', ("'x'", "list of objects")),
        ("h.txt", "clock_hz\n", ("unknown file type", ".csv")),
        ("i.json", '{"x": {"clock_hz": true}}', ("entry 'x'", "true")),
    ],
)
def test_a_wrong_document_is_refused(tmp_path: Path, name: str, text: str, nouns: Sequence[str]) -> None:
    with refused_at("devices.file", name, *nouns):
        fleet(written(tmp_path, text, name), 1)


def test_more_devices_than_rows_need_a_draw(tmp_path: Path) -> None:
    with refused_at("devices.file", "2 rows for 3 devices", "classes_by: seed"):
        fleet(written(tmp_path, PHONES), 3)


def test_a_column_that_the_power_model_ignores_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "circuit_power_w\n0.3\n")
    devices = {"count": 1, "power": "phone_5g", "file": {"path": path}}
    with refused_at("devices.file", "circuit_power_w", "power: journal"):
        Fleet.drawn(DeviceSettings.model_validate(devices), 1, Streams(1))


def test_validate_names_the_line_and_what_is_not_used(tmp_path: Path) -> None:
    written(tmp_path, "clock_hz,chipset\n1e9,x\n")
    scenario = written(
        tmp_path,
        "name: a\ndevices:\n  count: 2\n  file: {path: phones.csv}\n"
        "sessions: {name: schedule, count: 1, rounds: 1}\n"
        "workload: {payload_bits: 1000, flops_per_sample: 1.0e+6}\n",
        "a.yaml",
    )
    assert [note for note in prepare(load(scenario)).notes if "'chipset'" in note]
    written(tmp_path, "clock_hz,chipset\n1,x\n")
    with refused_at("", "a.yaml:4 devices.file", "phones.csv:2"):
        prepare(load(scenario))
