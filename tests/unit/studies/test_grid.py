"""Grids, zipped lists, labels; a study in which nothing is proposed."""

from pathlib import Path

import pytest

from edgefl.errors import EdgeflError
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


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("{x: {zip: {devices.count: [5, 6], duration_s: [1]}}}", "devices.count has 2, duration_s has 1"),
        ("{x: {zip: {devices.count: 5}}}", "give dotted keys with lists"),
        ("{devices.count: [5, 5]}", "two points are called '5'"),
    ],
)
def test_what_does_not_fit_together_is_refused(grid: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(EdgeflError, match=message):
        planned(tmp_path, grid)


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
