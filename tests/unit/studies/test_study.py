"""Test the contents of a study file."""

from pathlib import Path

from edgefl.scenario.scenario import load
from edgefl.studies import plan
from edgefl.studies.study_file import _label_texts
from tests.refusals import refused_at
from tests.unit.studies.asked import written

STUDY = "name: small\nscenario: radio.yaml\nseeds: [1, 2]\nreference: a\n"


def planned(folder: Path, text: str) -> list[str]:
    return [str(run.path) for run in plan(written(folder, STUDY + text)).runs]


def test_a_study_is_no_scenario_and_a_scenario_no_study(tmp_path: Path) -> None:
    planned(tmp_path, "variants: {a: {}}\n")
    with refused_at("", "study.yaml", "edgefl study"):
        load(tmp_path / "study.yaml")
    with refused_at("", "radio.yaml", "edgefl run"):
        plan(tmp_path / "radio.yaml")


def test_a_study_may_name_a_shipped_scenario(tmp_path: Path) -> None:
    """A file beside the study comes first; a misspelled name is an error at the key."""
    text = "name: small\nscenario: {}\nseeds: [1]\nreference: a\nvariants: {{a: {{}}}}\n"
    (run,) = plan(written(tmp_path, text.format("quickstart"))).runs
    assert run.scenario.name == "quickstart"
    with refused_at("scenario", "study.yaml:2", "did you mean 'quickstart'?"):
        plan(written(tmp_path, text.format("quikstart")))


def test_every_variant_setting_and_seed_has_a_folder_of_its_own(tmp_path: Path) -> None:
    text = "variants: {a: {}, 5 devices: {devices.count: 5}}\ngrid: {radio.bandwidth_hz: [1.0e+6, 2.0e+6]}\n"
    paths = planned(tmp_path, text)
    assert len(set(paths)) == len(paths) == 2 * 2 * 2
    assert paths[0] == "bandwidth-1-MHz/a/seed-1"


def test_labels_have_the_units_that_tables_have() -> None:
    assert _label_texts("radio.bandwidth_hz", [5e6, 10e6]) == ["5 MHz", "10 MHz"]
    assert _label_texts("x_s", [{"name": "gauss", "a": 1}, True, "20 s"]) == ["gauss a 1", "True", "20 s"]
