"""Compare metrics with their definitions, sample by sample."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edgefl import load_model, load_scenario, simulate
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.scores.metrics import METRICS
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
    # each row occurs twice, with different labels, so that outputs are tied too
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


def test_a_run_has_them_as_columns(tmp_path: Path) -> None:
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
