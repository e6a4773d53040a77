"""Test the devices' own test data, and scores on these data."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.scores.device_tests import DeviceTests, apportioned, score
from edgefl.learning.scores.tester import ModelTester
from edgefl.learning.thread_pool import ThreadPool
from edgefl.rng import Streams

TRAIN = np.repeat(np.arange(4), 100)  # labels of 400 training samples
TEST = np.repeat(np.arange(4), 20)


def dealt_to(*held: np.ndarray, count: int | None = None, **groups: Any) -> DeviceTests:
    device_data: Any = SimpleNamespace(key=0, samples=lambda device: held[device])
    return DeviceTests(
        device_data, TEST, groups.get("test"), TRAIN, groups.get("train"), count=count, streams=Streams(1)
    )


def test_labels_are_mixed_as_in_training() -> None:
    """Labels 0 and 3 keep their ratio 3 : 1; a device with 40 of 400 training samples has 8 of 80 test samples."""
    held = np.concatenate([np.arange(30), np.arange(300, 310)])
    own = dealt_to(held).samples(0)
    assert np.bincount(TEST[own], minlength=4).tolist() == [6, 0, 0, 2]
    own = dealt_to(held, count=20).samples(0)
    assert np.bincount(TEST[own], minlength=4).tolist() == [15, 0, 0, 5]
    assert len(set(own.tolist())) == len(own)


def test_a_group_is_tested_on_its_own_samples() -> None:
    train, test = np.arange(400) // 40, np.arange(80) // 8
    tests = dealt_to(np.arange(40, 80), np.arange(30, 50), train=train, test=test)
    assert tests.samples(0).tolist() == list(range(8, 16))
    assert len(tests.samples(1)) == 4  # a device with two groups gets samples by labels


def test_a_device_without_data_has_no_test() -> None:
    assert len(dealt_to(np.zeros(0, np.int64)).samples(0)) == 0


@pytest.mark.parametrize("count", [1, 7, 20])
def test_apportioned_counts_add_up(count: int) -> None:
    shares = np.array([0.5, 0.3, 0.2])
    whole = apportioned(shares, count, np.random.default_rng(0))
    assert whole.sum() == count
    assert np.all(np.abs(whole - shares * count) < 1)


def test_scores_by_hand() -> None:
    """The model outputs 0 for x < 0 and 1 otherwise, with a loss of -log sigmoid of the signed distance from 0."""
    x = np.array([[-1.0], [-2], [3], [4], [-1]], np.float32)
    y = np.array([0, 0, 1, 0, 1])
    test = SplitInMemory(Split(x, y), np.array(0, np.float32), np.array(1, np.float32), torch.device("cpu"))
    tester = ModelTester(Logistic(), nn.Linear(1, 2), ThreadPool(1))
    right, wrong = (torch.tensor([-w, w, 0.0, 0.0]) for w in (0.5, -0.5))
    samples = [np.array([0, 1, 2]), np.array([2, 3]), np.zeros(0, np.int64)]
    scores = score(tester, right, test, samples)
    assert scores.accuracy[:2].tolist() == [1.0, 0.5]
    assert np.isnan(scores.accuracy[2])
    assert scores.loss[0] == pytest.approx(np.log1p(np.exp(-np.array([1.0, 2, 3]))).mean(), rel=1e-6)
    mean, _, deviation = scores.mean()
    assert (mean, deviation) == (0.75, 0.25)  # mean over devices with test samples
    assert scores.by_samples() == 0.8  # four of five samples are correct
    own = score(tester, torch.stack([right, wrong, right]), test, samples)
    assert own.accuracy[:2].tolist() == [1.0, 0.5]
    assert score(tester, wrong, test, samples[:1]).accuracy.tolist() == [0.0]
