"""Test runs that end at an accuracy, or when the accuracy no longer rises."""

from pathlib import Path
from typing import Any

import pytest

import edgefl
from edgefl import Results
from edgefl.analysis import compare
from edgefl.analysis.html.words import summary
from edgefl.analysis.measures.metrics import with_spending
from edgefl.analysis.runs.load import load_runs
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tables import sections

PATIENCE, TARGET = 3, 0.8
SCENARIO: dict[str, Any] = sections("""
    name=stopping; devices={count: 5}; sessions={name: schedule, count: 2, rounds: 30}
    learning={dataset: digits, partition: iid, model: logistic, local: {batch: 32, lr: 0.02}}
""")
TWO_CELLS = {
    "layout": {"sites": [[-100, 0], [100, 0]], "federations": "all"},
    "radio": {"propagation": {"shadowing": "spatial"}},
    "devices": {"count": 8, "mobility": "static"},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return the results of the run without `stop`."""
    return edgefl.simulate(SCENARIO, out=tmp_path_factory.mktemp("whole") / "run", device="cpu")


def stopped(folder: Path, stop: dict[str, Any], **changes: Any) -> Results:
    return edgefl.simulate(within(SCENARIO, {"stop": stop, **changes}), out=folder / "run", device="cpu")


def test_a_run_ends_with_its_first_test_at_the_accuracy(whole: Results, tmp_path: Path) -> None:
    scores = whole.rounds["accuracy"].tolist()
    first = next(k for k, score in enumerate(scores) if score >= TARGET)
    run = stopped(tmp_path, {"accuracy": TARGET})
    assert run.rounds["accuracy"].tolist() == scores[: first + 1]
    assert run.info["simulated_s"] == whole.rounds["end_s"][first]
    assert run.info["stopped"].startswith(
        f"accuracy {TARGET} reached (round {first + 1} of session 1, after "
    )
    ends = run.events.query("event == 'session_end'")
    assert ends["detail"].tolist() == [f"accuracy {TARGET} reached"]


def test_joules_to_a_target_are_those_of_a_run_that_stops_there(whole: Results, tmp_path: Path) -> None:
    """A run that goes on cuts its tails short; its joules to the target include these tails in full."""
    stopped(tmp_path / "stopped", {"accuracy": TARGET})
    shared = {"names": ["stopped", "whole"], "target": TARGET, "out": tmp_path / "compared"}
    found = compare(tmp_path / "stopped", whole, **shared)  # type: ignore[arg-type]
    first, second = found.table["joules_to_target_mean"]
    assert second == pytest.approx(first, rel=1e-9)
    assert first == pytest.approx(Results(tmp_path / "stopped" / "run").rounds["energy_j"].sum(), rel=1e-9)


@pytest.mark.parametrize("places", [8, 12])
def test_joules_to_a_target_include_work_under_way(tmp_path: Path, places: int) -> None:
    """An asynchronous run that stops cuts off the devices at work, which have spent as much in a run that goes on.

    The remaining difference, below 1 %, is how a device's joules are divided within a transfer.
    """
    changes = {
        "devices": {"count": 12, "power": {"name": "tr38840", "release_s": 0.2}},  # short tails
        "rounds": {"server": {"name": "fedbuff", "buffer": 3, "concurrency": places}},
        "sessions": {"count": 1, "rounds": 12},
    }
    own = within(SCENARIO, changes)
    on = edgefl.simulate(own, out=tmp_path / "on", device="cpu")
    best = float(on.rounds["accuracy"][:2].max())  # reached early, when much work is under way
    end = edgefl.simulate(within(own, {"stop": {"accuracy": best}}), out=tmp_path / "end", device="cpu")
    found = load_runs(on).rounds.assign(variant="on").iloc[len(end.rounds) - 1]
    all_j, tails_j = end.rounds["energy_j"].sum(), found["energy_cut_j"]
    to_target = compare(on, names=["on"], target=best, out=tmp_path / "compared").table[
        "joules_to_target_mean"
    ]
    assert to_target.tolist() == pytest.approx([all_j], rel=0.01)
    assert found["under_way_j"] > 0.1 * all_j
    assert on.rounds["energy_j"][: len(end.rounds)].sum() + tails_j < 0.9 * all_j


@pytest.mark.parametrize("server", [{"name": "fedbuff", "buffer": 3}, {"name": "fedasync"}])
def test_joules_to_any_round_include_each_tail_once(tmp_path: Path, server: dict[str, Any]) -> None:
    """Near the end of a run, devices that wait for a first transfer have no second tail; a tail is about 0.6 J."""
    own = sections(
        "name=tails; devices={count: 12}; workload={payload_bits: 2.0e+5, flops_per_sample: 1.0e+5}"
    )
    own["rounds"] = {"server": {**server, "concurrency": 8}}
    for seed in (1, 2):

        def run(rounds: int, seed: int = seed) -> Results:
            sessions = {"name": "schedule", "count": 1, "rounds": rounds}
            return edgefl.simulate(
                within(own, {"seed": seed, "sessions": sessions}), out=tmp_path / f"{seed}-{rounds}"
            )

        spent_j = with_spending(load_runs(run(12)).rounds)["spent_j"]
        ended_j = [run(rounds).rounds["energy_j"].sum() for rounds in (5, 8, 11)]
        assert spent_j[[4, 7, 10]].tolist() == pytest.approx(ended_j, rel=0.01)


def test_a_run_ends_after_so_many_tests_without_a_new_best_of_their_session(
    whole: Results, tmp_path: Path
) -> None:
    ends = [
        (session, k + 1)
        for session, own in whole.rounds.groupby("session")["accuracy"]
        for k in range(PATIENCE, len(own))  # the last PATIENCE tests do not exceed the best earlier test
        if own.iloc[k - PATIENCE + 1 : k + 1].max() <= own.iloc[: k - PATIENCE + 1].max()
    ]
    session, number = ends[0]
    run = stopped(tmp_path, {"patience": PATIENCE})
    assert run.rounds[["session", "round"]].iloc[-1].tolist() == [session, number]
    assert run.info["stopped"].startswith(
        f"no progress in {PATIENCE} tests (round {number} of session {session}"
    )


def test_a_run_that_does_not_get_there_is_the_run_without_it(whole: Results, tmp_path: Path) -> None:
    run = stopped(tmp_path, {"accuracy": 1.0})
    assert (run / "rounds.csv").read_bytes() == (whole / "rounds.csv").read_bytes()
    assert run.info["stopped"] == "no score ended it"
    assert "How it ended: no score ended it." in summary(load_runs(run))
    assert "stopped" not in whole.info


def test_scores_are_those_of_validation_samples_if_there_are_any(tmp_path: Path) -> None:
    """With validation samples, the first tested round whose validation accuracy reaches the target ends the run."""
    run = stopped(tmp_path, {"accuracy": TARGET}, learning={"evaluation": {"validation": 0.2, "every": 3}})
    scores = run.rounds["accuracy_validation"]
    assert len(scores) % 3 == 0 < len(scores) - 3
    assert scores.iloc[-1] >= TARGET > scores.dropna().iloc[:-1].max()


def test_overlapping_rounds_end_too(tmp_path: Path) -> None:
    """When the target is reached, the run ends and cuts off devices that are still working."""
    rounds = {"server": {"name": "fedbuff", "buffer": 2}}
    run = stopped(tmp_path, {"accuracy": TARGET}, rounds=rounds, radio={"sharing": "dynamic"})
    scores = run.rounds["accuracy"]
    assert scores.iloc[-1] >= TARGET > scores.iloc[:-1].max()
    assert "reached (round" in run.info["stopped"]
    assert (run.devices["outcome"] != "completed").any()


def test_each_cell_ends_by_its_own_scores(tmp_path: Path) -> None:
    run = stopped(tmp_path, {"accuracy": TARGET}, **TWO_CELLS)
    lasts = run.rounds.groupby("cell").tail(1)
    assert (lasts["accuracy"] >= TARGET).all()
    assert lasts["end_s"].nunique() == 2
    assert "reached in 2 cells, in the last after " in run.info["stopped"]
    assert run.info["simulated_s"] == lasts["end_s"].max()


def test_a_federation_has_its_own_end(tmp_path: Path) -> None:
    """A federation's own `stop` takes precedence over the scenario's `stop`."""
    federations = {"a": {"share": 0.5}, "b": {"share": 0.5, "stop": {"accuracy": 0.6}}}
    radio = {"sharing": "dynamic", "budget": {"uplink_power_over_share": "per_resource_block"}}
    run = stopped(tmp_path, {"accuracy": TARGET}, federations=federations, radio=radio, devices={"count": 10})
    for name, target in (("a", TARGET), ("b", 0.6)):
        scores = Results(run / name).rounds["accuracy"]
        assert scores.iloc[-1] >= target > scores.iloc[:-1].max()
    first, second = run.info["stopped"].split("; ")
    assert first.startswith(f"federation a: accuracy {TARGET} reached (round ")
    assert second.startswith("federation b: accuracy 0.6 reached (round ")


def test_stop_that_can_never_act_is_refused() -> None:
    with refused_at("stop", "set accuracy, patience or both"):
        edgefl.load_scenario(within(SCENARIO, {"stop": {}}))
    radio_only = {key: of for key, of in SCENARIO.items() if key != "learning"}
    workload = {"payload_bits": 1000, "flops_per_sample": 1}
    with refused_at("stop", "a workload trains nothing"):
        edgefl.simulate({**radio_only, "workload": workload, "stop": {"patience": 2}})
