"""Runs of several federations are read as those of one: the rows and the columns that a run of it alone has."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgefl import Results, load_scenario, simulate
from edgefl.analysis import compare, load_runs, load_settings
from edgefl.analysis.export.records import study_of
from edgefl.analysis.html import write_report
from edgefl.analysis.reports.costs import report_costs
from edgefl.analysis.runs.reading import EXACT
from edgefl.analysis.runs.scenario_keys import keys_of
from edgefl.scenario.scenario import dump
from edgefl.studies import planning
from edgefl.studies.api import study

BASE: dict[str, Any] = {
    "name": "shared",
    "seed": 1,
    "devices": {"count": 8},
    "radio": {"preset": "journal", "sharing": "dynamic", "scheduler": "equal_share"},
    "sessions": {"name": "schedule", "count": 2, "rounds": 2},
    "rounds": {"pause_s": 1.0},
    "record": {"positions_s": 1.0},
    "workload": {"payload_bits": 100_000, "flops_per_sample": 1000},
    "federations": {
        "a": {"share": 0.5, "rounds": {"server": {"name": "fedbuff", "buffer": 2}, "pause_s": 0}},
        "b": {"share": 0.5, "workload": {"payload_bits": 7, "flops_per_sample": 1}},
    },
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return simulate(BASE, tmp_path_factory.mktemp("shared") / "run")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return simulate({**BASE, "federations": None}, tmp_path_factory.mktemp("alone") / "run")


@pytest.mark.parametrize("name", ["a", "b"])
def test_tables_hold_the_rows_of_the_chosen_one(name: str, shared: Results) -> None:
    runs = load_runs(shared, federation=name)
    members = pd.read_csv(shared / "ledger.csv").set_index("device")["federation"]
    for table in ("rounds", "sessions", "events", "devices", "ledger", "positions"):
        frame = getattr(runs, table)
        assert len(frame)
        assert "federation" not in frame
        if "device" in frame and table != "events":  # nobody moves: all that happens, happens to servers
            assert set(members[frame["device"]]) == {name}
    written = pd.read_csv(shared / "rounds.csv", **EXACT)
    own = written[written["federation"] == name]
    assert runs.rounds["energy_j"].tolist() == own["energy_j"].tolist()
    assert runs.info["federation"].tolist() == [name]


def test_columns_are_those_that_it_has_alone(shared: Results, alone: Results) -> None:
    """b, whose rounds do not overlap, has none of what staleness there is of a's updates."""
    for table in ("rounds", "devices", "events", "sessions", "ledger", "positions"):
        whole = getattr(load_runs(alone), table)
        assert list(getattr(load_runs(shared, federation="b"), table).columns) == list(whole.columns)
    assert "staleness_mean" in load_runs(shared, federation="a").rounds


def test_payload_and_settings_are_its_own(shared: Results) -> None:
    assert load_runs(shared, federation="b").info["payload_bits"].tolist() == [7]
    assert load_runs(shared, federation="a").info["payload_bits"].tolist() == [100_000]
    keys = keys_of(shared, "a")
    assert (keys["rounds.server"], keys["workload.payload_bits"]) == ("fedbuff", 100_000)
    assert keys_of(shared, "b")["workload.payload_bits"] == 7
    assert keys_of(shared)["rounds.server"] == "synchronous"


def test_own_learning_stands_in_place_of_a_workload_for_all(tmp_path: Path) -> None:
    learning = {"dataset": "digits", "model": "logistic"}
    made = load_scenario(BASE).with_({"federations.b": {"share": 0.5, "learning": learning}})
    (tmp_path / "scenario.yaml").write_text(dump(made))
    of_b, of_a = keys_of(tmp_path, "b"), keys_of(tmp_path, "a")
    assert of_b["learning.model"] == "logistic"
    assert not any(key.startswith("workload.") for key in of_b)
    assert not any(key.startswith("learning.") for key in of_a)


def test_who_is_not_there_is_named(shared: Results, alone: Results) -> None:
    with pytest.raises(ValueError, match="has no federation c; it has a, b"):
        load_runs(shared, federation="c")
    with pytest.raises(ValueError, match=r"choose it with --federation \(a, b\)"):
        load_runs(shared)
    with pytest.raises(ValueError, match="--federation a: several federations share the cells of no run"):
        load_runs(alone, federation="a")


def test_a_run_of_one_federation_stands_whole_beside_them(shared: Results, alone: Results) -> None:
    runs = load_runs([shared, alone], names=["shared", "alone"], federation="b")
    rounds = runs.rounds.groupby("variant").size()
    assert rounds.to_dict() == {"alone": len(load_runs(alone).rounds), "shared": 4}


def test_a_run_that_does_not_list_them_is_read_by_its_scenario(shared: Results, tmp_path: Path) -> None:
    """As of the version before run.json listed them."""
    for file in shared.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    about = json.loads((tmp_path / "run.json").read_text())
    del about["federations"]
    (tmp_path / "run.json").write_text(json.dumps(about))
    assert len(load_runs(tmp_path, federation="b").rounds) == 4


def test_reports_of_each_lie_apart(shared: Results) -> None:
    a, b = (write_report(shared, federation=name) for name in ("a", "b"))
    assert (a, b) == (shared / "a" / "report.html", shared / "b" / "report.html")
    assert a.read_text() != b.read_text()
    report_costs(load_runs(shared, federation="a"))
    assert (shared / "a" / "costs.md").is_file()


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("study") / "out"
    return study(
        load_scenario(BASE),
        {"even": None, "heavy": {"federations.b.weight": 9}},
        seeds=[1, 2],
        federation="b",
        question={"metric": "energy_j", "variants": ["even", "heavy"], "precision": 1e9, "budget": 2},
        out=out,
        jobs=1,
    )


def test_a_study_compares_the_one_that_it_names(studied: Path) -> None:
    """Its comparison lies in its folder, that of another federation in one of its own; tables have all."""
    assert set(load_runs(studied).info["federation"]) == {"b"}
    assert compare(load_runs(studied)).out == studied
    assert compare(load_runs(studied, federation="b")).out == studied
    assert compare(load_runs(studied, federation="a")).out == studied / "a"
    (answered,) = json.loads((studied / "question.json").read_text())["seeds_wanted"]
    assert answered == 2
    table = pd.read_csv(studied / "question.csv")
    energy_j = load_runs(studied, federation="b").rounds.groupby(["variant", "seed"])["energy_j"].sum()
    assert table["mean"].iloc[0] == pytest.approx((energy_j["even"] - energy_j["heavy"]).mean())
    (only,) = load_settings(studied).values()
    assert len(only.rounds) == 2 * 2 * 4


def test_what_is_exported_is_of_the_chosen_one(studied: Path) -> None:
    compare(load_runs(studied, federation="a"))
    of_a, of_b = study_of(studied, "a"), study_of(studied)
    assert [run.name for run in of_a.runs[:2]] == ["even, a seed 1", "even, a seed 2"]
    assert {run.settings["rounds.server"] for run in of_a.runs} == {"fedbuff"}
    assert {run.settings["rounds.server"] for run in of_b.runs} == {"synchronous"}
    assert {file.parent for file in of_a.files} == {studied / "a"}
    assert not {run.key for run in of_a.runs} & {run.key for run in of_b.runs}


def test_added_seeds_are_compared_for_the_same_one(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(dump(load_scenario(BASE)))
    file = tmp_path / "study.yaml"
    file.write_text("name: s\nscenario: scenario.yaml\nseeds: [1]\nvariants: {one: {}}\n")
    assert planning.plan(file, federation="a").federation == "a"
    assert [run.member.federation for run in planning.plan(file, [5], "a").runs] == ["a"]
