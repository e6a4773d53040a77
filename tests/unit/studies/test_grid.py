"""Grids, zipped lists, labels; a study in which nothing is proposed."""

from pathlib import Path

from edgefl.studies import StudyPlan, plan

SCENARIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""
STUDY = "name: small\nscenario: radio.yaml\nseeds: [2, 1]\nvariants: {b: {}, a: {}}\n"


def planned(folder: Path, grid: str) -> StudyPlan:
    (folder / "radio.yaml").write_text(SCENARIO)
    (folder / "study.yaml").write_text(f"{STUDY}grid: {grid}\n")
    return plan(folder / "study.yaml")


def test_zipped_keys_change_together(tmp_path: Path) -> None:
    found = planned(tmp_path, "{size: {zip: {devices.count: [5, 50], radio.bandwidth_hz: [1.0e+6, 1.0e+7]}}}")
    assert [(run.scenario.devices.count, run.scenario.radio.bandwidth_hz) for run in found.runs[:4]] == [
        *[(5, 1e6)] * 2,
        *[(50, 1e7)] * 2,
    ]
    assert found.runs[0].path == Path("size-5 1 MHz", "b", "seed-2")


def test_every_key_can_be_swept(tmp_path: Path) -> None:
    """Top-level keys, negative values, components with parameters."""
    grid = (
        "{duration_s: [1.0, 2.0], name: [x, y], devices.transmit_power_dbm: [-10.0, 10.0],"
        " rounds.selector: [all, {name: uniform, count: 2}]}"
    )
    found = planned(tmp_path, grid)
    assert len({run.path for run in found.runs}) == 2 * 2 * 2**4
    assert {run.scenario.duration_s for run in found.runs} == {1.0, 2.0}
    assert {run.scenario.name for run in found.runs} == {"x", "y"}
    assert {run.member.setting["selector"] for run in found.runs} == {"all", "uniform count 2"}
    assert {run.member.setting["transmit_power"] for run in found.runs} == {"-10 dBm", "10 dBm"}


def test_order_is_the_files(tmp_path: Path) -> None:
    found = planned(tmp_path, "{devices.count: [9, 8]}")
    assert [run.path.as_posix() for run in found.runs[:4]] == [
        f"count-{count}/{variant}/seed-2" for count in (9, 8) for variant in "ba"
    ]
    assert found.runs[0].member.variants == ("b", "a")
    assert found.runs[0].member.reference is None
