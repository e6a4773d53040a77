"""Test that JSON Schemas are complete and up to date, accept the shipped files, and refuse wrong files."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from edgefl.config import registry
from edgefl.config.component import meaning
from edgefl.config.units import unit_of
from edgefl.config.yaml_nodes import read
from edgefl.scenario.scenario import Scenario
from edgefl.studies.schema import DIALECT, schema
from tests.refusals import refused_at

SCENARIOS = Path(__file__).parents[3] / "scenarios"
FILES = [*sorted(SCENARIOS.glob("*.yaml")), *sorted(SCENARIOS.glob("studies/*.yaml"))]
WRONG = {
    "unknown key": ("  count: 40 ", "  number: 40 "),
    "unknown component": ("logistic", "logistik"),
    "parameter of another component": ("mu: 1.0", "beta: 1.0"),
    "text for a number": ("lr: 0.003 ", "lr: fast "),
    "beyond its range": ("seed: 100 ", "seed: -1 "),
    "component without its parameters": ("sessions:\n", "sessions: schedule\nx:\n"),
    "no name": ("name: quickstart\n", ""),
    "a list for a mapping": ("  algorithm: {name: fedprox, mu: 1.0}", "  algorithm: [fedprox]"),
}


@cache
def checker(of: str) -> Any:
    jsonschema = pytest.importorskip("jsonschema", reason="in the dev extra")
    made = schema(of)
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


def data(text: str) -> Any:
    return read(text).data()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_shipped_file_keeps_its_schema(file: Path) -> None:
    of = "study" if file.parent.name == "studies" else "scenario"
    assert [error.message for error in checker(of).iter_errors(data(file.read_text()))] == []


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_wrong_scenarios_are_refused(change: tuple[str, str]) -> None:
    text = (SCENARIOS / "quickstart.yaml").read_text()
    assert text.count(change[0]) == 1
    assert list(checker("scenario").iter_errors(data(text.replace(*change))))


WRONG_VARIANTS = (
    "radio.bandwith_hz: 1.0e+8",
    "radio.bandwidth_hz: wide",
    "learning.algorithm: fedprix",
    "seed: 3",
)


@pytest.mark.parametrize("variant", WRONG_VARIANTS)
def test_wrong_overrides_of_a_study_are_refused(variant: str) -> None:
    text = "name: s\nscenario: a.yaml\nseeds: [1]\nreference: a\nvariants: {a: %s}\n"
    assert list(checker("study").iter_errors(data(text % f"{{{variant}}}")))
    right = text % "{radio.bandwidth_hz: 1.0e+8, learning.algorithm.mu: 2, learning: null}"
    assert not list(checker("study").iter_errors(data(right)))


@pytest.mark.parametrize("of", ["scenario", "study"])
def test_the_shipped_schema_is_up_to_date(of: str) -> None:
    shipped = json.loads((SCENARIOS / f"{of}.schema.json").read_text())
    assert shipped == schema(of), "run `make schema`"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_shipped_file_names_its_schema_for_both_families_of_editors(file: Path) -> None:
    first, second = file.read_text().splitlines()[:2]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert second == f"# $schema: {named}"
    of = "study" if file.parent.name == "studies" else "scenario"
    assert (file.parent / named).resolve() == SCENARIOS / f"{of}.schema.json"


def test_every_component_is_an_option_with_its_name_and_its_parameters() -> None:
    made = Scenario.model_json_schema()
    assert schema("scenario")["$schema"] == DIALECT
    for kind in registry.KINDS:
        short, *options = made["$defs"][kind]["oneOf"]
        named = [each["properties"]["name"].get("const") for each in options if "properties" in each]
        assert [name for name in named if name] == registry.names(kind)
        assert set(short["enum"]) <= set(named)
    fedprox = next(each for each in made["$defs"]["algorithms"]["oneOf"] if each.get("title") == "fedprox")
    assert fedprox["properties"]["mu"] == {
        "default": 1.0, "description": "weight of the proximal term", "maximum": 1e9, "minimum": 0, "type": "number",
    }  # fmt: skip


def test_keys_have_range_default_meaning_and_unit() -> None:
    radio = Scenario.model_json_schema()["$defs"]["RadioSettings"]["properties"]
    band = radio["bandwidth_hz"]
    assert (band["minimum"], band["maximum"], band["default"]) == (1e5, 4e9, 100e6)
    assert band["description"].startswith("system bandwidth W; ")
    assert band["description"].endswith(" [Hz]")


def test_a_component_that_needs_parameters_has_no_short_form() -> None:
    assert "trace" not in Scenario.model_json_schema()["$defs"]["mobility"]["oneOf"][0]["enum"]


def test_there_is_no_other_schema() -> None:
    with refused_at("", "'scenari'", "'scenario'"):
        schema("scenari")


@pytest.mark.parametrize(
    ("key", "unit"),
    [("speed_m_s", "m/s"), ("radius_m", "m"), ("at_hours", "h"), ("alpha", None), ("rooms", None)],
)
def test_the_unit_is_the_end_of_the_name(key: str, unit: str | None) -> None:
    assert unit_of(key) == unit


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_component_has_a_meaning_in_a_line(kind: str) -> None:
    for name in registry.names(kind):
        assert 10 < len(meaning(registry.get(kind, name))) < 160, name
