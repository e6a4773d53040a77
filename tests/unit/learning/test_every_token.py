"""Test targets at each position of a text: the loss by hand, all kernels, and compatible settings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import edgefl
from edgefl import load_scenario
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.models.lstm import Lstm
from edgefl.learning.tasks.every_token import EveryToken
from edgefl.run.plan import prepare
from edgefl.testing.cell import within
from tests.refusals import refused_at

CLOSE = 1e-6
STEPS, DEVICES, LR, RHO = 50, 3, 0.5, 0.5
LENGTH, TOKENS = 5, 4


class Letters(Dataset):
    """Texts by three writers, in which each letter is 0, 1 or 2 letters after the previous letter, modulo four."""

    learns: str = "every_token"
    wrong: int = 0

    @property
    def task(self) -> str:
        return self.learns

    def load(self) -> Data:
        rng = np.random.default_rng(0)
        text = (rng.integers(0, 4, (43, 1)) + rng.integers(0, 3, (43, LENGTH + 1)).cumsum(1)) % TOKENS
        x, y = (text[:, :-1] + 1).astype(np.uint8), text[:, 1:] + self.wrong
        y = y if self.learns == "every_token" else y[:, -1]
        groups = np.arange(43) % 3
        train, test = (Split(x[part], y[part], groups[part]) for part in (slice(31), slice(31, None)))
        return Data.unscaled(train, test, tuple("abcd"), tuple("xyz"))


def scenario(rounds: int = 1, **learning: Any) -> edgefl.Scenario:
    given = {
        "dataset": {"name": f"{__name__}:Letters"},
        "partition": "iid",
        "model": {"name": "lstm", "vocabulary": 5, "hidden": 6, "targets": "every"},
        "local": {"batch": 4, "lr": LR, "steps": STEPS, "momentum": RHO},
    }
    settings = within(given, learning)
    whole = {"name": "text", "devices": {"count": DEVICES}, "learning": settings}
    return load_scenario({**whole, "sessions": {"name": "schedule", "count": 1, "rounds": rounds}})


def test_loss_score_and_kinds_by_hand() -> None:
    """Loss and score of two texts with three positions and two tokens equal a derivation in NumPy."""
    outputs = np.array(
        [[[2.0, 0.0], [0.0, 1.0], [3.0, 3.5]], [[0.0, 0.0], [1.0, -1.0], [0.0, 4.0]]], np.float32
    )
    y = np.array([[0, 0, 1], [1, 0, 0]])
    share = np.exp(outputs) / np.exp(outputs).sum(-1, keepdims=True)
    each = np.array([[-np.log(share[b, t, y[b, t]]) for t in range(3)] for b in range(2)])
    task = EveryToken()
    given = torch.from_numpy(outputs), torch.from_numpy(y)
    assert task.losses(*given).tolist() == pytest.approx(each.mean(1), rel=1e-6)
    assert float(task.loss(*given, "mean")) == pytest.approx(each.mean(), rel=1e-6)
    # right predictions: 1 and 3 of text 1, and 2 of text 2 (if outputs are equal, the first token is predicted)
    assert task.scores(*given).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert task.kinds(y).tolist() == [1, 0]
    assert task.further(each.mean())["perplexity"] == pytest.approx(np.exp(each.mean()))


def test_the_lstm_says_after_every_position_what_it_says_after_the_last() -> None:
    torch.manual_seed(0)
    every = Lstm(hidden=6, targets="every").build((LENGTH,), TOKENS)
    last = Lstm(hidden=6).build((LENGTH,), TOKENS)
    last.load_state_dict(every.state_dict())
    x = torch.randint(0, 90, (3, LENGTH))
    outputs = every(x)
    assert outputs.shape == (3, LENGTH, TOKENS)
    for end in range(1, LENGTH + 1):
        assert torch.allclose(outputs[:, end - 1], last(x[:, :end]), atol=CLOSE)


@pytest.mark.parametrize(
    "learning",
    [
        {"partition": "natural", "evaluation": {"tested_on": "devices"}},
        {"partition": {"name": "dirichlet", "alpha": 1.0}, "evaluation": {"validation": 0.2}},
        {"local": {"early_stopping": 0.05, "epochs": 4}},
    ],
    ids=["devices", "validation", "early"],
)
def test_a_run_scores_all_positions_and_its_model_loads(tmp_path: Path, learning: dict[str, Any]) -> None:
    """The loaded model's score on all test texts, computed from outputs and targets, equals the run's.

    Three next letters are equally likely, so a model that does not see the future is right in at most 1/3 of 60
    targets, plus chance, for which 4 standard deviations are 0.24.
    """
    out = edgefl.simulate(scenario(rounds=4, **learning), out=tmp_path / "run", device="cpu")
    rounds, model, test = out.rounds, edgefl.load_model(out), Letters().load().test
    right = (model.module(model.normalised(test.x)).argmax(-1).numpy() == test.y).mean()
    mean = "accuracy_by_samples" if "tested_on" in learning.get("evaluation", {}) else "accuracy"
    assert right == pytest.approx(rounds[mean].iloc[-1], abs=1e-9)
    assert right < 1 / 3 + 0.24
    assert rounds["perplexity"].iloc[-1] == pytest.approx(np.exp(rounds["loss"].iloc[-1]))
    assert ("accuracy_validation" in rounds) == ("validation" in learning.get("evaluation", {}))


@pytest.mark.parametrize(
    ("learning", "place", "nouns"),
    [
        ({"model": {"targets": "last"}}, "model", ("[1, 4]", "5", "targets: every")),
        ({"model": "logistic"}, "model", ("[1, 4]", "[batch, 5, 4]")),
        ({"dataset": {"learns": "next_token"}}, "model", ("[1, 5, 4]", "every_token")),
        ({"dataset": {"learns": "every_token", "wrong": 1}}, "dataset", ("to 4",)),
        ({"task": "next_token"}, "task", ("int64 [31, 5]", "every_token")),
        ({"dataset": {"learns": "next_token"}, "task": "every_token"}, "task", ("[31]", "next_token")),
        ({"algorithm": "moon"}, "algorithm", ("moon", "every_token")),
        ({"evaluation": {"metrics": ["macro_f1"]}}, "evaluation.metrics", ("macro_f1",)),
    ],
)
def test_incompatible_settings(learning: dict[str, Any], place: str, nouns: tuple[str, ...]) -> None:
    if "dataset" in learning:
        learning = {**learning, "dataset": {"name": f"{__name__}:Letters", **learning["dataset"]}}
    with refused_at(f"learning.{place}", *nouns):
        prepare(scenario(**learning), device="cpu")
