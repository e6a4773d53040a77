"""What is learned: labels, and the words for what is not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.errors import EdgeflError
from edgefl.learning import task
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.learner import TrainingData
from edgefl.learning.settings import LearningSettings


class Blobs(Dataset):
    """Eight samples with these targets."""

    targets: Any

    def load(self) -> Data:
        split = Split(np.zeros((8, 3), np.float32), np.asarray(self.targets))
        return Data(split, split, 2, np.float32(0), np.float32(1), ("a", "b"))

    def check(self) -> None:
        pass


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (np.linspace(0, 1, 8), r"the training targets are float64 \[8\].*regression is not supported"),
        (np.eye(8, 2, dtype=np.int64), r"int64 \[8, 2\].*one label per sample"),
        (np.arange(8), r"labels are 0 to 7; with num_classes 2 they must be 0 to 1"),
        (np.arange(8) % 2 - 1, r"labels are -1 to 0"),
    ],
)
def test_what_is_no_label_is_refused_at_the_data_set(targets: np.ndarray, words: str) -> None:
    settings = LearningSettings(dataset=Blobs(targets=targets), model="logistic")
    with pytest.raises(EdgeflError, match=words) as error:
        TrainingData(settings, torch.device("cpu"), devices=1)
    assert error.value.place == ("learning", "dataset")


def test_labels_are_taken() -> None:
    data = Blobs(targets=np.arange(8) % 2).load()
    task.require_labels(data)
    task.require_labels(replace(data, test=Split(data.test.x[:0], data.test.y[:0])))


def test_loss_and_metric_from_their_definitions() -> None:
    logits, y = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), torch.tensor([0, 2])
    expected = [float(np.log(1 + np.exp(-1) + np.exp(-2))), float(np.log(3))]
    assert task.loss(logits, y, "none").tolist() == pytest.approx(expected)
    assert float(task.loss(logits, y, "sum")) == pytest.approx(sum(expected))
    assert float(task.loss(logits, y, "mean")) == pytest.approx(sum(expected) / 2)
    assert task.hits(logits, y) == 1
