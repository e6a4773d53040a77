"""Test the Python interface: dicts and files, variations, results with tables, and their display."""

import copy
import inspect
import json
import pickle
import pydoc
from pathlib import Path
from typing import Any

import pytest

import edgefl
from edgefl.engine.selectors.uniform import Uniform
from edgefl.run.results import Results
from edgefl.scenario.scenario import dump
from tests.refusals import refused_at
from tests.tables import sections

pytestmark = pytest.mark.usefixtures("unrendered")

SMALL: dict[str, Any] = sections("""
    name=small; devices={count: 3}; radio={preset: journal}; sessions={name: schedule, count: 2, rounds: 2}
    workload={payload_bits: 1000000, flops_per_sample: 1000}
""")


FUNCTIONS = [name for name in edgefl.__all__ if inspect.isfunction(getattr(edgefl, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_says_what_it_takes_gives_and_refuses(name: str) -> None:
    function = getattr(edgefl, name)
    said = inspect.getdoc(function) or ""
    _, _, about = said.partition("Args:\n")
    for parameter in inspect.signature(function).parameters:
        assert f"    {parameter}" in about, f"{name}: {parameter} is not explained"
    assert "Returns:\n" in said
    assert "Raises:\n    EdgeflError: " in said


def test_every_public_class_says_more_than_its_name() -> None:
    for name in set(edgefl.__all__) - {*FUNCTIONS, "__version__"}:
        assert len(inspect.getdoc(getattr(edgefl, name)) or "") > 150, name


@pytest.mark.parametrize(
    ("call", "place", "noun"),
    [
        (lambda: edgefl.simulate(7), "", "a dict of the same keys, or a Scenario; got 7"),
        (lambda: edgefl.simulate({"name": "a"}), "devices", ""),
        (
            lambda: edgefl.simulate({"name": "a", "scenario": "b", "variants": {}}),
            "",
            "edgefl.study(...) runs it",
        ),
        (lambda: edgefl.record({"name": "a"}, "runs/never"), "devices", ""),
        (lambda: edgefl.load_scenario(None), "", "a dict of the same keys, or a Scenario; got None"),
        (lambda: edgefl.Results("nowhere").info, "nowhere", ""),
    ],
)
def test_what_is_no_scenario_and_no_run_is_one_message(call: Any, place: str, noun: str) -> None:
    with refused_at(place, noun):
        call()


def test_a_run_takes_a_dict_or_a_file_as_well_as_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(dump(edgefl.load_scenario(SMALL)))
    of_dict = edgefl.simulate(SMALL, tmp_path / "dict")
    of_file = edgefl.simulate(file, tmp_path / "file")
    assert of_dict.rounds.equals(edgefl.simulate(edgefl.load_scenario(SMALL), tmp_path / "scenario").rounds)
    assert of_dict.rounds.equals(of_file.rounds)


def same(one: edgefl.Scenario, other: edgefl.Scenario) -> bool:
    return dump(one) == dump(other)


def test_a_dict_is_a_scenario(tmp_path: Path) -> None:
    given = copy.deepcopy(SMALL)
    scenario = edgefl.load_scenario(given, ["radio.bandwidth_hz=20e6"], seed=7)
    assert (scenario.seed, scenario.radio.bandwidth_hz) == (7, 20e6)
    assert given == SMALL, "the caller's dict has not changed"
    (tmp_path / "small.yaml").write_text(dump(edgefl.load_scenario(SMALL)))
    assert same(edgefl.load_scenario(tmp_path / "small.yaml"), edgefl.load_scenario(SMALL))


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ("lr", "lr", 1),
        ("rounds.selectr", "rounds", {"selectr": "all"}),
        ("duration_s", "duration_s", float("nan")),
    ],
)
def test_what_is_wrong_in_a_dict_is_said_as_in_a_file(place: str, key: str, value: Any) -> None:
    with refused_at(place, "scenario: ") as refusal:
        edgefl.load_scenario({**SMALL, key: value})
    assert "pydantic" not in str(refusal.value)


def test_with_varies_and_checks() -> None:
    scenario = edgefl.load_scenario(SMALL)
    selector = {"rounds.selector.count": 2, "rounds.selector.name": "uniform"}
    other = scenario.with_(selector, seed=3, radio__slot_s=1e-3)
    assert (other.seed, other.radio.slot_s, other.rounds.selector) == (3, 1e-3, Uniform(count=2))
    assert same(scenario, edgefl.load_scenario(SMALL)), "the scenario has not changed"
    assert same(other.with_(rounds__selector="all", seed=100, radio__slot_s=0.5e-3), scenario)
    assert scenario.with_(rounds__selector=Uniform(count=2)).rounds.selector == Uniform(count=2)
    with refused_at("radio.slots_s", "slot_s"):
        scenario.with_(radio__slots_s=1)
    with refused_at("rounds.selector.count", 9):
        scenario.with_(rounds__selector={"name": "uniform", "count": 9})


def test_a_scenario_that_was_made_by_hand_can_be_varied() -> None:
    scenario = edgefl.Scenario.model_validate(SMALL)
    assert scenario.with_(seed=5).seed == 5


def test_results_are_a_path_with_tables(tmp_path: Path) -> None:
    results = edgefl.simulate(edgefl.load_scenario(SMALL), out=tmp_path / "run")
    assert isinstance(results, Results)
    assert results == tmp_path / "run"
    assert type(results / "rounds.csv") is type(tmp_path)
    assert list(results.rounds["round"]) == [1, 2, 1, 2]
    assert len(results.devices) == 12
    assert len(results.sessions) == 2
    assert set(results.ledger["device"]) == {0, 1, 2}
    assert "session_start" in set(results.events["event"])
    assert results.info["status"] == "completed"
    assert results.notes == results.info["notes"]
    assert results.positions["time_s"].unique().tolist() == [0.0], "no device moves"
    assert pickle.loads(pickle.dumps(results)) == results


def test_a_study_from_python_is_compared(tmp_path: Path) -> None:
    base = edgefl.load_scenario(SMALL)
    variants = {"narrow": {"radio.bandwidth_hz": 2e7}, "wide": None}
    runs = edgefl.study(base, variants, seeds=[1, 2], out=tmp_path / "study", jobs=1)
    compared = edgefl.compare(runs)
    assert set(compared.detail["variant"]) == set(variants)
    assert compared.seeds == (1, 2)
    assert compared.reference == "narrow"


QUESTION = {"metric": "latency_s", "variants": ["wide", "narrow"], "precision": 1e-9, "budget": 4}


def test_a_study_from_python_answers_its_question(tmp_path: Path) -> None:
    """A study with a question, as dict or file, adds seeds up to the budget, and its results have the answer."""
    base = edgefl.load_scenario(SMALL)
    variants = {"narrow": {"radio.bandwidth_hz": 1e7}, "wide": {"radio.bandwidth_hz": 2e7}, "other": None}
    found = edgefl.study(base, variants, seeds=[1, 2], question=QUESTION, out=tmp_path / "given", jobs=1)
    assert found.answer.table.loc[0, ["pairs", "why"]].tolist() == [4, "budget"]
    seeds = {name: sorted(set(own.seed)) for name, own in found.rounds.groupby("variant")}
    assert seeds == {"narrow": [1, 2, 3, 4], "wide": [1, 2, 3, 4], "other": [1, 2]}
    assert pickle.loads(pickle.dumps(found)).answer.sentence == found.answer.sentence

    (tmp_path / "small.yaml").write_text(dump(base))
    study = {"name": "asked", "scenario": "small.yaml", "seeds": [1, 2], "variants": variants}
    (tmp_path / "study.yaml").write_text(json.dumps(study | {"question": QUESTION}))
    filed = edgefl.study(tmp_path / "study.yaml", out=tmp_path / "filed", jobs=1)
    assert filed.answer.sentence == found.answer.sentence
    some = edgefl.study(tmp_path / "study.yaml", seeds=[1], out=tmp_path / "some", jobs=1)
    assert some.answer is None, "with a given seed, the question is skipped"


def test_several_folders_are_compared_under_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    base = edgefl.load_scenario(SMALL)
    one = edgefl.simulate(base, out=tmp_path / "one")
    two = edgefl.simulate(base.with_(radio__bandwidth_hz=1e7), out=tmp_path / "two")
    compared = edgefl.compare(one, two, names=["old", "new"], reference="old")
    assert list(compared.table["variant"]) == ["old", "new"]
    assert compared.out == tmp_path / "comparison", "next to the runs"
    assert list(Path.cwd().iterdir()) == []
    assert (tmp_path / "comparison" / "comparison_pareto.pdf").exists()
    assert list(edgefl.compare([one, two], out="both").table["variant"]) == ["one", "two"]
    with refused_at("", "names"):
        edgefl.compare(one, two, names=["old"])
    about = json.loads((two / "run.json").read_text())
    (two / "run.json").write_text(json.dumps(about | {"status": "interrupted"}))
    assert list(edgefl.compare(one, two, partial=True).table["variant"]) == ["one", "two"]


def test_a_study_is_a_dict_as_well_as_a_file(tmp_path: Path) -> None:
    base, bands = edgefl.load_scenario(SMALL), [1.0e7, 2.0e7]
    sweep = {"scenario": base, "grid": {"radio.bandwidth_hz": bands}}
    swept = edgefl.study(sweep, out=tmp_path / "swept", jobs=1)
    found = [edgefl.load_scenario(file) for file in sorted(swept.rglob("scenario.yaml"))]
    assert [one.radio.bandwidth_hz for one in found] == bands
    study = {"name": "two", "scenario": SMALL, "seeds": [1, 2, 3], "variants": {"a": None}}
    found = edgefl.study(study, seeds=[2], out=tmp_path / "two", jobs=1)
    assert [path.parent.name for path in found.rglob("run.json")] == ["seed-2"]
    with refused_at("", "variants, reference and question"):
        edgefl.study(study, {"b": None})
    with refused_at("", "variant: unknown key: did you mean 'variants'?"):
        edgefl.study({"scenario": base, "variant": {}})
    with refused_at("variants", "got 'runs/s'; name the study's directory as out='runs/s'"):
        edgefl.study(study, "runs/s")  # type: ignore[arg-type]
    with refused_at("", "varies nothing") as refusal:
        edgefl.study({"scenario": base})
    # the error names no file, as the caller passed a dict
    assert str(refusal.value).startswith("varies nothing")


def test_a_study_varies_a_scenario_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "base.yaml").write_text(dump(edgefl.load_scenario(SMALL)))
    monkeypatch.chdir(tmp_path)
    variants = {"wide": {"radio.bandwidth_hz": 2.0e7}, "as it is": {}}
    keywords = {"wide": {"radio__bandwidth_hz": 2.0e7}, "as it is": {}}
    found = edgefl.study("base.yaml", keywords, seeds=[1, 2], out="out", jobs=1)
    named = edgefl.load_scenario("base.yaml")
    same = edgefl.study(named, variants, seeds=[1, 2], out="same", jobs=1)
    assert found.rounds.equals(same.rounds)
    assert len(list(found.rglob("run.json"))) == 4
    with refused_at("", "base.yaml: is a scenario, not a study"):
        edgefl.study("base.yaml", seeds=[1])


def test_a_study_from_python_names_what_is_wrong(tmp_path: Path) -> None:
    base = edgefl.load_scenario(SMALL)
    with refused_at("", "variants"):
        edgefl.study(base)
    with refused_at("", "bandwith_hz", "bandwidth_hz") as refusal:
        edgefl.study(base, {"a": {"radio.bandwith_hz": 1e7}})
    assert "study.yaml" not in str(refusal.value)  # the caller wrote no such file
    with refused_at("", "nowhere.yaml: cannot be read"):
        edgefl.study(tmp_path / "nowhere.yaml", {"a": None})
    (tmp_path / "study.yaml").write_text("scenario: base.yaml\n")
    with refused_at("", "a study already has variants"):
        edgefl.study(tmp_path / "study.yaml", {"a": None})
    with refused_at("", "nowhere"):
        edgefl.compare(tmp_path / "nowhere")


def test_no_process_at_all_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with refused_at("", "jobs is 0", "at least 1"):
        edgefl.study(SMALL, {"a": None}, out=tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()


def test_everything_is_to_be_seen() -> None:
    for name in edgefl.__all__:
        assert name in dir(edgefl)
        assert getattr(edgefl, name) is not None
        assert name in edgefl._LAZY or name in vars(edgefl)
    assert (Path(edgefl.__file__).parent / "py.typed").exists()
    assert "Run every variant with every seed" in pydoc.render_doc(edgefl.study)
    assert "edgefl.load_scenario" in pydoc.render_doc(edgefl)


def test_a_variant_may_take_another_preset(tmp_path: Path) -> None:
    """Keys that the scenario leaves out follow each variant's preset, not the scenario's."""
    base = edgefl.load_scenario({**SMALL, "radio": {"preset": "journal"}})
    runs = edgefl.study(base, {"journal": {}, "nr": {"radio.preset": "nr"}}, out=tmp_path / "s", jobs=1)
    for variant in ("journal", "nr"):
        (folder,) = (Path(runs) / variant).iterdir()
        wanted = dump(edgefl.load_scenario({**SMALL, "radio": {"preset": variant}}))
        assert (folder / "scenario.yaml").read_text(encoding="utf-8") == wanted
