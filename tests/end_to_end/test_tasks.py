"""Test that a regression run's tables have R2, that the analysis names R2, and that the model outputs numbers."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgefl
from edgefl.analysis import load_runs
from edgefl.learning.datasets.diabetes import Diabetes
from tests.refusals import refused_at
from tests.tables import sections

REGRESSION: dict[str, Any] = sections("""
    name=regression; seed=1; devices={count: 6}; sessions={name: schedule, count: 2, rounds: 3}
    learning.dataset=diabetes; learning.partition=iid; learning.model=logistic
    learning.local={batch: 32, lr: 0.02}
    learning.evaluation={tested_on: devices, scores_every: 3, validation: 0.2}; record={models: best}
""")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgefl.simulate(REGRESSION, out=tmp_path_factory.mktemp("tasks") / "run", device="cpu")


def columns(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return next(csv.reader(file))


def test_no_table_of_a_regression_has_an_accuracy(run: Path) -> None:
    for table in ("rounds", "devices", "sessions", "evaluation"):
        assert not [name for name in columns(run / f"{table}.csv") if name.startswith("accuracy")]
    assert {"r2", "r2_std", "r2_by_samples", "r2_worst_tenth", "r2_validation"} <= set(
        columns(run / "rounds.csv")
    )
    assert "r2_start" in columns(run / "sessions.csv")
    assert "r2" in columns(run / "evaluation.csv")
    assert json.loads((run / "run.json").read_text())["score"] == "r2"


def test_the_analysis_goes_by_the_score_and_says_so(run: Path) -> None:
    runs = load_runs(run)
    assert runs.rounds["accuracy"].equals(runs.rounds["r2"])
    assert "the score of these runs' task is R2" in runs.said()[0]


def test_runs_with_other_scores_are_not_compared(run: Path, tmp_path: Path) -> None:
    """Runs scored by R2 and by accuracy are not compared; if run.json names no score, the score is accuracy."""
    about = json.loads((run / "run.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    for file in run.glob("*.csv"):
        text = file.read_text()
        (other / file.name).write_text(text.replace("r2", "accuracy"))
    (other / "scenario.yaml").write_text((run / "scenario.yaml").read_text())
    (other / "run.json").write_text(json.dumps({**about, "score": "accuracy", "name": "other"}))
    with refused_at("", "r2", "accuracy", kind=ValueError):
        load_runs([run, other])


def test_the_best_model_gives_numbers_in_the_units_of_the_targets(run: Path) -> None:
    """The saved model's predictions have the R2 of rounds.csv, 1 - MSE / variance over all test samples."""
    model = edgefl.load_model(run)
    data = Diabetes().load()
    assert model.inputs.target_mean == pytest.approx(data.train.y.mean(dtype=np.float64))
    predicted = model.numbers(model.module(model.normalised(data.test.x))).detach().numpy()
    r2 = 1 - ((predicted - data.test.y) ** 2).mean() / data.test.y.var()
    last = float(load_runs(run).rounds["r2"].iloc[-1])
    # each of six devices is tested on a sixth of 89 samples, so the mean of six R2 values errs by about 1 / sqrt(89)
    assert r2 == pytest.approx(last, abs=3 / 89**0.5)
    best = edgefl.load_model(run, kept="best")
    assert best.about["r2"] == pytest.approx(load_runs(run).rounds["r2_validation"].max())
