"""What a study file may say."""

import re
from pathlib import Path

import pytest

from edgefl.analysis.page import units
from edgefl.errors import EdgeflError
from edgefl.scenario.scenario import load
from edgefl.studies import LONGEST_LABEL, plan, point_labels

SCENARIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""
STUDY = "name: small\nscenario: radio.yaml\nseeds: [1, 2]\nreference: a\n"


def planned(folder: Path, text: str) -> list[str]:
    (folder / "radio.yaml").write_text(SCENARIO)
    (folder / "study.yaml").write_text(STUDY + text)
    return [str(run.path) for run in plan(folder / "study.yaml").runs]


def test_a_study_is_no_scenario_and_a_scenario_no_study(tmp_path: Path) -> None:
    planned(tmp_path, "variants: {a: {}}\n")
    with pytest.raises(EdgeflError, match=r"study.yaml: is a study; `edgefl study .*study.yaml` runs it"):
        load(tmp_path / "study.yaml")
    with pytest.raises(EdgeflError, match=r"radio.yaml: is a scenario, no study; `edgefl run .*radio.yaml`"):
        plan(tmp_path / "radio.yaml")


def test_every_variant_setting_and_seed_has_a_folder_of_its_own(tmp_path: Path) -> None:
    text = "variants: {a: {}, 5 devices: {devices.count: 5}}\ngrid: {radio.bandwidth_hz: [1.0e+6, 2.0e+6]}\n"
    paths = planned(tmp_path, text)
    assert len(set(paths)) == len(paths) == 2 * 2 * 2
    assert paths[0] == "bandwidth-1 MHz/a/seed-1"


def test_labels_have_the_units_that_tables_have() -> None:
    """Two packages that must not import one another write the same values in the same way."""
    for key, values in {
        "radio.bandwidth_hz": [5e6, 10e6, 20e6],
        "radio.slot_s": [0.25e-3, 1e-3],
        "rounds.every_s": [600, 3600],
        "devices.battery_j": [50.0, 1500.0],
        "devices.transmit_power_dbm": [-10, 23],
        "learning.lr": [0.1, 1e-5],
        "layout.isd_m": [200, 1200],
    }.items():
        assert point_labels.written(key, values) == units.written(key, values)
        assert point_labels.bare(key) == units.bare(key)
    assert point_labels.written("x_s", [{"name": "gauss", "a": 1}, True, "20 s"]) == [
        "gauss a 1",
        "True",
        "20 s",
    ]


@pytest.mark.parametrize(
    "name", ["../up", "/absolute", "a/b", "..", "", " a", "a ", "a" * (LONGEST_LABEL + 1)]
)
def test_a_variant_cannot_leave_the_study(name: str, tmp_path: Path) -> None:
    with pytest.raises(EdgeflError, match=r"study.yaml:5 variants\..*: '.*' names a folder: use at most 100"):
        planned(tmp_path, f"variants: {{a: {{}}, '{name}': {{}}}}\n")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("variants: {a: {}, b: {seed: 5}}\n", "variants.b"),
        ("variants: {a: {}}\ngrid: {seed: [1, 2]}\n", "grid.seed.1"),
        ("variants: {a: {}}\ngrid: {way: {x: {devices.count: 5}, y: {seed: 3}}}\n", "grid.way.y"),
        ("variants:\n  a: {}\n  b: {seed: 5}\n", "study.yaml:7 variants.b"),
    ],
)
def test_a_seed_among_the_overrides_is_refused(text: str, place: str, tmp_path: Path) -> None:
    """It would be replaced by each of the study's seeds, and the same run be made twice under two names."""
    with pytest.raises(EdgeflError, match=f"{place}.seed: a study has its seeds in `seeds`"):
        planned(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("variants: {b: {}}\n", "study.yaml:4 reference: 'a' is none of the variants"),
        ("variants: {a: {}}\ngrid:\n  way: {}\n", "study.yaml:7 grid.way: has no point"),
        (
            "variants: {a: {}}\ngrid:\n  way: {zip: {seed: [1], devices.count: [1, 2]}}\n",
            "study.yaml:7 grid.way.zip: the lists need the same length",
        ),
        (
            "variants: {a: {}}\nquestion:\n  metric: energy_j\n  variants: [a, a]\n  precision: 1\n  budget: 3\n",
            "study.yaml:8 question.variants: 'a' twice; name two",
        ),
    ],
)
def test_a_fault_is_told_with_its_own_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(EdgeflError, match=re.escape(message)):
        planned(tmp_path, text)
