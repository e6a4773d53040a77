"""Test the effects of an algorithm's methods: a second model, early stopping, counted work, absent devices."""

import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from edgefl.learning.algorithms import Algorithm, Received
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.feddc import FedDc
from edgefl.learning.algorithms.feddrift import FedDrift
from edgefl.learning.algorithms.hypcluster import HypCluster
from edgefl.learning.algorithms.local_only import LocalOnly
from edgefl.learning.algorithms.scaffold import Scaffold
from edgefl.learning.data.batches import keep_apart
from edgefl.learning.local.handed import STATE, Handed
from edgefl.learning.models import Model
from edgefl.learning.settings import CostSettings
from edgefl.learning.updates.device_side import PERSONAL_MODEL
from edgefl.learning.updates.updates import LocalResult
from tests.refusals import refused_at
from tests.unit.learning.softmax import (
    ALL,
    CLASSES,
    EPOCHS,
    EXACT,
    INPUTS,
    LR,
    OWN,
    ROUNDS,
    M,
    kept,
    plan,
    plans,
    played,
    start,
    track,
    travel,
)
from tests.unit.learning.test_algorithms import (
    APFL,
    CLUSTERS,
    DITTO,
    EarlyStopping,
    TopK,
    apfl,
    ditto,
    early_stopping,
    hypcluster,
    name_of,
)

SECOND, THIRD = ROUNDS[1:]
LINES_OF_A_SCREEN = 60


class Normed(Model):
    """A model with batch norm and dropout."""

    typical_input = (2, 3)
    typical_classes = CLASSES

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        layers = [nn.Flatten(), nn.Linear(INPUTS, 5), nn.BatchNorm1d(5), nn.Dropout(0.3)]
        return nn.Sequential(*layers, nn.Linear(5, classes))


def test_the_contract_of_most_algorithms_fits_on_a_screen() -> None:
    assert len(inspect.getsource(Algorithm).splitlines()) <= LINES_OF_A_SCREEN


def one_round(algorithm: Algorithm, **options: Any) -> LocalResult:
    one, _ = track(algorithm, model=Normed(), **options)
    return one.train(ALL, plan(algorithm, ALL, 1, smallest=2), LR, [])


@pytest.mark.parametrize("algorithm", [APFL, DITTO, EarlyStopping()], ids=name_of)
def test_neither_way_nor_company_nor_threads_matter(algorithm: Algorithm) -> None:
    """Kernels, chunks and threads change no model, including personal models, even if some devices stop early."""
    stacked, *others = (
        one_round(algorithm, **options)
        for options in (
            {"batching": "stacked"},
            {"batching": "sequential"},
            {"threads": 2, "memory_bytes": 3000},
            {"threads": 1, "memory_bytes": 1},
            {"threads": 3, "memory_bytes": 1},
        )
    )
    for other in others:
        assert stacked.steps.tolist() == other.steps.tolist()
        for ours, theirs in zip(_models(stacked), _models(other), strict=True):
            assert float((ours - theirs).abs().max()) < 1e-4 * float(theirs.abs().max())
    assert all(torch.equal(a, b) for a, b in zip(_models(others[2]), _models(others[3]), strict=True))
    if not algorithm.trains_personal:
        assert len(set(stacked.steps // plan(algorithm, ALL, 1, smallest=2).per_epoch)) > 1, "some stop early"


def test_the_local_models_masks_stay_as_they_are_without_personal_models() -> None:
    alone, beside = (one_round(algorithm).round.rows for algorithm in (FedAvg(), APFL))
    assert torch.equal(alone, beside)


def _models(done: LocalResult) -> list[Tensor]:
    models = done.round.models
    return [models.rows, *([] if models.personal is None else [models.personal])]


@pytest.mark.parametrize("algorithm", [APFL, DITTO], ids=name_of)
def test_a_device_is_tested_with_its_personal_model(algorithm: Algorithm) -> None:
    one, states, done = played(algorithm)
    w, v = apfl(start(), 0.3) if algorithm is APFL else ditto(start(), 0.4, 0.7)
    found = one.personal([2, 5], [])
    expected = 0.3 * v + 0.7 * w if algorithm is APFL else v
    assert np.abs(found.numpy() - expected[[2, 5]]).max() < EXACT
    # right after training, personal models are mixed with local models, not with the global model
    trained = done[-1].round
    expected = 0.3 * kept(states, PERSONAL_MODEL)[THIRD] + 0.7 * trained.rows.numpy()
    found = one.side.trained_personal(trained)
    assert np.abs(found.numpy() - (expected if algorithm is APFL else v[THIRD])).max() < EXACT
    assert track(FedAvg())[0].personal([2], []) is None, "other algorithms test the global model"


def test_steps_and_samples_are_those_really_done() -> None:
    one, _, done = played(EarlyStopping())
    _, epochs = early_stopping(start(), 0.05)
    assert len({epoch for ended in epochs for epoch in ended}) > 2, "devices stop at different times"
    for (ids, batches), ended, result in zip(plans(EarlyStopping()), epochs, done, strict=True):
        assert result.steps.tolist() == (np.array(ended) * batches.per_epoch).tolist()
        sizes = np.array([len(batches.samples[j]) for j in range(len(ids))])
        assert result.samples.tolist() == (np.array(ended) * sizes).tolist()
        apart = np.array([len(batches.validation[j]) for j in range(len(ids))])
        # devices test validation samples before training and after each epoch except the last possible epoch
        assert result.tested.tolist() == (apart * (np.minimum(ended, EPOCHS - 1) + 1)).tolist()
    last = done[-1].steps
    assert np.allclose(one._training.travel(last), [travel(steps) for steps in last])


def test_a_device_with_one_sample_has_none_to_keep_apart() -> None:
    train, apart = keep_apart(np.array([7]), 0.3, np.random.default_rng(0))
    assert (train.tolist(), apart.tolist()) == ([7], [])
    train, apart = keep_apart(np.arange(2), 0.01, np.random.default_rng(0))
    assert (len(train), len(apart)) == (1, 1)
    assert len(keep_apart(np.arange(0), 0.5, np.random.default_rng(0))[0]) == 0
    samples = np.arange(100, 120)
    train, apart = keep_apart(samples, 0.3, np.random.default_rng(0))
    assert len(apart) == 6
    assert sorted([*train, *apart]) == samples.tolist()
    again = keep_apart(samples, 0.3, np.random.default_rng(0))
    assert np.array_equal(again[1], apart), "the same generator gives the same split"


def test_notes_of_one_number_per_device_are_reported() -> None:
    done = played(CLUSTERS)[2]
    choices = hypcluster(start())[1]
    assert set(choices[0]) == {0, 1}, "the test can tell them apart"
    for result, chosen in zip(done, choices, strict=True):
        assert result.scalars["cluster"].tolist() == chosen.tolist()
    assert done[1].tested.tolist() == [2 * len(OWN[k]) for k in SECOND]
    assert played(FedDc())[2][0].scalars == {}, "a vector is not a column"


def test_bits_count_each_way() -> None:
    model = 16 * M
    for algorithm, exchanged, down, up in [
        (FedAvg(), True, model, model),
        (FedDc(), False, model, model),
        (FedDc(), True, 2 * model, 2 * model),
        (HypCluster(models=3), True, 3 * model, model),
        (HypCluster(), False, model, model),
        (FedDrift(), True, model, model),  # FedDrift has made one model so far
        (LocalOnly(), False, 0, 0),
        (LocalOnly(), True, 0, 0),
        (TopK(), False, model, 5 * 37),
    ]:
        payload = "exchanged" if exchanged else "model"
        one, _ = track(algorithm, CostSettings(bits_per_parameter=16, payload=payload))
        done = one.train(SECOND, plan(algorithm, SECOND, 1), LR, [])
        assert done.down_bits.tolist() == [down] * len(SECOND)
        assert done.up_bits.tolist() == [up] * len(SECOND)


def test_what_is_sent_as_it_is_costs_no_memory() -> None:
    one, _ = track(FedAvg())
    trained = one.train(ALL, plan(FedAvg(), ALL, 1), LR, []).round
    assert trained.sent is None
    assert trained.models.personal is None


class SparseScaffold(TopK, Scaffold):
    """An invalid combination, in which TopK's `keep` replaces SCAFFOLD's `keep`."""


class RemembersNothingNoted(FedAvg):
    remembers: ClassVar = ("loss",)


def asking(base: type[Algorithm], verb: str, body: Callable[..., Any]) -> Algorithm:
    """Make an algorithm whose method `verb` calls `body` with the base's method and the arguments."""

    def asks(self: Algorithm, *given: Any) -> Any:
        return body(lambda: getattr(base, verb)(self, *given), *given)

    return type(base)("Asking", (base,), {verb: asks, "__module__": __name__})()


@pytest.mark.parametrize(
    ("algorithm", "asked", "among"),
    [
        (asking(FedAvg, "init_state", lambda own, w, last, all_: {"x": all_.mean("c")}), "c", "devices"),
        (asking(FedAvg, "init_state", lambda own, start, last, all_: all_.shift("s", start)), "s", "devices"),
        (asking(FedAvg, "init_state", lambda own, start, last, all_: all_.forget("f")), "f", "devices"),
        (asking(LocalOnly, "receive", lambda _, w, s, to: Received(to.own("mode", w))), "mode", "only model"),
        (asking(FedAvg, "receive", lambda own, w, s, to: to.remembered("loss", 0.0)), "loss", "remember"),
        (asking(Scaffold, "keep", lambda own, t, sent, *_: {**own(), "ctrl": sent}), "ctrl", "only control"),
        (RemembersNothingNoted(), "loss", "notes of the round"),
        (SparseScaffold(), "control", "only residual"),
        (asking(Scaffold, "aggregate", lambda own, *given: (own()[0], {})), "control", "the server's state"),
        (asking(FedAvg, "aggregate", lambda own, w, sent, s: sent.notes["k"]), "k", "notes of the round"),
    ],
)
def test_missing_names_in_a_method_name_the_algorithm(algorithm: Algorithm, asked: str, among: str) -> None:
    with refused_at("learning.algorithm", type(algorithm).__name__, f"'{asked}'", among):
        played(algorithm)


def test_an_error_in_a_verb_survives_the_way_to_another_process() -> None:
    handed = pickle.loads(pickle.dumps(Handed(Scaffold(), STATE, {"control": torch.zeros(2)})))
    with refused_at("learning.algorithm", "scaffold", "'c'", "only control"):
        handed["c"]
