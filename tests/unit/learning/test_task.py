"""Test tasks (classes, numbers, several labels, next token), and errors about data that do not fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.config import registry
from edgefl.config.component import build
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.federation.learner import TrainingData
from edgefl.learning.settings import LearningSettings
from edgefl.learning.tasks import Task
from edgefl.learning.tasks.regression import Regression
from tests.refusals import refused_at
from tests.tools.constants import made

CLOSE = 1e-6


class Blobs(Dataset):
    """A data set of eight samples with given targets."""

    targets: Any
    outputs: int = 2
    learns: str = "classification"

    @property
    def task(self) -> str:
        return self.learns

    def load(self) -> Data:
        split = Split(np.zeros((8, 3), np.float32), np.asarray(self.targets))
        return Data(split, split, self.outputs, np.float32(0), np.float32(1), ("a", "b")[: self.outputs])


def task(name: str, **parameters: Any) -> Task:
    return build(registry.get("tasks", name), parameters)


@pytest.mark.parametrize(
    ("given", "nouns"),
    [
        ({"targets": np.linspace(0, 1, 8)}, ("float64 [8]", "learning.task: regression")),
        ({"targets": np.eye(8, 2, dtype=np.int64)}, ("int64 [8, 2]", "multi_label")),
        ({"targets": np.arange(8)}, ("labels are 0 to 7", "0 to 1")),
        ({"targets": np.arange(8) % 2 - 1}, ("labels are -1 to 0",)),
        ({"targets": np.arange(8), "learns": "regression"}, ("int64 [8]",)),
        ({"targets": np.full(8, 0.5), "learns": "regression"}, ("num_classes is 2",)),
        ({"targets": np.full(8, 0.5), "learns": "regression", "outputs": 1}, ("targets are equal",)),
        ({"targets": np.full(8, np.nan), "learns": "regression"}, ("the training targets: sample 0",)),
        ({"targets": np.full((8, 2), 2.0, np.float32), "learns": "multi_label"}, ("float32 [8, 2]",)),
        ({"targets": np.eye(8, 3, dtype="f4"), "learns": "multi_label"}, ("3 labels", "num_classes is 2")),
    ],
)
def test_what_is_no_target_is_refused_at_the_data_set(given: dict[str, Any], nouns: tuple[str, ...]) -> None:
    settings = LearningSettings(dataset=Blobs(**given), model="logistic")
    with refused_at("learning.dataset", *nouns):
        TrainingData(settings, torch.device("cpu"), devices=1)


def test_labels_are_taken() -> None:
    data = Blobs(targets=np.arange(8) % 2).load()
    task("classification").check(data)
    task("classification").check(replace(data, test=Split(data.test.x[:0], data.test.y[:0])))


def test_cross_entropy_and_accuracy_from_their_definitions() -> None:
    logits, y = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), torch.tensor([0, 2])
    expected = [float(np.log(1 + np.exp(-1) + np.exp(-2))), float(np.log(3))]
    classes = task("classification")
    assert classes.loss(logits, y, "none").tolist() == pytest.approx(expected)
    assert float(classes.loss(logits, y, "sum")) == pytest.approx(sum(expected))
    assert float(classes.loss(logits, y, "mean")) == pytest.approx(sum(expected) / 2)
    assert classes.total(logits, y) == 1
    # the perplexity of a model that guesses is the number of tokens
    assert task("next_token").further(np.log(81.0)) == {"perplexity": pytest.approx(81.0)}


def test_regression_explains_nothing_by_the_mean_and_all_by_the_truth() -> None:
    """R2 is 0 if the mean of the test targets, 6, is predicted, and 1 if the targets, 3 and 9, are predicted."""
    x = np.zeros((3, 1), np.float32)
    data = Data.unscaled(
        Split(x, np.array([2, 4, 6], np.float32)), Split(x[:2], np.array([3, 9], np.float32)), ("y",)
    )
    fitted = made(Regression, parts=3).fitted(data)
    y, std = torch.tensor([3.0, 9.0]), (8 / 3) ** 0.5

    def r2(*predicted: float) -> float:
        return fitted.total((torch.tensor(predicted)[:, None] - 4) / std, y) / len(y)

    assert r2(3, 9) == pytest.approx(1)
    assert r2(6, 6) == pytest.approx(0, abs=CLOSE)
    assert r2(3, 6) == pytest.approx(0.5)  # half of the squared error of the mean
    assert r2(0, 0) == pytest.approx(1 - (9 + 81) / 18)
    assert fitted.loss(torch.zeros(2, 1), y, "none").tolist() == pytest.approx([3 / 8, 25 * 3 / 8])
    assert fitted.scaling() == pytest.approx((4, std))
    assert fitted.kinds(data.train.y).tolist() == [0, 1, 2]
    assert fitted.kinds(np.array([-9.0, 99.0])).tolist() == [0, 2]


def test_several_labels_by_hand() -> None:
    """F1 is 2/3 if {a, b} is predicted for {a}, 0 if {} for {b}, and 1 if {} for {}; losses are means."""
    outputs = torch.tensor([[1.0, 2.0], [-1.0, -1.0], [-3.0, -1.0]])
    y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    several = task("multi_label")
    assert several.scores(outputs, y).tolist() == pytest.approx([2 / 3, 0, 1])
    surprise = (np.log1p(np.exp(-1)) + np.log1p(np.exp(2))) / 2
    assert float(several.losses(outputs, y)[0]) == pytest.approx(surprise)
    assert several.kinds(y.numpy()).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("key", "value", "nouns"),
    [
        ("algorithm", "moon", ("moon", "regression")),
        ("warm_start", "continuous", ("continuous",)),
        ("drift", {"name": "label_swap"}, ("label_swap", "noise or rotation")),
        ("evaluation.metrics", ["auc"], ("auc",)),
    ],
)
def test_what_is_made_for_classes_is_refused_by_name(key: str, value: Any, nouns: tuple[str, ...]) -> None:
    section, _, own = key.rpartition(".")
    given = {section: {own: value}} if section else {key: value}
    settings = LearningSettings.model_validate({"dataset": "diabetes", "model": "logistic", **given})
    with refused_at(f"learning.{key}", *nouns):
        TrainingData(settings, torch.device("cpu"), devices=1)
