"""Test that the example of an external learner runs and resumes, and that an invalid learner causes one error."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import edgefl
from edgefl.analysis.runs.reading import EXACT
from edgefl.contract import BEGIN, Evaluation, LocalRound, Now, Opening, SessionStart, StageFacts
from edgefl.learners.own import Assignment
from edgefl.testing import ContractError, assignment, check_learner
from tests.refusals import refused_at

EXAMPLES = Path(__file__).parents[3] / "examples"
sys.path.insert(0, str(EXAMPLES))
from my_learner import Ridge  # noqa: E402

SCENARIO = EXAMPLES / "my_learner.yaml"


def test_the_example_learns_what_its_devices_sent(tmp_path: Path) -> None:
    told: list[Assignment] = []

    def make(one: Assignment) -> Ridge:
        told.append(one)
        return Ridge(one)

    out = edgefl.simulate(edgefl.load_scenario(SCENARIO), tmp_path / "run", learner=make)
    rounds, devices = (pd.read_csv(out / f"{name}.csv", **EXACT) for name in ("rounds", "devices"))
    # the loss falls as 1 / samples seen, and in later rounds the learner has seen more samples
    assert rounds.loss.iloc[-1] < rounds.loss.iloc[0] / 4
    assert rounds.largest_error.notna().all()
    assert (devices[devices.outcome == "completed"].uplink_bits == 64 * 72).all()
    (one,) = told
    assert (one.cell, one.devices, one.sessions) == (0, range(20), 2)
    assert one.homes_m.shape == (20, 2)
    # a new learner that receives the same requests returns the same numbers as in the run
    alone = Ridge(one)
    for row in rounds.itertuples():
        there = devices[(devices.session == row.session) & (devices["round"] == row.round)]
        list(alone.session(SessionStart(row.session, (), 10)))
        alone.train(there.device.tolist(), row.round)
        alone.aggregate(there.device[there.outcome == "completed"].tolist())
        assert alone.evaluate().loss == row.loss
    about = json.loads((out / "run.json").read_text())
    assert about["learner"]["resumable"] is True
    costs = {"payload_bits": 512, "flops_per_sample": 128.0}
    assert about["model"] == {"name": None, "parameters": None, **costs}
    assert len((EXAMPLES / "my_learner.py").read_text().splitlines()) <= 60


def test_the_example_keeps_the_contract() -> None:
    check_learner(Ridge)


def test_a_run_that_was_left_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    scenario = edgefl.load_scenario(SCENARIO)
    whole = edgefl.simulate(scenario, tmp_path / "whole", learner=Ridge)

    def leave(row: Any) -> None:
        if (row.session, row.round) == (2, 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        edgefl.simulate(scenario, tmp_path / "left", learner=Ridge, on_round=leave, snapshot_rounds=3)
    with refused_at("", "my_learner:Ridge", "learner=..."):
        edgefl.resume(tmp_path / "left")
    trained: list[int] = []

    class Counting(Ridge):
        def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
            trained.append(round_)
            return super().train(ids, round_, now)

    Counting.__module__, Counting.__qualname__ = Ridge.__module__, Ridge.__qualname__
    edgefl.resume(tmp_path / "left", learner=Counting)
    for table in whole.glob("*.csv"):
        assert (tmp_path / "left" / table.name).read_bytes() == table.read_bytes()
    assert len(trained) <= 8  # only the rounds after the snapshot, of the run's 20 rounds


def test_the_run_is_another_one_than_without_the_learner(tmp_path: Path) -> None:
    scenario = edgefl.load_scenario(SCENARIO, ["sessions.rounds=1"])
    one = edgefl.simulate(scenario, tmp_path / "own", learner=Ridge).info
    other = edgefl.simulate(scenario, tmp_path / "none").info
    assert one["identity"]["hash"] != other["identity"]["hash"]
    assert "learner" not in other


def test_it_may_report_losses_where_sessions_end_by_them(tmp_path: Path) -> None:
    class Reporting(Ridge):
        def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
            losses = tuple(float(round_) for _ in ids)
            return replace(super().train(ids, round_, now), scalars={"loss_received": losses})

    adaptive = ["sessions={name: adaptive, count: 2, min_rounds: 2, max_rounds: 4}"]
    scenario = edgefl.load_scenario(SCENARIO, adaptive)
    out = edgefl.simulate(scenario, tmp_path / "run", learner=Reporting)
    assert pd.read_csv(out / "devices.csv").loss_received.notna().all()
    with refused_at("", "LocalRound.scalars['loss_received']"):
        edgefl.simulate(scenario, tmp_path / "silent", learner=Ridge)
    with refused_at("", "workload"):
        edgefl.simulate(scenario, tmp_path / "nobody")


def test_an_object_that_has_trained_is_told_of(tmp_path: Path) -> None:
    """An object may begin with the state of its last run; a class starts from scratch in each run."""
    scenario, learner = edgefl.load_scenario(SCENARIO), Ridge(assignment())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edgefl.simulate(scenario, tmp_path / "first", learner=learner)
        for run in "ab":
            edgefl.simulate(scenario, tmp_path / run, learner=Ridge)
    with pytest.warns(UserWarning, match="has trained in an earlier run, .*: give a class, or a function"):
        edgefl.simulate(scenario, tmp_path / "second", learner=learner)


def test_each_federation_has_a_learner_of_its_own(tmp_path: Path) -> None:
    layout = ["layout={rings: 1, isd_m: 200}", "radio.propagation.shadowing=spatial", "devices.count=40"]
    short = ["sessions.count=1", "sessions.rounds=2", "rounds.selector=all"]
    scenario = edgefl.load_scenario(SCENARIO, [*layout, *short])
    cells: list[int] = []

    def make(told: Assignment) -> Ridge:
        cells.append(told.cell)
        return Ridge(told)

    out = edgefl.simulate(scenario, tmp_path / "run", learner=make)
    assert cells == list(range(7))
    assert pd.read_csv(out / "rounds.csv").cell.nunique() > 1
    with refused_at("", "7 cells"):
        edgefl.simulate(scenario, tmp_path / "one", learner=Ridge(assignment()))


def test_a_server_whose_rounds_overlap_is_refused() -> None:
    server = ["radio.sharing=dynamic", "rounds={server: {name: fedbuff, buffer: 4}}"]
    scenario = edgefl.load_scenario(SCENARIO, server)
    with refused_at("rounds.server", "synchronous"):
        edgefl.simulate(scenario, learner=Ridge)


def test_a_server_that_weights_updates_is_refused_by_a_learner_without_weights(tmp_path: Path) -> None:
    unbiased = ["rounds.server={name: synchronous, unbiased: true}", "radio.link.uplink_waterfall_db=1.0"]
    with refused_at("", "unbiased", "aggregate(ids, weights)"):
        edgefl.simulate(edgefl.load_scenario(SCENARIO, unbiased), tmp_path / "run", learner=Ridge)


def test_a_scenario_that_trains_by_itself_is_refused() -> None:
    scenario = edgefl.load_scenario(EXAMPLES.parent / "scenarios" / "quickstart.yaml")
    with refused_at("learning", "quickstart.yaml:", "workload"):
        edgefl.simulate(scenario, "runs/never", learner=Ridge)


# ---- invalid learners, each with one message that names place and remedy

Change = Callable[[LocalRound], Any]


def changed(change: Change) -> type[Ridge]:
    class Bad(Ridge):
        def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> Any:
            return change(super().train(ids, round_, now))

    return Bad


def evaluating(evaluation: Any) -> type[Ridge]:
    class Bad(Ridge):
        def evaluate(self, present: Sequence[int] = ()) -> Any:
            return evaluation

    return Bad


def of(**attributes: Any) -> type[Ridge]:
    return type("Bad", (Ridge,), attributes)


def staged(*stages: Any) -> type[Ridge]:
    return of(session=lambda self, start: iter(stages))


class NoWork:
    """A learner without payload and FLOPs."""

    def __init__(self, told: Assignment) -> None:
        pass

    def session(self, start: SessionStart) -> Iterator[Any]:
        yield from ()


BAD: list[tuple[Any, str]] = [
    (changed(lambda one: replace(one, ids=one.ids[::-1])), "return the ids as given"),
    (changed(lambda one: replace(one, ids=(99, *one.ids[1:]))), "was called for devices"),
    (changed(lambda one: replace(one, iterations=(-1, *one.iterations[1:]))), "iterations of device"),
    (changed(lambda one: replace(one, samples=one.samples[:-1])), "samples has 7 values for 8 devices"),
    (changed(lambda one: replace(one, up_bits=(0.5, *one.up_bits[1:]))), "up_bits of device"),
    (changed(lambda one: replace(one, down_bits=5)), "down_bits has 5 for 8 devices"),
    (changed(lambda one: replace(one, scalars={"loss": (float("nan"),) * 8})), "which is not finite"),
    (
        changed(lambda one: replace(one, scalars={"loss": "abcdefgh"})),
        "loss is 'a'; it must be a number, or None",
    ),
    (changed(lambda one: replace(one, after={"nowhere": "training"})), "after['nowhere'] is 'training'"),
    (
        changed(lambda one: replace(one, scalars={"loss": (0.1,) * 8}, averaged={"loss": "nowhere"})),
        "averaged['loss'] is 'nowhere'",
    ),
    (changed(lambda one: None), "train() returned NoneType"),
    (evaluating(0.5), "evaluate() returned float"),
    (evaluating(Evaluation(50.0, None)), "accuracy 50; it must be from 0 to 1"),
    (evaluating(Evaluation(None, float("inf"))), "loss is inf"),
    (of(payload_bits=0), "payload_bits is 0; it must be an integer of at least 1"),
    (of(payload_bits=1.5), "payload_bits is 1.5; it must be an integer"),
    (of(flops_per_sample=float("nan")), "flops_per_sample is nan; it must be a number of at least 0"),
    (NoWork, "has no flops_per_sample and no payload_bits"),
    (3, "has no session() and cannot be called"),
    (
        lambda: Ridge(assignment()),
        "does not take one argument, an Assignment (too many positional arguments): give",
    ),
    (lambda one, two: None, "(missing a required argument: 'two'): give a learner, or a function that makes"),
    (of(session=lambda self, start: None), "session() returned NoneType"),
    (staged(), "no stage has rounds=None"),
    (staged(object()), "which has no facts and no train"),
    (of(facts={"phase": "train"}), "facts are dict; return edgefl.contract.StageFacts"),
    (of(facts=StageFacts("train round", None)), "phase is 'train round'; it must be"),
    (of(facts=StageFacts("train", 0)), "rounds of train is 0; it must be an integer of at least 1"),
    (of(facts=StageFacts("train", None, share=0)), "share of devices in train is 0"),
    (of(state=property()), "has restore and stages"),
]


@pytest.mark.parametrize(("learner", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_a_bad_learner_gets_one_message(learner: Any, message: str, tmp_path: Path) -> None:
    scenario = edgefl.load_scenario(SCENARIO, ["sessions.count=1", "sessions.rounds=1"])
    with refused_at("", message):
        edgefl.simulate(scenario, tmp_path / "run", learner=learner)


# ---- faults that only the conformance check detects

RANDOM, TESTS, HALF = np.random.default_rng(), count(), {"moment": np.zeros(8)}


def odd(learner: Ridge) -> dict[str, float]:
    return {"odd": 1.0} if learner.gram[0, 0] < 40 else {}


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        # draws random numbers without a named stream
        (of(evaluate=lambda *_: Evaluation(None, RANDOM.random())), "draw from Assignment.streams"),
        # each test changes the result of the next test
        (of(evaluate=lambda *_: Evaluation(None, next(TESTS))), "change nothing in evaluate()"),
        # the state lacks half of the model
        (of(restore=lambda self, arrays, facts: Ridge.restore(self, arrays | HALF, facts)), "into state()"),
        # a column is reported only in some rounds
        (
            of(evaluate=lambda self, *_: Evaluation(None, None, odd(self))),
            "return the same columns in all rounds",
        ),
        # JSON changes the key 1 of the state's facts into text
        (
            of(state=lambda self: (Ridge.state(self)[0], {"session": 1, "seen": {1: 2}})),
            "JSON cannot restore",
        ),
        # a learner yields no stage when it is restored
        (of(stages=lambda self: iter(())), "stages() of a restored learner"),
        (BAD[2][0], "iterations of device 0 is -1"),
    ],
)
def test_the_check_says_what_to_change(learner: Any, message: str) -> None:
    with refused_at("", message, kind=ContractError):
        check_learner(learner)


def test_a_stage_of_its_own_for_probes_is_played_too() -> None:
    class Probing(Ridge):
        def session(self, start: SessionStart) -> Iterator[Any]:
            probe = Ridge(self.told)
            vars(probe)["facts"] = StageFacts("probe", 2, 0.5, evaluates=False)
            probe.session_number = start.number
            yield probe
            yield from super().session(start)

    check_learner(Probing)
    assert Probing.facts.opening == Opening()
