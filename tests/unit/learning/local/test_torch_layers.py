"""Test that models of any layers of torch.nn train reproducibly, whatever else draws random numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.ditto import Ditto
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.moon import Moon
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.local import local_training
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel
from tests.refusals import refused_at
from tests.unit.learning.six_devices import BATCH, CLASSES, HELD, LR, OWN, SIDE, Plain, training

STEPS = 2
ROUNDING = 1e-5  # tolerance for a few float32 steps whose sums differ in order; parameters are about 1
PIXELS = SIDE * SIDE
# inputs are images [batch, 2, SIDE, SIDE]; as a sequence, they have 2 SIDE positions of SIDE values
SEQUENCE = nn.Flatten(1, 2)


class Of(Plain):
    """A model whose module is made by a function."""

    make: Callable[[], nn.Module]

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return self.make()


class Does(nn.Module):
    """A module that calls a function with itself and the inputs."""

    def __init__(self, does: Callable[[Any, Tensor], Any], **parts: Any) -> None:
        super().__init__()
        self.does = does
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Tensor) -> Any:
        return self.does(self, x)


def ended(*layers: nn.Module) -> nn.Module:
    """Return a module of layers and a linear layer, whose inputs are counted in a pass."""
    body = nn.Sequential(*layers, nn.Flatten()).eval()
    with torch.no_grad():
        width = body(torch.zeros(2, 2, SIDE, SIDE)).shape[1]
    return nn.Sequential(*body.train(), nn.Linear(width, CLASSES))


def first_output(layer: nn.Module) -> nn.Module:
    """Return a module that returns the first output of a layer for sequences, in a list of layers."""
    return nn.Sequential(SEQUENCE, Does(lambda self, x: self.layer(x)[0], layer=layer))


def attending(dropout: float) -> nn.Module:
    attention = nn.MultiheadAttention(SIDE, 2, dropout=dropout, batch_first=True)
    return Does(lambda self, x: self.attention(x, x, x)[0], attention=attention)


def tied() -> nn.Module:
    one, other = nn.Linear(2 * PIXELS, 2 * PIXELS), nn.Linear(2 * PIXELS, 2 * PIXELS)
    other.weight = one.weight
    return ended(nn.Flatten(), one, nn.Tanh(), other)


def frozen() -> nn.Module:
    return ended(nn.Flatten(), nn.Linear(2 * PIXELS, 5).requires_grad_(False))


def with_buffers() -> nn.Module:
    """Return a module with a constant and a moving mean, in buffers."""

    def moved(self: Any, x: Tensor) -> Tensor:
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean())
        return (x - self.mean) * self.scale

    module = Does(moved)
    module.register_buffer("mean", torch.zeros(1))
    module.register_buffer("scale", torch.ones(1), persistent=False)
    return ended(module)


def dropping_twice() -> nn.Module:
    """Return a module that uses one dropout layer for inputs of two shapes."""
    parts = {"one": nn.Linear(2 * PIXELS, 6), "other": nn.Linear(6, CLASSES), "dropout": nn.Dropout(0.5)}
    return Does(lambda self, x: self.other(self.dropout(self.one(self.dropout(x.flatten(1))))), **parts)


def unused() -> nn.Module:
    """Return a module with a layer that it does not use, and a number with the name of a part of edgefl's models."""
    module = Does(lambda self, x: self.used(x.flatten(1)), used=nn.Linear(2 * PIXELS, CLASSES))
    module.spare, module.features = nn.Linear(3, 3), 3
    return module


def noisy() -> nn.Module:
    return ended(Does(lambda self, x: x + torch.randn_like(x) if self.training else x))


def functional_dropout(p: float = 0.5) -> nn.Module:
    return ended(Does(lambda self, x: functional.dropout(x, p, self.training)))


def branching() -> nn.Module:
    """Return a module whose control flow depends on its inputs."""
    return ended(Does(lambda self, x: x if x.sum() > 0 else -x))


DRAWING: dict[str, Callable[[], nn.Module]] = {
    "Dropout1d": lambda: ended(SEQUENCE, nn.Dropout1d(0.5)),
    "Dropout2d": lambda: ended(nn.Conv2d(2, 3, 3), nn.Dropout2d(0.5)),
    "AlphaDropout": lambda: ended(nn.AlphaDropout(0.5)),
    "FeatureAlphaDropout": lambda: ended(nn.FeatureAlphaDropout(0.5)),
    "RReLU": lambda: ended(nn.RReLU()),
    "F.dropout": functional_dropout,
    "torch.randn": noisy,
    "one Dropout twice": dropping_twice,
    "Dropout beside Dropout2d": lambda: ended(nn.Dropout2d(0.5), nn.Flatten(), nn.Dropout(0.5)),
    "Dropout of sequences": lambda: ended(
        Does(lambda self, x: self.d(x.transpose(0, 2)).transpose(0, 2), d=nn.Dropout(0.5))
    ),
    "LSTM with dropout": lambda: ended(first_output(nn.LSTM(SIDE, 4, 2, dropout=0.5, batch_first=True))),
    "MultiheadAttention with dropout": lambda: ended(SEQUENCE, attending(0.5)),
    "TransformerEncoderLayer": lambda: ended(
        SEQUENCE, nn.TransformerEncoderLayer(SIDE, 2, 8, batch_first=True)
    ),
}
OTHERS: dict[str, Callable[[], nn.Module]] = {
    "Linear": lambda: ended(),
    "Conv1d": lambda: ended(nn.Flatten(2), nn.Conv1d(2, 3, 3)),
    "Conv2d": lambda: ended(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2)),
    "ConvTranspose2d": lambda: ended(nn.ConvTranspose2d(2, 3, 3)),
    "BatchNorm1d": lambda: ended(nn.Flatten(), nn.BatchNorm1d(2 * PIXELS)),
    "BatchNorm2d": lambda: ended(nn.BatchNorm2d(2)),
    "InstanceNorm2d": lambda: ended(nn.InstanceNorm2d(2, affine=True, track_running_stats=True)),
    "GroupNorm": lambda: ended(nn.GroupNorm(1, 2)),
    "LayerNorm": lambda: ended(nn.LayerNorm(SIDE)),
    "GRU": lambda: ended(first_output(nn.GRU(SIDE, 4, batch_first=True))),
    "LSTM": lambda: ended(first_output(nn.LSTM(SIDE, 4, 2, batch_first=True, bidirectional=True))),
    "GRUCell": lambda: ended(Does(lambda self, x: self.cell(x[:, 0, 0]), cell=nn.GRUCell(SIDE, 4))),
    "Embedding": lambda: ended(Does(lambda self, x: self.table((x > 0).long()), table=nn.Embedding(2, 3))),
    "EmbeddingBag": lambda: ended(
        Does(lambda self, x: self.bag((x.flatten(1) > 0).long()), bag=nn.EmbeddingBag(2, 3))
    ),
    "MultiheadAttention": lambda: ended(SEQUENCE, attending(0.0)),
    "TransformerEncoderLayer without dropout": lambda: ended(
        SEQUENCE, nn.TransformerEncoderLayer(SIDE, 2, 8, dropout=0.0, batch_first=True)
    ),
    "TransformerEncoder": lambda: ended(
        SEQUENCE,
        nn.TransformerEncoder(nn.TransformerEncoderLayer(SIDE, 2, 8, dropout=0.0, batch_first=True), 2),
    ),
    "Dropout of all": lambda: ended(nn.Flatten(), nn.Linear(2 * PIXELS, 5), nn.Dropout(1.0)),
    "Dropout": lambda: ended(nn.Flatten(), nn.Dropout(0.5)),
    "PReLU": lambda: ended(nn.PReLU(2)),
    "Bilinear": lambda: ended(
        Does(lambda self, x: self.both(x[:, 0], x[:, 1]), both=nn.Bilinear(SIDE, SIDE, 3))
    ),
    "weight norm": lambda: ended(
        nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(2 * PIXELS, 5))
    ),
    "spectral norm": lambda: ended(
        nn.Flatten(), nn.utils.parametrizations.spectral_norm(nn.Linear(2 * PIXELS, 5))
    ),
    "tied weights": tied,
    "frozen parameters": frozen,
    "buffers": with_buffers,
    "unused parameters": unused,
    "branches": branching,
    "nested modules": lambda: ended(nn.ModuleList([nn.Sequential(nn.Sequential(nn.PReLU()))])[0]),
}
ALL = {**DRAWING, **OTHERS}
NOT_STACKED = {"branches", "spectral norm"}
SLOW = "ignore:There is a performance drop"  # of operations that vmap runs one by one


def of(make: Callable[[], nn.Module], **options: Any) -> LocalTraining:
    return training(Of.model_construct(make=make), **options)


def rounds(train: LocalTraining, algorithm: Algorithm, devices: int = 2) -> Tensor:
    """Return the devices' models after two rounds."""
    start = train.layout.flatten(train._module)
    one = TrainedModel(train, algorithm, DeviceStates(devices, torch.device("cpu")), start)
    one.open(one.model, {k: HELD[k] for k in range(devices)})
    for round_ in range(2):
        generators = [np.random.default_rng([round_, k]) for k in range(devices)]
        plan = draw_batches(OWN[:devices], [STEPS] * devices, BATCH, generators, train.smallest_batch)
        rows = one.train(range(devices), plan, LR, []).round.rows.clone()
        one.aggregate(range(devices), HELD)
    return rows


@pytest.mark.parametrize("algorithm", [FedAvg(), Moon(), Ditto()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("name", ALL)
def test_any_layer_trains_and_repeats(name: str, algorithm: Algorithm) -> None:
    """Two rounds have the same bytes in a repetition with two threads and another state of the global generator."""
    train = of(ALL[name])
    found = rounds(train, algorithm)
    assert bool(found.isfinite().all())
    assert bool((found != train.layout.flatten(train._module)).any(1).all())
    again = of(ALL[name], threads=2)
    torch.manual_seed(999)
    assert torch.equal(rounds(again, algorithm), found)


@pytest.mark.parametrize("name", DRAWING)
def test_models_that_draw_are_not_stacked(name: str) -> None:
    with refused_at("learning.local.batching", "draws random numbers", "sequential"):
        of(DRAWING[name], batching="stacked")


@pytest.mark.filterwarnings(SLOW)
@pytest.mark.parametrize("name", sorted(OTHERS.keys() - NOT_STACKED))
def test_stacked_training_agrees(name: str) -> None:
    """Stacked training agrees with sequential training to rounding."""
    stacked, sequential = (rounds(of(ALL[name], batching=way), Moon()) for way in ("stacked", "sequential"))
    torch.testing.assert_close(stacked, sequential, atol=ROUNDING, rtol=0)


@pytest.mark.parametrize("name", sorted(NOT_STACKED))
def test_what_cannot_be_stacked_is_refused_before_the_first_round(name: str) -> None:
    with refused_at("learning.local.batching", "cannot be trained stacked", "sequential"):
        of(ALL[name], batching="stacked")


@pytest.mark.filterwarnings(SLOW)
@pytest.mark.parametrize("name", ALL)
def test_auto_does_not_stack_what_cannot_be_stacked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_training, "choose", lambda *_: "stacked")
    assert bool(rounds(of(ALL[name]), Moon()).isfinite().all())
