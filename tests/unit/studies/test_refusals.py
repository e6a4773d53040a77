"""Test that each invalid study file is an error at its key, before a run begins."""

from pathlib import Path

import pytest

from edgefl.studies import LONGEST_LABEL, plan
from tests.refusals import refused_at

SCENARIO = """\
name: digits
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 1}
learning: {dataset: digits, model: logistic}
"""
STUDY = "name: small\nscenario: digits.yaml\nseeds: [1, 2]\n"
ONE = "variants: {a: {}}\n"

# key | other words in the error | keys of the study besides scenario, seeds and (by default) variants
REFUSED = r"""
variants.b.seed | `seeds` | variants: {a: {}, b: {seed: 5}}
grid.seed.1.seed | `seeds` | grid: {seed: [1, 2]}
grid.way.y.seed | `seeds` | grid: {way: {x: {devices.count: 5}, y: {seed: 3}}}
reference | 'c' | reference: c
grid.way | no values | grid: {way: {}}
grid.way.zip | length | grid: {way: {zip: {devices.seed: [1], devices.count: [1, 2]}}}
grid.x.zip | devices.count has 2, duration_s has 1 | grid: {x: {zip: {devices.count: [5, 6], duration_s: [1]}}}
grid.x.zip | lists | grid: {x: {zip: {devices.count: 5}}}
grid.devices.count | '5' | grid: {devices.count: [5, 5]}
grid.b.lr | 'lr' | grid: {learning.local.lr: [0.1], b.lr: [0.2]}
grid.lr.a/b | folder | grid: {lr: {a/b: {learning.local.lr: 0.1}}}
learning.local.lrr | 'lr' | grid: {lr: {low: {learning.local.lrr: 0.1}}}
learning.local.batch | 0 | grid: {learning.local.batch: [0]}
learning.local.lr | true | variants: {a: {learning.local.lr: true}}
devices.count | 1:30 | variants: {a: {devices.count: 1:30}}
question.variants | 'a' | question: {metric: energy_j, variants: [a, a], precision: 1, budget: 3}
variants.a.devices.count | the grid sets | variants: {a: {devices.count: 7}}\ngrid: {devices.count: [5, 6]}
variants.a.devices | devices.count | variants: {a: {devices: {count: 7}}}\ngrid: {devices.count: [5, 6]}
variants.a.devices.count | devices, | variants: {a: {devices.count: 7}}\ngrid: {devices: [{count: 6}]}
variants.a.duration_s | label | variants: {a: {duration_s: 9}}\ngrid: {x: {zip: {duration_s: [5], name: [b]}}}
grid.x.y.devices.count | the grid sets | grid: {devices.count: [5, 6], x: {y: {devices.count: 7}}}
choose.key | devices.count | grid: {learning.local.lr: [0.1, 0.2]}\nchoose: {key: devices.count, by: validation}
"""


def planned(folder: Path, text: str) -> None:
    (folder / "digits.yaml").write_text(SCENARIO)
    (folder / "study.yaml").write_text(STUDY + text)
    plan(folder / "study.yaml")


@pytest.mark.parametrize(
    ("place", "noun", "text"), [line.split(" | ") for line in REFUSED.strip().splitlines()]
)
def test_a_study_that_cannot_be(place: str, noun: str, text: str, tmp_path: Path) -> None:
    variants = "" if "variants: {" in text else ONE
    with refused_at(place, noun, "study.yaml:"):
        planned(tmp_path, variants + text.replace("\\n", "\n") + "\n")


def test_a_scenario_that_is_missing_is_refused_at_its_key(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY + ONE)
    with refused_at("scenario", "study.yaml:2", f"{tmp_path / 'digits.yaml'}: cannot be read"):
        plan(tmp_path / "study.yaml")
    (tmp_path / "digits.yaml").write_text("name: [")
    with refused_at("", tmp_path / "digits.yaml:1") as refusal:
        plan(tmp_path / "study.yaml")
    assert "study.yaml" not in str(refusal.value), "the line of the scenario is enough"


def test_a_study_is_no_base_of_a_study(tmp_path: Path) -> None:
    (tmp_path / "digits.yaml").write_text(STUDY.replace("digits.yaml", "base.yaml") + ONE)
    (tmp_path / "study.yaml").write_text(STUDY + ONE)
    with refused_at("scenario", "study.yaml:2", "digits.yaml is a study: name a scenario", "'base.yaml'"):
        plan(tmp_path / "study.yaml")


@pytest.mark.parametrize(
    "name", ["../up", "/absolute", "a/b", "..", "", " a", "a ", "a" * (LONGEST_LABEL + 1)]
)
def test_a_variant_cannot_leave_the_study(name: str, tmp_path: Path) -> None:
    with refused_at("", "study.yaml:4 variants.", "becomes a folder name"):
        planned(tmp_path, f"variants: {{a: {{}}, '{name}': {{}}}}\n")


@pytest.mark.parametrize("seeds", ["[true]", "[010]", "[]", "[1, 1]"])
def test_seeds_are_numbers(seeds: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY.replace("[1, 2]", seeds) + ONE)
    (tmp_path / "digits.yaml").write_text(SCENARIO)
    with refused_at("seeds"):
        plan(tmp_path / "study.yaml")
