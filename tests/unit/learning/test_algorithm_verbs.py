"""How far the verbs of an algorithm reach: personal models, several models, early stopping, compression, no exchange.

APFL and Ditto train a second model, early stopping ends each device's training by itself, HypCluster and FedDrift
let each device choose what it starts from, `local_only` exchanges nothing, and a compressor, which is no component,
counts its bits. Each is compared with its derivation in NumPy and float64 on softmax regression, two rounds of
momentum SGD with three of seven devices in the second.
"""

import pickle
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import (
    Algorithm,
    Members,
    Received,
    Receivers,
    Sent,
    ServerState,
    Trained,
    Updates,
)
from edgefl.learning.algorithms.apfl import Apfl
from edgefl.learning.algorithms.ditto import Ditto
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.feddc import FedDc
from edgefl.learning.algorithms.feddrift import FedDrift
from edgefl.learning.algorithms.hypcluster import HypCluster
from edgefl.learning.algorithms.local_only import LocalOnly
from edgefl.learning.algorithms.scaffold import Scaffold
from edgefl.learning.data.batches import Batches, draw_batches, keep_apart, steps_per_epoch
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.handed import Handed
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.updates.device_side import PERSONAL_MODEL
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.payload import Payload
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.learning.updates.transfers import Transfers
from edgefl.learning.updates.updates import LocalResult
from tests.tools.constants import with_constants

INPUTS, CLASSES, SAMPLES, DEVICES = 6, 3, 105, 7
M = CLASSES * (INPUTS + 1)
MEAN, STD = 100.0, 80.0
LR, RHO, BATCH, EPOCHS = 0.05, 0.9, 8, 6
SECOND = [1, 4, 6]  # who takes part in round 2
EXACT = 1e-6  # float32 training of two rounds against float64; models are of order 1
CPU = torch.device("cpu")

rng = np.random.default_rng(0)
X = rng.integers(0, 256, (SAMPLES, 2, 3), dtype=np.uint8)
# labels that can be learned, but for some: losses on data kept apart fall for a while
Y = ((X.reshape(SAMPLES, -1) - MEAN) @ rng.normal(size=(INPUTS, CLASSES))).argmax(1)
Y = np.where(rng.random(SAMPLES) < 0.1, rng.integers(0, CLASSES, SAMPLES), Y)
HELD = [np.arange(k, SAMPLES, DEVICES)[: 3 + 4 * k] for k in range(DEVICES)]
SIZES = np.array([len(held) for held in HELD], dtype=float)
ALL = list(range(DEVICES))


# ---- methods that are no components


class EarlyStopping(FedAvg):
    """Panchal et al., FLASH, ICML 2023: train until the loss on data kept apart falls by less than gamma / e."""

    gamma: float = 0.05
    apart: float = 0.3

    def keeps_apart(self) -> float:
        return self.apart

    def stop(self, epoch: Tensor, loss: Tensor, before: Tensor) -> Tensor:
        return before - loss < self.gamma / epoch


class TopK(FedAvg):
    """Sends the largest changes only and keeps the rest for later (error feedback)."""

    device_vectors: ClassVar = ("residual",)

    count: int = 5

    def upload(self, trained: Trained, state: ServerState, own: Mapping[str, Tensor]) -> Sent:
        wanted = trained.local - trained.start + own["residual"]
        largest = wanted.abs().topk(self.count, dim=1).indices
        sparse = torch.zeros_like(wanted).scatter(1, largest, wanted.gather(1, largest))
        return Sent(trained.start + sparse, bits=torch.full((len(wanted),), self.count * (32 + 5)))

    def keep(
        self, trained: Trained, sent: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor]:
        return {"residual": trained.local - sent + own["residual"]}


# ---- ours


def plan(algorithm: Algorithm, ids: list[int], round_: int, smallest: int = 1) -> Batches:
    share = algorithm.keeps_apart()
    pairs = [keep_apart(HELD[k], share, np.random.default_rng([99, k])) for k in ids]
    train = [samples for samples, _ in pairs]
    steps = [EPOCHS * steps_per_epoch(len(samples), BATCH, smallest) for samples in train]
    generators = [np.random.default_rng([round_, k]) for k in ids]
    return draw_batches(
        train, steps, BATCH, generators, smallest, [apart for _, apart in pairs] if share else ()
    )


def track(
    algorithm: Algorithm, payload: Payload | None = None, model: Model | None = None, **options: Any
) -> tuple[TrainedModel, DeviceStates]:
    torch.manual_seed(1)
    model = model or Logistic()
    module = model.build((2, 3), CLASSES)
    data = SplitInMemory(Split(X, Y), np.float32(MEAN), np.float32(STD), CPU)
    training = LocalTraining(model, module, data, UpdateRule(RHO), **options)
    states = DeviceStates(DEVICES, CPU)
    transfers = Transfers(algorithm, training.layout, payload or Payload())
    global_ = TrainedModel(training, algorithm, states, training.layout.flatten(module), transfers)
    global_.open(global_.model, held())
    return global_, states


def held() -> dict[int, int]:
    return {k: len(samples) for k, samples in enumerate(HELD)}


def two_rounds(algorithm: Algorithm) -> tuple[TrainedModel, DeviceStates, list[LocalResult]]:
    global_, states = track(algorithm)
    done = []
    for round_, ids in enumerate((ALL, SECOND), start=1):
        done.append(global_.train(ids, plan(algorithm, ids, round_), LR, []))
        global_.aggregate(ids, held())
    return global_, states, done


def start() -> np.ndarray:
    return track(FedAvg())[0].model.double().numpy()


def kept(states: DeviceStates, name: str) -> np.ndarray:
    return states.rows(name, ALL, torch.zeros(M)).double().numpy()


# ---- derivations


def loss_and_gradient(w: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray]:
    x = (X[rows].reshape(len(rows), -1).astype(float) - MEAN) / STD
    logits = x @ w[: CLASSES * INPUTS].reshape(CLASSES, INPUTS).T + w[CLASSES * INPUTS :]
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = float(-np.log(p[np.arange(len(rows)), Y[rows]]).mean())
    delta = (p - np.eye(CLASSES)[Y[rows]]) / len(rows)
    return loss, np.concatenate([(delta.T @ x).ravel(), delta.sum(0)])


def gradient(w: np.ndarray, batches: Batches, j: int, step: int) -> np.ndarray:
    return loss_and_gradient(w, batches.rows[j, step, : batches.sizes[j, step]])[1]


def descend(
    w: np.ndarray,
    batches: Batches,
    j: int,
    correct: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda g, w: g,
) -> np.ndarray:
    velocity = np.zeros(len(w))
    for step in range(batches.steps[j]):
        velocity = RHO * velocity + correct(gradient(w, batches, j, step), w)
        w = w - LR * velocity
    return w


def shares(ids: list[int]) -> np.ndarray:
    return SIZES[ids] / SIZES[ids].sum()


def travel(steps: int) -> float:
    return sum(RHO**i for s in range(1, steps + 1) for i in range(steps - s + 1))


def plans(algorithm: Algorithm) -> list[tuple[list[int], Batches]]:
    return [(ids, plan(algorithm, ids, r)) for r, ids in enumerate((ALL, SECOND), start=1)]


def with_personal(
    w: np.ndarray, point: Callable[..., np.ndarray], step_of: Callable[..., np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """w and v step by step together; v's gradient is taken at `point(v, w)` and used as `step_of(g, v, start)`."""
    v = np.full((DEVICES, M), np.nan)
    for ids, batches in plans(FedAvg()):
        rows = []
        for j, k in enumerate(ids):
            local, own = w, w if np.isnan(v[k]).any() else v[k]
            velocity, velocity_v = np.zeros(M), np.zeros(M)
            for step in range(batches.steps[j]):
                g, g_v = gradient(local, batches, j, step), gradient(point(own, local), batches, j, step)
                velocity, velocity_v = RHO * velocity + g, RHO * velocity_v + step_of(g_v, own, w)
                local, own = local - LR * velocity, own - LR * velocity_v
            v[k] = own
            rows.append(local)
        w = shares(ids) @ rows
    return w, v


def apfl(w: np.ndarray, a: float) -> tuple[np.ndarray, np.ndarray]:
    return with_personal(w, lambda v, w: a * v + (1 - a) * w, lambda g, v, start: a * g)


def ditto(w: np.ndarray, pull: float, lr_factor: float) -> tuple[np.ndarray, np.ndarray]:
    return with_personal(w, lambda v, w: v, lambda g, v, start: lr_factor * (g + pull * (v - start)))


def local_only(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    own = np.tile(w, (DEVICES, 1))
    for ids, batches in plans(FedAvg()):
        own[ids] = [descend(own[k], batches, j) for j, k in enumerate(ids)]
    return w, own


def early_stopping(w: np.ndarray, gamma: float) -> tuple[np.ndarray, list[list[int]]]:
    epochs = []
    for ids, batches in plans(EarlyStopping()):
        rows, ended = [], []
        for j in range(len(ids)):
            local, velocity, last = w, np.zeros(M), loss_and_gradient(w, batches.validation[j])[0]
            for epoch in range(1, EPOCHS + 1):
                for step in range((epoch - 1) * batches.per_epoch[j], epoch * batches.per_epoch[j]):
                    velocity = RHO * velocity + gradient(local, batches, j, step)
                    local = local - LR * velocity
                now = loss_and_gradient(local, batches.validation[j])[0]
                fell, last = last - now, now
                assert abs(fell - gamma / epoch) > 10 * EXACT, "no decision hangs on rounding"
                if fell < gamma / epoch:
                    break
            rows.append(local)
            ended.append(epoch)
        w = shares(ids) @ rows
        epochs.append(ended)
    return w, epochs


def hypcluster(w: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    models = track(CLUSTERS)[0].state["models"].double().numpy().copy()
    assert np.abs(models[0] - w).max() < EXACT
    assert 0.2 < np.std(models[1] - w) < 0.8, "noise of 21 numbers of standard deviation 0.5"
    choices = []
    for ids, batches in plans(CLUSTERS):
        losses = [[loss_and_gradient(model, HELD[k])[0] for model in models] for k in ids]
        chosen = np.argmin(losses, 1)
        rows = np.array([descend(models[c], batches, j) for j, c in enumerate(chosen)])
        for c in set(chosen):
            weights = SIZES[ids] * (chosen == c)
            models[c] = weights / weights.sum() @ rows
        choices.append(chosen)
        w = shares(ids) @ rows
    return w, choices


def top_k(w: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    residual = np.zeros((DEVICES, M))
    for ids, batches in plans(TopK()):
        changes = []
        for j, k in enumerate(ids):
            wanted = descend(w, batches, j) - w + residual[k]
            change = np.where(np.abs(wanted) >= np.sort(np.abs(wanted))[-count], wanted, 0.0)
            residual[k] = wanted - change
            changes.append(change)
        w = w + shares(ids) @ changes
    return w, residual


CLUSTERS = with_constants(HypCluster, spread=0.5)()
APFL, DITTO = Apfl(alpha=0.3), Ditto(pull=0.4, lr_factor=0.7)
DERIVED: list[tuple[Algorithm, Callable[[np.ndarray], tuple[np.ndarray, Any]]]] = [
    (APFL, lambda w: apfl(w, 0.3)),
    (DITTO, lambda w: ditto(w, 0.4, 0.7)),
    (EarlyStopping(), lambda w: early_stopping(w, 0.05)),
    (CLUSTERS, hypcluster),
    # no loss jumps: FedAvg. With a jump: test_drift_methods.py
    (FedDrift(), lambda w: (descend_all(w), None)),
    (LocalOnly(), local_only),
    (TopK(), lambda w: top_k(w, 5)),
]
AS_FEDAVG = (Apfl, Ditto, FedDrift)  # their global models here


def test_these_are_derived_here(derived_with_the_verbs: set[str]) -> None:
    outside = (EarlyStopping, TopK)
    found = {registry.name_of("algorithms", one) for one, _ in DERIVED if not isinstance(one, outside)}
    assert found == derived_with_the_verbs


def name_of(value: object) -> str:
    return type(value).__name__ if isinstance(value, Algorithm) else ""


@pytest.mark.parametrize(("algorithm", "derivation"), DERIVED, ids=name_of)
def test_two_rounds_follow_the_derivation(
    algorithm: Algorithm, derivation: Callable[[np.ndarray], tuple[np.ndarray, Any]]
) -> None:
    global_, _, _ = two_rounds(algorithm)
    assert np.abs(global_.model.numpy() - derivation(start())[0]).max() < EXACT
    plain = descend_all(start())
    if not isinstance(algorithm, AS_FEDAVG):
        assert np.abs(derivation(start())[0] - plain).max() > 1000 * EXACT, "the test can tell them apart"


def descend_all(w: np.ndarray) -> np.ndarray:
    for ids, batches in plans(FedAvg()):
        w = shares(ids) @ [descend(w, batches, j) for j in range(len(ids))]
    return w


# ---- models that automatic differentiation trains


class Normed(Model):
    """Batch norm and dropout."""

    typical_input = (2, 3)
    typical_classes = CLASSES

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        layers = [nn.Flatten(), nn.Linear(INPUTS, 5), nn.BatchNorm1d(5), nn.Dropout(0.3)]
        return nn.Sequential(*layers, nn.Linear(5, classes))


def one_round(algorithm: Algorithm, **options: Any) -> LocalResult:
    global_, _ = track(algorithm, model=Normed(), **options)
    return global_.train(ALL, plan(algorithm, ALL, 1, smallest=2), LR, [])


@pytest.mark.parametrize("algorithm", [APFL, DITTO, EarlyStopping()], ids=name_of)
def test_stacked_and_sequential_agree(algorithm: Algorithm) -> None:
    """Statistics and masks of the personal models too; devices that stop early leave the others as they are."""
    stacked, sequential = (one_round(algorithm, batching=batching) for batching in ("stacked", "sequential"))
    assert stacked.steps.tolist() == sequential.steps.tolist()
    for ours, theirs in zip(_models(stacked), _models(sequential), strict=True):
        assert float((ours - theirs).abs().max()) < 1e-4 * float(theirs.abs().max())
    if not algorithm.trains_personal:
        assert len(set(stacked.steps // plan(algorithm, ALL, 1, smallest=2).per_epoch)) > 1, "some stop early"


@pytest.mark.parametrize("algorithm", [APFL, EarlyStopping()], ids=name_of)
def test_threads_do_not_matter(algorithm: Algorithm) -> None:
    first, second = (one_round(algorithm, threads=threads, memory_bytes=1) for threads in (1, 3))
    assert all(torch.equal(a, b) for a, b in zip(_models(first), _models(second), strict=True))


def test_the_local_models_masks_stay_as_they_are_without_personal_models() -> None:
    alone, beside = (one_round(algorithm).round.rows for algorithm in (FedAvg(), APFL))
    assert torch.equal(alone, beside)


def _models(done: LocalResult) -> list[Tensor]:
    models = done.round.models
    return [models.rows, *([] if models.personal is None else [models.personal])]


# ---- what devices keep, and what the engine is told


def test_what_was_sent_is_averaged_and_what_was_trained_is_kept() -> None:
    _, states, _ = two_rounds(LocalOnly())
    assert np.abs(kept(states, "model") - local_only(start())[1])[SECOND].max() < EXACT
    _, states, _ = two_rounds(TopK())
    assert np.abs(kept(states, "residual") - top_k(start(), 5)[1]).max() < EXACT


@pytest.mark.parametrize("algorithm", [APFL, DITTO], ids=name_of)
def test_a_device_is_tested_with_its_personal_model(algorithm: Algorithm) -> None:
    global_, states, done = two_rounds(algorithm)
    w, v = apfl(start(), 0.3) if algorithm is APFL else ditto(start(), 0.4, 0.7)
    assert np.abs(kept(states, PERSONAL_MODEL) - v).max() < EXACT
    found = global_.personal([2, 5], [])
    assert found is not None
    expected = 0.3 * v + 0.7 * w if algorithm is APFL else v
    assert np.abs(found.numpy() - expected[[2, 5]]).max() < EXACT
    # right after training, with what they then have of the global model: their local ones
    trained = done[-1].round
    expected = 0.3 * kept(states, PERSONAL_MODEL)[SECOND] + 0.7 * trained.rows.numpy()
    found = global_.side.trained_personal(trained)
    assert np.abs(found.numpy() - (expected if algorithm is APFL else v[SECOND])).max() < EXACT
    assert track(FedAvg())[0].personal([2], []) is None, "others are tested with the global model"


def test_the_local_model_does_not_see_the_personal_one() -> None:
    assert torch.equal(two_rounds(APFL)[0].model, two_rounds(FedAvg())[0].model)


def test_a_personal_model_is_lost_with_its_update() -> None:
    global_, states = track(APFL)
    global_.train(ALL, plan(APFL, ALL, 1), LR, [])
    global_.aggregate([2, 5], held())
    changed = np.abs(kept(states, PERSONAL_MODEL)).max(1) > 0
    assert changed.tolist() == [k in (2, 5) for k in ALL]


def test_steps_and_samples_are_those_really_done() -> None:
    global_, _, done = two_rounds(EarlyStopping())
    _, epochs = early_stopping(start(), 0.05)
    assert len({epoch for ended in epochs for epoch in ended}) > 2, "devices stop at different times"
    for (ids, batches), ended, result in zip(plans(EarlyStopping()), epochs, done, strict=True):
        assert result.steps.tolist() == (np.array(ended) * batches.per_epoch).tolist()
        sizes = np.array([len(batches.samples[j]) for j in range(len(ids))])
        assert result.samples.tolist() == (np.array(ended) * sizes).tolist()
        apart = np.array([len(batches.validation[j]) for j in range(len(ids))])
        # once before training and after each epoch but the last one that there can be
        assert result.tested.tolist() == (apart * (np.minimum(ended, EPOCHS - 1) + 1)).tolist()
    last = done[-1].steps
    assert np.allclose(global_._training.travel(last), [travel(steps) for steps in last])


@pytest.mark.parametrize("memory_bytes", [1, 3000, 10**9])
def test_early_stopping_does_not_depend_on_who_trains_beside(memory_bytes: int) -> None:
    """In a chunk some stop and the others close ranks: each ends where it ends alone."""
    ends = []
    for options in ({}, {"memory_bytes": memory_bytes, "threads": 2}):
        global_, _ = track(EarlyStopping(), **options)
        done = global_.train(ALL, plan(EarlyStopping(), ALL, 1), LR, [])
        ends.append((done.round.rows.clone(), done.steps))
    torch.testing.assert_close(ends[0][0], ends[1][0], atol=EXACT, rtol=0)
    assert ends[0][1].tolist() == ends[1][1].tolist()


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
    _, _, done = two_rounds(CLUSTERS)
    choices = hypcluster(start())[1]
    assert set(choices[0]) == {0, 1}, "the test can tell them apart"
    for result, chosen in zip(done, choices, strict=True):
        assert result.scalars["cluster"].tolist() == chosen.tolist()
    assert done[1].tested.tolist() == [2 * len(HELD[k]) for k in SECOND]
    assert two_rounds(FedDc())[2][0].scalars == {}, "a vector is no column"


def test_bits_count_each_way() -> None:
    model = 16 * M
    for algorithm, exchanged, down, up in [
        (FedAvg(), True, model, model),
        (FedDc(), False, model, model),
        (FedDc(), True, 2 * model, 2 * model),
        (HypCluster(models=3), True, 3 * model, model),
        (HypCluster(), False, model, model),
        (FedDrift(), True, model, model),  # one has begun
        (LocalOnly(), False, 0, 0),
        (LocalOnly(), True, 0, 0),
        (TopK(), False, model, 5 * 37),
    ]:
        global_, _ = track(algorithm, Payload(16, exchanged))
        done = global_.train(SECOND, plan(algorithm, SECOND, 1), LR, [])
        assert done.down_bits.tolist() == [down] * len(SECOND)
        assert done.up_bits.tolist() == [up] * len(SECOND)


def test_what_is_sent_as_it_is_costs_no_memory() -> None:
    global_, _ = track(FedAvg())
    trained = global_.train(ALL, plan(FedAvg(), ALL, 1), LR, []).round
    assert trained.sent is None
    assert trained.models.personal is None


@pytest.mark.parametrize("algorithm", [algorithm for algorithm, _ in DERIVED], ids=name_of)
def test_a_run_can_go_on_from_its_tensors(algorithm: Algorithm) -> None:
    first, states, _ = two_rounds(algorithm)
    second, others = track(algorithm)
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    others.restore({name: tensor.clone() for name, tensor in states.tensors().items()})
    for global_ in (first, second):
        global_.train(ALL, plan(algorithm, ALL, 3), LR, [])
        global_.aggregate([0, 3, 4], held())
    assert torch.equal(first.model, second.model)
    assert states.tensors().keys() == others.tensors().keys()
    for name, tensor in states.tensors().items():
        assert torch.equal(tensor, others.tensors()[name])


class SparseScaffold(TopK, Scaffold):
    """What TopK keeps takes the place of what SCAFFOLD keeps."""


class ForgetfulServer(Scaffold):
    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return super().aggregate(model, updates, state)[0], {}


class NotesNothing(FedAvg):
    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return updates.rows[updates.notes["cluster"].argmin()], state


class RemembersNothingNoted(FedAvg):
    remembers: ClassVar = ("loss",)


class AsksMembers(FedAvg):
    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        return {"control": members.mean("contrl")}


class ShiftsMembers(FedAvg):
    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        members.shift("drift", torch.zeros(1))
        return {}


class ForgetsMembers(FedAvg):
    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        members.forget("drift")
        return {}


class AsksReceivers(LocalOnly):
    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        return Received(devices.own("modle", model))


class RecallsNothing(FedAvg):
    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        devices.remembered("loss", 0.0)
        return Received(model)


class KeepsAnother(Scaffold):
    def keep(
        self, trained: Trained, sent: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor]:
        return {**super().keep(trained, sent, state, own), "controls": sent}


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (AsksMembers(), "'contrl' among the own vectors of its devices, which hold nothing"),
        (ShiftsMembers(), "'drift' among the own vectors of its devices, which hold nothing"),
        (ForgetsMembers(), "'drift' among the own vectors of its devices, which hold nothing"),
        (AsksReceivers(), "'modle' among the own vectors of its devices, which hold only model"),
        (RecallsNothing(), "'loss' among the notes that its devices remember, which hold nothing"),
        (KeepsAnother(), "'controls' among the own vectors of its devices, which hold only control"),
        (RemembersNothingNoted(), "'loss' among the notes of the round, which hold nothing"),
        (SparseScaffold(), "'control' among the own vectors of its devices, which hold only residual"),
        (ForgetfulServer(), "'control' among the values of the server's state, which hold nothing"),
        (NotesNothing(), "'cluster' among the notes of the round, which hold nothing"),
    ],
    ids=name_of,
)
def test_a_verb_that_asks_for_what_is_not_there_names_the_algorithm(algorithm: Algorithm, words: str) -> None:
    with pytest.raises(EdgeflError) as raised:
        two_rounds(algorithm)
    assert f"test_algorithm_verbs:{type(algorithm).__name__} asks for {words}" in str(raised.value)
    assert raised.value.place == ("learning", "algorithm")


def test_an_error_in_a_verb_survives_the_way_to_another_process() -> None:
    handed = pickle.loads(pickle.dumps(Handed.state(Scaffold(), {"control": torch.zeros(2)})))
    with pytest.raises(
        EdgeflError, match=r"scaffold asks for 'c' among .* hold only control; return it from"
    ):
        handed["c"]
