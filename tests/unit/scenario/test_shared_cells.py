"""Test several federations in a scenario: their settings, errors with place and remedy, and a run's files."""
# ruff: noqa: E501 - a row of a table is a line

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefl import Results, load_scenario, resume, simulate
from edgefl.analysis.runs.load import load_runs
from edgefl.run_directory.results import RunDirectory
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import Prepared
from edgefl.scenario.scenario import dump, load
from edgefl.studies import planning
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tables import rows as rows_of
from tests.tables import sections
from tests.tools.invariants import check_run

BASE: dict[str, Any] = sections("""
    name=shared; devices={count: 8, classes: {phone: {share: 0.5}, meter: {}}}
    radio={preset: journal, sharing: dynamic, scheduler: equal_share}
    sessions={name: schedule, count: 1, rounds: 2}; rounds={pause_s: 1.0}
    workload={payload_bits: 100000, flops_per_sample: 1000}; federations.a={classes: [phone]}
    federations.b.classes=[meter]; federations.b.weight=2; federations.b.rounds={deadline_s: 9.0}
    federations.b.workload={payload_bits: 7, flops_per_sample: 1}
""")


def scenario(**keys: Any) -> Any:
    return load_scenario(BASE).with_({key.replace("__", "."): value for key, value in keys.items()})


def rows(run: Path, table: str) -> list[dict[str, str]]:
    with (run / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_federation_changes_what_it_says_and_no_more() -> None:
    made = scenario()
    a, b = made.of_federation("a"), made.of_federation("b")
    assert (a.rounds, a.workload, a.sessions) == (made.rounds, made.workload, made.sessions)
    assert (b.rounds.deadline_s, b.rounds.pause_s) == (9.0, 1.0)
    assert b.workload.payload_bits == 7
    assert b.sessions == made.sessions


def test_without_federations_nothing_of_them_is_written() -> None:
    assert "federations" not in yaml.safe_load(dump(load_scenario({**BASE, "federations": None})))


# place | words that the message must contain | keys
REFUSED = """
federations | at least 2 | federations={a: {share: 1}}
federations.b | not by both | B.share=0.5
federations.b | one of the two | federations={a: {share: 0.5}, b: {}}
federations.b | a sets its devices by share | federations={a: {share: 0.5}, b: {classes: [meter]}}
federations | sum to 1.1 | federations={a: {share: 0.5}, b: {share: 0.6}}
federations.b.classes | no class 'metre' in devices.classes: did you mean 'meter' | B.classes=[metre]
federations.b.classes | phone already belong to a | B.classes=[meter, phone]
federations | devices of class lamp belong to no | devices.classes.lamp={share: 0.1}
federations.b | b gets no device | federations={a: {share: 0.99}, b: {share: 0.01}}
federations.b.rounds.max_wait_s | is the same for all | B.rounds.max_wait_s=1
federations.b.rounds.min_updates | 5 exceeds the number of participants | B.rounds.min_updates=5
federations.b.sessions | no end | B.sessions={name: interval, length_s: 9}
federations.b.workload | set either learning | B.learning=LEARNING
federations.a | a has no task, and neither has the scenario: set learning or workload | workload=null
federations.b.learning.model | logistic | B=METER, learning: {dataset: digits, model: logistics}}
federations.b.sessions | set learning.evaluation.validation | B=METER, learning: LEARNING, sessions: {name: early_stopping, count: 2}}
federations.b.rounds.min_updates | 4 exceeds the number of participants of a probe round of b, 2 | B=METER, learning: LEARNING, sessions: {name: schedule, count: 3, rounds: 1}, rounds: {min_updates: 4}}; B.learning.warm_start={name: similarity, probe_share: 0.5}
federations.b.learning.algorithm | feddrift | B=METER, learning: LEARNING, rounds: {server: {name: fedbuff, buffer: 2}, pause_s: 0}}; B.learning.algorithm=feddrift; B.learning.theory=10
devices.classes.phone.samples | trains nothing on these devices | devices.classes.phone.samples=0.5
"""
SHORT = {
    "B": "federations.b",
    "METER": "{classes: [meter]",
    "LEARNING": "{dataset: digits, model: logistic, partition: iid}",
}


@pytest.mark.parametrize(("place", "said", "keys"), rows_of(REFUSED, SHORT))
def test_refused(place: str, said: str, keys: str) -> None:
    with refused_at(place, said):
        load_scenario(BASE, keys.split("; "))


LEARNING = {"dataset": "digits", "model": "logistic", "partition": "iid"}


def test_own_learning_stands_in_place_of_what_is_for_all() -> None:
    """A federation's own learning or workload replaces the scenario's whole section, which is the default."""
    own = within(LEARNING, {"local": {"lr": 0.5}})
    of_all = within(LEARNING, {"local": {"batch": 7}})
    some = scenario(workload=None, learning=of_all, federations__b={"classes": ["meter"]})
    b = {"classes": ["meter"], "learning": own}
    for made in (some.with_({"federations.b": b}), scenario(federations__b=b)):
        assert made.of_federation("b").workload is None
        learning = made.of_federation("b").learning
        assert (learning.local.lr, learning.local.batch) == (0.5, 128)
        assert made.of_federation("a").learning == made.learning
        assert made.of_federation("a").workload == made.workload
    assert some.trains
    assert not scenario().trains
    assert some.with_({"federations.b": BASE["federations"]["b"]}).of_federation("b").learning is None


def test_a_class_keeps_a_share_of_samples_where_its_federation_trains() -> None:
    classes = {"phone": {"share": 0.5}, "meter": {"samples": 0.5}}
    b = {"classes": ["meter"], "learning": LEARNING}
    made = scenario(federations__b=b, devices__classes=classes)
    assert made.devices.classes["meter"].samples == 0.5


def test_a_run_is_named_by_the_data_of_each_federation(tmp_path: Path) -> None:
    """A run's identity depends on the contents of its files, not on their folder; a workload has no files."""
    made, names = [], ("here", "there")
    for name in names:
        path = tmp_path / name / "table.csv"
        path.parent.mkdir()
        path.write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(40)))
        own = {**LEARNING, "dataset": {"name": "csv", "path": str(path)}}
        made.append(scenario(federations__b={"classes": ["meter"], "learning": own}))
    load_data = Loaded(download=False)
    here, there = (Prepared(one, load_data).identity for one in made)
    assert "federations.b.learning.dataset" in here.data
    assert not any(key.startswith(("learning", "federations.a")) for key in here.data)
    assert here.hash == there.hash
    path.write_text(path.read_text().replace("39,1", "39,0"))
    assert Prepared(made[1], Loaded(download=False)).identity.hash != here.hash


def test_what_a_federation_has_none_of_is_none_when_it_is_read_again(tmp_path: Path) -> None:
    """If the scenario's rounds have a deadline and the rounds of b have none, the written scenario says so."""
    rules = {"deadline_s": None, "pause_s": 2.0}
    made = scenario(rounds__deadline_s=5.0, federations__b={**BASE["federations"]["b"], "rounds": rules})
    (tmp_path / "again.yaml").write_text(dump(made))
    again = load(tmp_path / "again.yaml")
    assert again.of_federation("b").rounds.deadline_s is None
    assert again.of_federation("b").rounds == made.of_federation("b").rounds
    assert dump(again) == dump(made)


@pytest.mark.parametrize("server", ["synchronous", {"name": "fedbuff", "buffer": 2}])
def test_each_federation_has_a_run_directory_of_its_own(tmp_path: Path, server: Any) -> None:
    """Each federation has its own run directory; only overlapping rounds have columns of staleness."""
    rules = {"deadline_s": None, "pause_s": 0.0, "server": server}
    run = simulate(scenario(federations__b={**BASE["federations"]["b"], "rounds": rules}), tmp_path / "run")
    assert check_run(run) == []
    assert {path.name for path in run.iterdir()} == {"run.json", "scenario.yaml", "a", "b"}
    for name, kind in (("a", "phone"), ("b", "meter")):
        own = run / name
        devices = {row["device"] for row in rows(own, "ledger")}
        assert {row["device"] for row in rows(own, "devices")} == devices
        assert {row["class"] for row in rows(own, "ledger")} == {kind}
        assert ("staleness_mean" in rows(own, "rounds")[0]) == (name == "b" and server != "synchronous")
        about = Results(own).info
        assert (about["status"], about["federation"]) == ("completed", name)
        rounds = load_scenario(run / "scenario.yaml").of_federation(name).rounds
        assert load_scenario(own / "scenario.yaml").rounds == rounds
        assert load_runs(own).rounds["variant"].unique().tolist() == ["shared"]
    assert len(rows(run / "a", "rounds")) == 2
    with refused_at("", "several federations", run / "a", kind=ValueError):
        load_runs(run)
    assert set(run.rounds["variant"]) == {"a shared", "b shared"}
    with refused_at("", f"resume the whole run, {run}"):
        resume(run / "a")


def test_a_run_that_fails_before_it_begins_says_so(tmp_path: Path) -> None:
    """A run whose data are missing fails before its federations are known, with an error that can be read."""
    RunDirectory(tmp_path / "run", Prepared(scenario(), Loaded(download=False)).described, {}).fail("no data")
    assert Results(tmp_path / "run").info["error"] == "no data"
    with refused_at("", "no data", kind=ValueError):
        load_runs(tmp_path / "run")


@pytest.mark.parametrize("names", [("a", "snapshots"), ("a", "A")])
def test_a_federation_whose_folder_is_taken_is_refused(names: tuple[str, str]) -> None:
    with refused_at(f"federations.{names[0] if names[1] == 'A' else names[1]}", "another name"):
        scenario(federations={name: {"share": 0.5} for name in names})


def test_the_same_scenario_gives_the_same_tables(tmp_path: Path) -> None:
    runs = [simulate(scenario(), tmp_path / name) for name in ("one", "two")]
    for table in ("rounds", "devices", "events", "sessions", "ledger"):
        for name in "ab":
            one, two = (Path(run) / name / f"{table}.csv" for run in runs)
            assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    "aim",
    [
        "question: {metric: latency_s, variants: [one, other], precision: 1, budget: 4}",
        "choose: {key: duration_s, by: test}\ngrid: {duration_s: [8, 9]}",
    ],
)
def test_a_study_of_several_federations_asks_nothing_about_one(aim: str, tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text(dump(scenario()))
    study = tmp_path / "study.yaml"
    study.write_text(
        f"name: s\nscenario: shared.yaml\nseeds: [1]\n{aim}\nvariants: {{one: {{}}, other: {{duration_s: 9}}}}\n"
    )
    with refused_at("", f"{aim.partition(':')[0]} applies to a single federation"):
        planning.plan(study)


def test_federations_share_several_cells_whose_devices_hand_over(tmp_path: Path) -> None:
    """With the `nr` preset and overlapping rounds in a, both servers' tables agree, and devices stay in a or b."""
    run = simulate(
        sections("""
            name=cells; duration_s=4; layout={sites: [[0, 0], [150, 0]], federations: all}; cell={radius_m: 100}
            devices={count: 10, mobility: {name: random_waypoint, speed_min_m_s: 20, speed_max_m_s: 30}}
            radio={sharing: dynamic, scheduler: equal_share, bandwidth_hz: 20e6}
            sessions={name: interval, length_s: 2}; workload={payload_bits: 500000, flops_per_sample: 1e6}
            federations.a={share: 0.4, weight: 2, rounds: {server: {name: fedbuff, buffer: 2}}}
            federations.b={share: 0.6, rounds: {pause_s: 0.1}}
        """),
        tmp_path / "run",
    )
    assert check_run(run) == []
    for name in "ab":
        own = {table: rows(run / name, table) for table in ("events", "ledger", "devices", "rounds")}
        assert any(row["event"] == "handover" for row in own["events"])
        assert {row["device"] for row in own["devices"]} <= {row["device"] for row in own["ledger"]}
        assert {row["cell"] for row in own["rounds"]} == set("01")
