"""Chunks of a round that are trained elsewhere end as they do here, to the last bit."""

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from edgefl.config import registry
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.data.batches import Batches, draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.chunk_trainers import Chunk, Kit, Piece
from edgefl.learning.local.local_task import LocalModels, LocalTask
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.precision import Precision
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model, OutputTerm
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.settings import EarlyStopping
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.learning.warm_starts.continuous import Continuous
from tests.unit.learning.six_devices import (
    BATCH,
    CLASSES,
    DEVICES,
    HELD,
    LR,
    OWN,
    QUICK,
    RHO,
    SAMPLES,
    SIDE,
    Plain,
    X,
    Y,
)

EPOCHS = 4
STEPS = [4, 0, 3, 4, 2, 4]  # one device has nothing to do
CPU = torch.device("cpu")


class Convolutions(Plain):
    """Batch norm and dropout: statistics and masks of each device."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        module = nn.Sequential()
        layers = [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten()]
        module.add_module("features", nn.Sequential(*layers, nn.Linear(4 * 16, 5)))
        module.add_module("head", nn.Linear(5, classes))
        return module


class Posted:
    """Trains pieces of so many chunks, the last first, from what pickle makes of them, as another process does."""

    def __init__(self, chunks: int = 1) -> None:
        self._chunks = chunks
        self.pieces = 0

    def train(self, kit: Kit, task: LocalTask, chunks: Sequence[Chunk], models: LocalModels) -> None:
        models.rows.fill_(torch.nan)
        pieces = [
            Piece.of(task, chunks[begin : begin + self._chunks])
            for begin in range(0, len(chunks), self._chunks)
        ]
        for piece in reversed(pieces):
            there, sent = pickle.loads(pickle.dumps((kit, piece)))
            found = sent.train(there.worker(), there.rule)
            piece.put(pickle.loads(pickle.dumps(found)), models)
        self.pieces += len(pieces)


def data(drifted: bool = False) -> SplitInMemory:
    after = Split(X, (Y + 1) % CLASSES) if drifted else None
    return SplitInMemory(Split(X, Y), np.float32(100.0), np.float32(50.0), CPU, after)


def batches(train: LocalTraining, round_: int = 0, apart: Sequence[np.ndarray] = ()) -> Batches:
    generators = [np.random.default_rng([round_, k]) for k in range(DEVICES)]
    steps = [EPOCHS * 3] * DEVICES if len(apart) else STEPS
    return draw_batches(OWN, steps, BATCH, generators, train.smallest_batch, apart)


def made(model: Model, elsewhere: Posted | None, batching: str, **options: object) -> LocalTraining:
    torch.manual_seed(1)
    module = model.build((2, SIDE, SIDE), CLASSES)
    chunk = {"memory_bytes": 26_000} | options  # some chunks of some devices
    return LocalTraining(
        model, module, data(), UpdateRule(RHO), batching=batching, trainers=elsewhere, **chunk
    )  # type: ignore[arg-type]


def start_of(train: LocalTraining) -> Tensor:
    return train.layout.flatten(train._module)


def distillation(train: LocalTraining) -> OutputTerm:
    term = Continuous(coefficient=0.8).anchor(start_of(train) * 1.1, torch.tensor([True, False, True]))
    assert term is not None
    return term


def rounds(train: LocalTraining, algorithm: Algorithm) -> list[Tensor]:
    """Local models of two rounds, personal ones, and the model after them, with a term beside the algorithm's."""
    track = TrainedModel(train, algorithm, DeviceStates(DEVICES, CPU), start_of(train))
    track.open(track.model, HELD)
    found = []
    for round_ in range(2):
        trained = track.train(range(DEVICES), batches(train, round_), LR, [distillation(train)]).round
        found += [trained.rows.clone(), track.trained_personal(trained).clone()]
        track.aggregate([k for k in range(DEVICES) if k != round_], HELD)
    return [*found, track.model]


@pytest.mark.parametrize(
    ("model", "batching", "name"),
    [
        pytest.param(model, batching, name, marks=[pytest.mark.slow] * (name not in quick))
        for model, batching, names, quick in (
            (Logistic(), "auto", registry.names("algorithms"), QUICK),
            (Convolutions(), "sequential", QUICK[1:], ("scaffold",)),
            (Plain(), "stacked", QUICK[1:], ("scaffold",)),
        )
        for name in names
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Model) else None,
)
def test_every_algorithm_ends_as_here(model: Model, batching: str, name: str) -> None:
    algorithm, elsewhere = registry.get("algorithms", name)(), Posted()
    there = rounds(made(model, elsewhere, batching), algorithm)
    here = rounds(made(model, None, batching), algorithm)
    assert elsewhere.pieces >= 4, "cut"
    for ours, theirs in zip(here, there, strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("model", [Logistic(), Plain(), Convolutions()])
@pytest.mark.parametrize("pieces", [1, 2, 100])
def test_however_it_is_cut(model: Model, pieces: int) -> None:
    train = made(model, None, "stacked")
    here = train.run(LocalTask(start_of(train), batches(train), LR, FedAvg())).rows.clone()
    other = made(model, Posted(pieces), "stacked")
    assert torch.equal(other.run(LocalTask(start_of(other), batches(other), LR, FedAvg())).rows, here)


def test_devices_stop_where_they_stop_here() -> None:
    apart = [own[:2] if k != 3 else own[:0] for k, own in enumerate(OWN)]
    found = []
    for elsewhere in (None, Posted()):
        train = made(Plain(), elsewhere, "stacked")
        stop = EarlyStopping(threshold=0.3).stop
        models = train.run(LocalTask(start_of(train), batches(train, apart=apart), LR, FedAvg(), stop=stop))
        found.append((models.rows.clone(), models.steps.tolist(), models.tested.tolist()))
    (here, steps, tested), there = found
    assert torch.equal(here, there[0])
    assert (steps, tested) == there[1:]
    assert min(steps) < EPOCHS * 3 <= max(steps)


def test_bf16_too() -> None:
    found = []
    for elsewhere in (None, Posted()):
        train = made(Plain(), elsewhere, "sequential", precision=Precision(bf16=True))
        found.append(train.run(LocalTask(start_of(train), batches(train), LR, FedAvg())).rows.clone())
    assert torch.equal(*found)


def test_devices_with_models_of_their_own() -> None:
    found = []
    for elsewhere in (None, Posted()):
        train = made(Plain(), elsewhere, "stacked")
        torch.manual_seed(3)
        starts = start_of(train) + 0.1 * torch.rand(DEVICES, train.layout.size)
        found.append(train.run(LocalTask(starts, batches(train), LR, FedAvg())).rows.clone())
    assert torch.equal(*found)


def test_a_piece_carries_its_own_devices_alone() -> None:
    """Half of the devices' batches and vectors, not the round's."""
    train = made(Plain(), None, "stacked")
    vectors = torch.rand(DEVICES, train.layout.parameters.size)
    task = LocalTask(
        start_of(train),
        batches(train),
        LR,
        FedAvg(),
        own=lambda positions: {"control": vectors[list(positions)]},
        previous=lambda positions: vectors[list(positions)],
    )
    piece = Piece.of(task, [[5, 0], [2]])
    assert [list(chunk) for chunk in piece.chunks] == [[0, 1], [2]]
    assert piece.task.batches.steps.tolist() == [4, 4, 3]
    assert piece.task.batches.rows.shape[1:] == task.batches.rows.shape[1:]
    assert np.array_equal(piece.task.batches.rows, task.batches.rows[[5, 0, 2]])
    assert torch.equal(piece.task.own([1, 2])["control"], vectors[[0, 2]])
    assert piece.task.previous is not None
    assert torch.equal(piece.task.previous([0]), vectors[[5]])
    assert len(pickle.dumps(piece)) < 4 * 3 * 2 * vectors.shape[1] + 20_000


@pytest.mark.parametrize("drifted", [False, True])
def test_data_arrive_whole_and_without_what_is_only_kept_ready(drifted: bool) -> None:
    sent = data(drifted)
    assert sent.ready([0, 1]) is not None
    sent.readers(2)
    arrived = pickle.loads(pickle.dumps(sent))
    rows = torch.tensor([0, 7, SAMPLES - 1] + [SAMPLES + 7] * drifted)
    assert torch.equal(arrived.normalised(rows), sent.normalised(rows))
    assert torch.equal(arrived.y, sent.y)
    assert (arrived.count, arrived.scaling) == (sent.count, sent.scaling)
    assert len(pickle.dumps(sent)) == len(pickle.dumps(arrived)) < X.nbytes + 2 * sent.y.nbytes + 2000
