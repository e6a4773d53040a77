"""Test that devices' scores are recorded, and that their mean equals the score in rounds.csv."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edgefl import Results, load_scenario, simulate
from edgefl.contract import SessionStart
from edgefl.run.plan import prepare
from tests.tables import sections

EXACT = 1e-12  # both means are of the same numbers, but sums in a different order round differently
BASE: dict[str, Any] = sections("""
    name=scores; seed=3; devices={count: 12}; sessions={name: schedule, count: 2, rounds: 4}
    learning.dataset=digits; learning.partition={name: dirichlet, alpha: 0.5}; learning.model=logistic
    learning.local={batch: 16, lr: 0.05}; learning.evaluation={tested_on: devices, scores_every: 2}
""")


def run(out: Path, **changes: Any) -> Results:
    return simulate(load_scenario(BASE).with_(**changes), out, device="cpu")


@pytest.mark.parametrize("algorithm", ["fedavg", "ditto"])
def test_means_of_scores_are_those_of_the_rounds(algorithm: str, tmp_path: Path) -> None:
    results = run(tmp_path / "run", learning__algorithm=algorithm)
    scores, rounds = results.evaluation, results.rounds.set_index(["session", "round"])
    assert sorted(set(zip(scores["session"], scores["round"], strict=True))) == [
        (1, 2), (1, 4), (2, 2), (2, 4)
    ]  # fmt: skip
    assert rounds.accuracy.notna().all(), "every round is tested; every second round has rows"
    for place, own in scores.groupby(["session", "round"]):
        told = rounds.loc[place]
        assert list(own.device) == list(range(12))
        accuracy = own.accuracy.to_numpy()
        assert accuracy.mean() == pytest.approx(told.accuracy, abs=EXACT)
        assert accuracy.std() == pytest.approx(told.accuracy_std, abs=EXACT)
        assert np.average(accuracy, weights=own.samples) == pytest.approx(told.accuracy_by_samples, abs=EXACT)
        assert np.sort(accuracy)[:2].mean() == pytest.approx(told.accuracy_worst_tenth, abs=EXACT)  # of 12
        if algorithm == "ditto":
            assert own.accuracy_personal.mean() == pytest.approx(told.accuracy_personal, abs=EXACT)
            assert (own.loss_personal < own.loss).all(), "each device has trained only on its own data"
        else:
            assert own.accuracy_personal.isna().all()


def test_the_norm_of_an_update_is_what_it_says(tmp_path: Path) -> None:
    """In the first round the recorded norm is the norm of a device's trained model minus its received model."""
    changes = {
        "rounds__selector": {"name": "best_norm", "count": 5},
        "devices__count": 5,
        "sessions__count": 1,
    }
    results = run(tmp_path / "run", **changes)
    learner = prepare(load_scenario(BASE).with_(**changes), device="cpu").learner
    next(iter(learner.session(SessionStart(1, tuple(range(5)), 4)))).train(range(5), 1)
    trained = learner.federation.model.waiting_round(range(5))
    first = results.devices[(results.devices.session == 1) & (results.devices["round"] == 1)]
    change = (trained.rows - trained.start).double().norm(dim=1).tolist()
    assert first.update_norm.tolist() == pytest.approx(change, rel=1e-9)


def test_fairness_reads_them(tmp_path: Path) -> None:
    from edgefl.analysis import report_fairness

    results = run(tmp_path / "run", learning__algorithm="ditto")
    report = report_fairness(results, out=tmp_path / "report")
    table = pd.read_csv(tmp_path / "report" / "fairness.csv").set_index("model")
    assert table.loc["served", "mean"] == pytest.approx(results.rounds.accuracy.iloc[-1], abs=EXACT)
    assert table.loc["own", "mean"] == pytest.approx(results.rounds.accuracy_personal.iloc[-1], abs=EXACT)
    assert report.figure is not None
    assert report.figure.exists()
