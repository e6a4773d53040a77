"""Compare metrics with their definitions, sample by sample, and test scores on the devices' own test data."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgefl import load_model, load_scenario, simulate
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.scores.device_tests import DeviceTests, apportioned, score
from edgefl.learning.scores.metrics import METRICS
from edgefl.learning.scores.tester import ModelTester
from edgefl.learning.thread_pool import ThreadPool
from edgefl.rng import Streams
from tests.refusals import refused_at
from tests.tables import sections

EXACT = 1e-12
SAMPLES, CLASSES = 60, 7
rng = np.random.default_rng(1)
# logits are rounded to produce ties
LOGITS = torch.from_numpy(rng.normal(size=(SAMPLES, CLASSES)).round(1))
Y = torch.from_numpy(rng.integers(0, CLASSES - 1, SAMPLES))  # the last label does not occur


def test_top5_counts_labels_among_the_five_largest() -> None:
    distinct = LOGITS + torch.linspace(0, 1e-6, CLASSES)
    wanted = [(row > row[label]).sum() < 5 for row, label in zip(distinct, Y, strict=True)]
    assert METRICS["top5"](distinct, Y) == pytest.approx(np.mean([bool(one) for one in wanted]), abs=EXACT)


def test_macro_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    found, scores = LOGITS.argmax(1).tolist(), []
    for label in sorted(set(Y.tolist())):
        pairs = list(zip(found, Y.tolist(), strict=True))
        right = sum(f == y == label for f, y in pairs)
        precision = right / max(1, sum(f == label for f, _ in pairs))
        recall = right / sum(y == label for _, y in pairs)
        scores.append(2 * precision * recall / (precision + recall) if right else 0.0)
    assert METRICS["macro_f1"](LOGITS, Y) == pytest.approx(np.mean(scores), abs=EXACT)


def test_auc_is_the_share_of_pairs_in_order() -> None:
    # each row occurs twice, with different labels, so that some outputs are equal
    logits, y = torch.cat([LOGITS, LOGITS]), torch.cat([Y, Y.roll(1)])
    outputs, areas = logits.softmax(1), []
    for label in sorted(set(y.tolist())):
        own, column = label == y, outputs[:, label]
        mine, others = column[own].tolist(), column[~own].tolist()
        areas.append(np.mean([(a > b) + 0.5 * (a == b) for a, b in itertools.product(mine, others)]))
    assert METRICS["auc"](logits, y) == pytest.approx(np.mean(areas), abs=EXACT)
    assert np.isnan(METRICS["auc"](LOGITS[:3], torch.zeros(3, dtype=torch.int64)))


def test_perplexity_of_a_guess_is_the_number_of_labels() -> None:
    assert METRICS["perplexity"](torch.zeros(5, CLASSES), torch.arange(5)) == pytest.approx(CLASSES)


BASE: dict[str, Any] = sections("""
    name=metrics; devices={count: 5}; sessions={name: schedule, count: 1, rounds: 4}; learning.dataset=digits
    learning.partition=iid; learning.model=logistic; learning.local={batch: 16}
    learning.evaluation={every: 2, metrics: [perplexity, auc, macro_f1, top5]}
""")  # fmt: skip


def test_a_run_has_metrics_as_columns(tmp_path: Path) -> None:
    results = simulate(load_scenario(BASE), tmp_path / "run", device="cpu")
    rounds = results.rounds
    assert rounds.perplexity.notna().tolist() == [False, True, False, True]
    assert rounds.perplexity.dropna().to_numpy() == pytest.approx(np.exp(rounds.loss.dropna()), rel=1e-6)
    model, test = load_model(results), Digits().load().test
    logits = model.module(model.normalised(test.x)).detach().double()
    last = rounds.iloc[-1]
    for name in ("auc", "macro_f1", "top5"):
        assert last[name] == pytest.approx(METRICS[name](logits, torch.from_numpy(test.y)), abs=1e-6)
    assert last.accuracy < last.top5 <= 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning__evaluation__metrics": ["auc", "auc"]}, "list each metric once"),
        ({"learning__evaluation__metrics": ["f2"]}, "top5"),
    ],
)
def test_what_has_no_meaning_is_refused(changes: dict[str, Any], message: str) -> None:
    with refused_at("", message):
        load_scenario(BASE).with_(**changes)


TRAIN = np.repeat(np.arange(4), 100)  # labels of 400 training samples
TEST = np.repeat(np.arange(4), 20)


def dealt_to(*held: np.ndarray, count: int | None = None, **groups: Any) -> DeviceTests:
    device_data: Any = SimpleNamespace(key=0, samples=lambda device: held[device])
    test, train = (
        SimpleNamespace(labels=labels, groups=groups.get(name))
        for name, labels in (("test", TEST), ("train", TRAIN))
    )
    return DeviceTests(device_data, test, train, count=count, streams=Streams(1))


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


def test_rare_labels_are_tested_as_often_as_they_are_held() -> None:
    """Each label's mean count is exact, within 4.5 standard errors of a count between two integers.

    Rounding to the nearest would never test a label with less than half a sample, on which local models are worst.
    """
    shares, count, draws = np.array([0.55, 0.32, 0.09, 0.03, 0.01]), 7, 4000
    drawn = np.array([apportioned(shares, count, np.random.default_rng(k)) for k in range(draws)])
    assert (drawn.sum(1) == count).all()
    part = shares * count % 1
    error = np.sqrt(part * (1 - part) / draws)
    assert (np.abs(drawn.mean(0) - shares * count) < 4.5 * error).all()


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


def test_scores_are_empty_if_no_device_has_test_data(tmp_path: Path) -> None:
    """Each device has one of 40 writers, but the only test sample is another writer's."""
    x = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    y, writer = np.arange(80) % 2, np.arange(80) // 2
    np.savez(
        tmp_path / "own.npz",
        x_train=x,
        y_train=y,
        groups_train=writer,
        x_test=x[:1],
        y_test=y[:1],
        groups_test=np.array([40]),
    )
    learning = {
        "dataset": {"name": "npz", "path": str(tmp_path / "own.npz")},
        "partition": "natural",
        "evaluation": {"tested_on": "devices"},
    }
    changes = {"learning": {"model": "logistic", "local": {"batch": 2}, **learning}}
    results = simulate({**BASE, **changes}, tmp_path / "run", device="cpu")
    empty = ["accuracy", "loss", "accuracy_std", "accuracy_by_samples", "accuracy_worst_tenth"]
    assert results.rounds[empty].isna().all(axis=None)
    assert results.sessions.accuracy_start.isna().all()
    assert "nan" not in (tmp_path / "run" / "rounds.csv").read_text()
