"""Test that federations on a shared band learn exactly what each would learn alone from its devices' data."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from edgefl import Results, load_model, load_scenario, simulate
from edgefl.analysis import load_runs
from edgefl.analysis.runs.reading import read_all
from edgefl.learning.datasets.digits import Digits
from edgefl.run.plan import prepare
from edgefl.scenario.scenario import dump
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tables import sections
from tests.tools import kill
from tests.tools.invariants import check_run

DEVICES = 5  # in federation a
DIGITS = {"dataset": "digits", "model": "logistic", "local": {"lr": 0.05, "batch": 16}}
OTHER = DIGITS | sections("""
    algorithm=fedprox; partition=iid; local={lr: 0.1, batch: 16}; evaluation={validation: 0.2}
""")
# no upload is lost, and all devices take part in each round, whatever other traffic the band has
ALONE: dict[str, Any] = sections(f"""
    name=alone; seed=3; devices={{count: {DEVICES}}}; sessions={{name: schedule, count: 3, rounds: 3}}
    radio={{preset: journal, sharing: dynamic, scheduler: equal_share}}
""")
# columns that depend on the network, not on the learner
OF_THE_NETWORK = {
    "start_s", "end_s", "latency_s", "latency_mean_s", "distance_m", "working", "staleness_mean", "staleness_max",
    *(f"energy_{use}j" for use in ("", "rx_", "tx_", "compute_", "tail_", "server_", "wasted_")),
    *(f"{what}_{end}_s" for what in ("downlink", "compute", "uplink") for end in ("start", "end")),
}  # fmt: skip


def company(learning: dict[str, Any], of_b: dict[str, Any], **further: Any) -> dict[str, Any]:
    """Return a scenario in which federation a has as many devices as ALONE, and federation b twice as many."""
    share = {"a": 1 / 3, "b": 2 / 3}
    return {
        **ALONE,
        **further,
        "name": "company",
        "devices": {"count": 3 * DEVICES},
        "federations": {"a": {"share": share["a"], "learning": learning}, "b": {"share": share["b"], **of_b}},
    }


def learned(run: Path, table: str, columns: list[str]) -> pd.DataFrame:
    """Return columns of a table as text, with the federation's devices renumbered from 0."""
    rows = pd.read_csv(run / f"{table}.csv", dtype=str, keep_default_na=False)
    own = pd.read_csv(run / "ledger.csv")["device"]
    number = {str(id_): str(place) for place, id_ in enumerate(sorted(own))}
    if "device" in rows:
        rows = rows.assign(device=rows["device"].map(number))
    if "devices" in rows:
        rows = rows.assign(devices=[" ".join(number[id_] for id_ in ids.split()) for ids in rows["devices"]])
    return rows[columns].reset_index(drop=True)


@pytest.mark.parametrize(
    "learning",
    [
        {"warm_start": "similarity", "partition": {"name": "dirichlet", "alpha": 0.5, "overlap": 0.2}},
        {"algorithm": "scaffold", "uplink_codec": {"name": "rand_k", "share": 0.2}},
        {
            "algorithm": "ditto",
            "evaluation": {"tested_on": "devices", "scores_every": 1},
            "drift": {"name": "label_swap", "at": 2, "share": 0.5},
        },
    ],
    ids=["warm start", "control variates and a codec", "personal models and drift"],
)
def test_a_federation_learns_in_company_what_it_learns_alone(
    learning: dict[str, Any], tmp_path: Path
) -> None:
    """If all devices take part in each round, sharing the band does not change a single bit of the models."""
    learning = {**DIGITS, **learning}
    keeps = {"record": {"models": "personal"}}
    alone = simulate({**ALONE, **keeps, "learning": learning}, tmp_path / "alone")
    shared = simulate(company(learning, {"weight": 3, "learning": OTHER}, **keeps), tmp_path / "run") / "a"
    tables = ["rounds", "devices", "sessions", *(["evaluation"] if "scores_every" in learning else [])]
    for table in tables:
        columns = [
            name
            for name in pd.read_csv(alone / f"{table}.csv", nrows=0).columns
            if name not in OF_THE_NETWORK
        ]
        assert set(columns) & {"accuracy", "accuracy_start", "iterations"}
        pd.testing.assert_frame_equal(
            learned(shared, table, columns), learned(alone, table, columns), check_exact=True
        )
    files = sorted(path.name for path in (alone / "models").glob("*.safetensors"))
    assert files == sorted(path.name for path in (shared / "models").glob("*.safetensors"))
    for name in files:
        here, there = load_file(shared / "models" / name), load_file(alone / "models" / name)
        assert all(torch.equal(here[key], there[key]) for key in there if key != "devices")


def test_a_weight_moves_times_and_no_learning(tmp_path: Path) -> None:
    """A larger weight ends federation a's rounds sooner, and does not change what it learns."""
    runs = {}
    for weight in (1, 10):
        narrow = {**ALONE["radio"], "bandwidth_hz": 1e6}
        scenario = company(
            DIGITS, {"workload": {"payload_bits": 1_000_000, "flops_per_sample": 1}}, radio=narrow
        )
        scenario["federations"]["a"]["weight"] = weight
        runs[weight] = simulate(scenario, tmp_path / str(weight)) / "a"
    light, heavy = (learned(run, "rounds", ["round", "accuracy", "loss", "end_s"]) for run in runs.values())
    assert (light["end_s"].astype(float) > heavy["end_s"].astype(float)).all()
    pd.testing.assert_frame_equal(light.drop(columns="end_s"), heavy.drop(columns="end_s"), check_exact=True)


def test_each_federations_data_are_dealt_to_its_own_devices() -> None:
    """Partition iid divides all 1,500 samples among the devices of each federation separately."""
    others = {"learning": {**OTHER, "evaluation": {"validation": None}}}
    plan = prepare(load_scenario(company({**DIGITS, "partition": "iid"}, others)))
    samples = len(Digits().load().train.y)
    for name, count in (("a", DEVICES), ("b", 2 * DEVICES)):
        dealt = plan.learners[name][0].device_data
        held = np.concatenate([dealt.samples(number) for number in range(count)])
        assert sorted(held) == list(range(samples))


def mixed(**further: Any) -> dict[str, Any]:
    """Return a scenario of two cells and three federations: synchronous, asynchronous, and without training."""
    keys = sections("""
        name=mixed; seed=3; duration_s=1.2; layout={sites: [[0, 0], [150, 0]], federations: all}; cell.radius_m=100
        devices={count: 15, mobility: {name: random_waypoint, speed_min_m_s: 30, speed_max_m_s: 40}}
        radio={sharing: dynamic, scheduler: equal_share, bandwidth_hz: 5e6}; rounds={every_s: 0.2}
        sessions={name: interval, length_s: 0.6}; workload={payload_bits: 1000000, flops_per_sample: 1e6}
    """)
    personal = {"algorithm": "ditto", "evaluation": {"tested_on": "devices", "scores_every": 2}}
    buffered = {"every_s": None, "server": {"name": "fedbuff", "buffer": 2}}
    federations = {
        "a": {"share": 0.4, "learning": DIGITS | personal},
        "b": {"share": 0.4, "weight": 2, "rounds": buffered, "learning": OTHER},
        "c": {"share": 0.2},
    }
    return {**keys, "federations": federations, **further}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return simulate(mixed(record={"models": "personal"}), tmp_path_factory.mktemp("mixed") / "run")


def test_results_speak_of_each_federation(run: Results) -> None:
    """A time to a target, and an accuracy, of the first federation alone would pass for the run's."""
    with refused_at("", f"{run} holds several federations", "edgefl.Results("):
        run.time_to(0.5)
    assert all(f"{name}: " in repr(run) for name in "abc")
    assert Results(run / "a").time_to(0.5) > 0


def test_the_books_of_all_servers_hold(run: Results) -> None:
    assert check_run(run) == []
    events = pd.concat([pd.read_csv(run / name / "events.csv") for name in "abc"])
    assert (events["event"] == "handover").any()
    rounds = {name: pd.read_csv(run / name / "rounds.csv") for name in "abc"}
    assert all(set(own["cell"]) == {0, 1} for own in rounds.values())
    assert [bool(own["accuracy"].notna().any()) for own in rounds.values()] == [True, True, False]
    # only `b` has validation samples and overlapping rounds; only `a` tests its devices' own models
    for column, name in (("accuracy_validation", "b"), ("accuracy_personal", "a"), ("staleness_mean", "b")):
        assert [of for of, own in rounds.items() if column in own] == [name]
        assert rounds[name][column].notna().any()
    assert [path.parent.name for path in run.glob("*/evaluation.csv")] == ["a"]
    for name in "abc":
        rows = json.loads((run / name / "run.json").read_text())["rows"]
        assert rows == {path.stem: len(pd.read_csv(path)) for path in (run / name).glob("*.csv")}


def test_models_are_kept_by_federation(run: Results) -> None:
    """Files of personal models are named by the run's device ids, and belong to the federation's own devices."""
    kept = [load_file(path) for path in (run / "a" / "models").glob("*-personal.safetensors")]
    holders = {device for one in kept for device in one["devices"].tolist()}
    assert holders
    assert holders <= set(pd.read_csv(run / "a" / "ledger.csv")["device"])
    device = next(iter(kept[0]["devices"].tolist()))
    assert load_model(run / "a", cell=0).about["cell"] == 0
    cells = [cell for cell in (0, 1) if _holds(run, cell, device)]
    model = load_model(run / "a", cell=cells[0], device=device).module
    assert not all(
        torch.equal(own, shared)
        for own, shared in zip(
            model.state_dict().values(),
            load_model(run / "a", cell=cells[0]).module.state_dict().values(),
            strict=True,
        )
    )
    with refused_at("", f"give {run / 'a'}"):
        load_model(run, cell=0)


def _holds(run: Path, cell: int, device: int) -> bool:
    path = run / "a" / "models" / f"cell{cell}-personal.safetensors"
    return path.exists() and device in load_file(path)["devices"].tolist()


def test_parquet_tables_hold_the_same_columns(run: Results, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    other = simulate(mixed(record={"models": "personal", "tables": "parquet"}), tmp_path / "run")
    for table in ("devices", "evaluation"):
        written, packed = (
            read_all(pd.DataFrame([{"path": str(one / "a"), "variant": "", "seed": 0}]), table)
            for one in (run, other)
        )
        pd.testing.assert_frame_equal(packed, written, check_dtype=False, check_categorical=False)


def test_what_diverges_is_named_with_its_federation_and_device(tmp_path: Path) -> None:
    wild = {**DIGITS, "algorithm": {"name": "fedprox", "mu": 1e9}, "local": {"lr": 90, "batch": 16}}
    with refused_at("", "diverged"):
        simulate(company(wild, {"learning": OTHER}), tmp_path / "run")
    rescued = load_file(tmp_path / "run" / "a" / "diverged-cell0.safetensors")
    assert torch.isfinite(rescued["model"]).all()
    plan = prepare(load_scenario(company(wild, {"learning": OTHER})))
    error = (tmp_path / "run" / "run.json").read_text()
    own = plan.world.of_federation("a").only or ()
    assert any(f"the model of device {id_} is not finite" in error for id_ in own)


def test_each_task_has_its_own_score(tmp_path: Path) -> None:
    """If one federation is scored by R2 and another by accuracy, each has columns of its own score only."""
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("x,y\n" + "".join(f"{k},{2.0 * k + k % 3}\n" for k in range(90)))
    regression = {
        "dataset": {"name": "csv", "path": str(numbers), "columns": {"label": "y"}, "targets": "numbers"},
        "model": "mlp2",
        "partition": "iid",
        "evaluation": {"tested_on": "devices", "scores_every": 1},
    }
    alone = load_runs(simulate({**ALONE, "learning": regression}, tmp_path / "alone"))
    labels = within(OTHER, {"evaluation": {"tested_on": "devices", "scores_every": 1}})
    run = simulate(company(regression, {"learning": labels}), tmp_path / "run")
    assert check_run(run) == []
    for name, score, other in (("a", "r2", "accuracy"), ("b", "accuracy", "r2")):
        own = pd.read_csv(run / name / "rounds.csv")
        assert own[[score, f"{score}_std"]].notna().all(axis=None)
        assert other not in own
        assert load_runs(run / name).score == score
    mine = load_runs(run / "a")
    with refused_at("", "several federations (a, b)", "give the runs of one federation", kind=ValueError):
        load_runs([run / "a", run / "b"])
    for table, column in (("rounds", "accuracy"), ("sessions", "accuracy_start"), ("evaluation", "accuracy")):
        assert getattr(mine, table)[column].tolist() == getattr(alone, table)[column].tolist()


def test_a_killed_run_of_several_federations_goes_on(tmp_path: Path) -> None:
    scenario = tmp_path / "mixed.yaml"
    scenario.write_text(dump(load_scenario(mixed(record={"models": "best"}))))
    tally = kill.check(scenario, 1, seed=5, snapshot_rounds=2, again=0.3)
    assert tally.identical == tally.runs == 1, tally.differences
