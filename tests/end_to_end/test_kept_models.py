"""Test that models saved by a run have the accuracies that the run recorded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import edgefl
from edgefl import Results, Scenario, load_model, load_scenario, simulate
from edgefl.learning.datasets.digits import Digits
from edgefl.run.plan import prepare
from tests.refusals import refused_at
from tests.tables import sections
from tests.tools.leaving import goes_on

TOLERANCE = 1e-9
BASE: dict[str, Any] = sections("""
    name=kept; seed=3; devices={count: 8}; sessions={name: schedule, count: 2, rounds: 3}
    learning.dataset=digits; learning.partition={name: dirichlet, alpha: 0.5}; learning.model=logistic
    learning.local={batch: 16, lr: 0.05}
""")
DRIFT = {"name": "label_swap", "at": 2, "share": 0.5}


def scenario(**changes: Any) -> Scenario:
    return load_scenario(BASE).with_(**changes)


def run(out: Path, **changes: Any) -> Results:
    return simulate(scenario(**changes), out, device="cpu")


def hits(model: edgefl.TrainedModule, x: np.ndarray, y: np.ndarray) -> Tensor:
    with torch.no_grad():
        return model.module(model.normalised(x)).argmax(1) == torch.from_numpy(y)


@pytest.mark.parametrize("name", ["logistic", "mlp2"])
def test_the_last_model_has_the_last_accuracy(name: str, tmp_path: Path) -> None:
    results = run(tmp_path / "run", learning__model=name)
    model, test = load_model(results), Digits().load().test
    wanted = results.rounds.accuracy.iloc[-1]
    tested = np.isin(test.y, [int(label) for label in str(results.sessions.labels.iloc[-1]).split()])
    assert float(hits(model, test.x[tested], test.y[tested]).double().mean()) == pytest.approx(
        wanted, abs=TOLERANCE
    )
    assert model.label_names == tuple(map(str, range(10)))
    assert {key: model.about[key] for key in ("session", "phase", "round", "round_of_run")} == {
        "session": 2, "phase": "train", "round": 3, "round_of_run": 6,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("algorithm", "column", "further"),
    [
        ("ditto", "accuracy_personal", {}),
        ({"name": "apfl", "alpha": 0.4}, "accuracy_personal", {}),
        ("local_only", "accuracy_personal", {}),
        ({"name": "hypcluster", "models": 3}, "accuracy", {}),
        ("oracle", "accuracy", {"learning__drift": DRIFT}),
    ],
)
def test_devices_models_are_those_that_were_tested(
    algorithm: Any, column: str, further: dict[str, Any], tmp_path: Path
) -> None:
    """The saved models, each tested on its device's samples, have the mean accuracy in rounds.csv."""
    changes = {"learning__algorithm": algorithm, "learning__evaluation__tested_on": "devices", **further}
    changes["record__models"] = "personal"
    results = run(tmp_path / "run", **changes)
    # a second learner provides the test samples, which depend only on the scenario and the session
    trainer = prepare(scenario(**changes), device="cpu").learner.trainer
    trainer.device_data.deal(2)
    split = trainer.training_data.test
    found = []
    for device in range(8):
        rows = trainer.device_tests.samples(device)
        if not len(rows):
            continue
        moment = results.rounds.index[-1]
        drifted = bool(further) and bool(
            trainer.drifting.drifted([device], edgefl.learning.drifts.Moment(int(moment) + 1, 0.0))[0]
        )
        y = split.y[rows + split.count * drifted].numpy()
        x = Digits().load().test.x[rows]
        found.append(float(hits(load_model(results, device=device), x, y).double().mean()))
    assert np.mean(found) == pytest.approx(results.rounds[column].iloc[-1], abs=TOLERANCE)


def test_best_and_every_round_go_on_where_a_run_was_left(tmp_path: Path) -> None:
    for record in ("best", 2):
        changes = {"record__models": record, "sessions__count": 4}
        whole = goes_on(scenario(**changes), tmp_path / str(record), after=9, every=4)
        accuracy = whole.rounds.accuracy
        if record == "best":
            best = load_model(whole, kept="best")
            assert best.about["accuracy"] == accuracy.max()
            assert best.about["round_of_run"] == 1 + accuracy.argmax()
        else:
            names = {file.stem for file in (whole / "models").iterdir()}
            assert names == {"cell0", *(f"cell0-round{n}" for n in range(2, 13, 2))}
            last, kept = load_model(whole), load_model(whole, kept=12)
            assert torch.equal(last.module[1].weight, kept.module[1].weight)


def test_a_run_begins_with_anothers_model(tmp_path: Path) -> None:
    first = run(tmp_path / "first")
    path = str(first / "models" / "cell0.safetensors")
    second = run(tmp_path / "second", learning__initial={"path": path})
    assert second.sessions.accuracy_start.iloc[0] == first.rounds.accuracy.iloc[-1]
    assert second.info["identity"]["data"]["learning.initial.path"]
    with refused_at("", "cell0.safetensors"):
        run(tmp_path / "third", learning__initial={"path": path}, learning__model="mlp2")
    with refused_at("learning.initial.path", "nowhere.safetensors"):
        run(tmp_path / "fourth", learning__initial={"path": str(tmp_path / "nowhere.safetensors")})


def test_none_are_kept_where_none_are_wanted(tmp_path: Path) -> None:
    results = run(tmp_path / "run", record__models="none")
    assert not (results / "models").exists()
    with refused_at("", "record.models"):
        load_model(results)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    results = run(tmp_path / "run")
    with refused_at("", "cell0-best"):
        load_model(results, kept="best")
    with refused_at("", "device 3", "record.models: personal"):
        load_model(results, device=3)
