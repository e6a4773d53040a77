"""Test that all kernels agree, and that local training does not depend on batching, order or other devices."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from edgefl.config import registry
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.moon import Moon
from edgefl.learning.data.batches import Batches, draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.batching import STACKED_FROM, choose
from edgefl.learning.local.chunk_training import ChunkTraining
from edgefl.learning.local.gradients import ByHand, OneByOne, Stacked
from edgefl.learning.local.local_task import LocalTask
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import ChunkOfDevices, Model, OutputTerm
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.mlp2 import Mlp2
from edgefl.learning.models.resnet18 import Resnet18
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.learning.warm_starts.continuous import Continuous
from tests.refusals import refused_at
from tests.unit.learning.six_devices import (
    BATCH,
    CLASSES,
    DEVICES,
    EACH_KIND,
    HELD,
    LR,
    MEAN,
    OWN,
    RHO,
    SIDE,
    STD,
    Plain,
    X,
    training,
)

STEPS = [4, 1, 3, 4, 2, 4]
ROUNDING = 1e-5  # tolerance for a few float32 steps whose sums differ in order; parameters are about 1
BF16 = 2.0**-8  # relative rounding error of a product's inputs


class Convolutions(Plain):
    """A model with batch norm and dropout, in the features and before the head."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        module = nn.Sequential()
        layers = [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten()]
        module.add_module("features", nn.Sequential(*layers, nn.Linear(4 * 16, 5), nn.BatchNorm1d(5)))
        module.add_module("dropout", nn.Dropout(0.5))
        module.add_module("head", nn.Linear(5, classes))
        return module


MODELS = [Logistic(), Plain(), Convolutions()]


def name_of(value: object) -> str:
    return type(value).__name__ if isinstance(value, Model | Algorithm) else str(value)


# all algorithms; a quick run tests one of each kind
ALGORITHMS = registry.names("algorithms")


def start_of(train: LocalTraining) -> Tensor:
    return train.layout.flatten(train._module)


def batches(train: LocalTraining, round_: int = 0, ids: list[int] | None = None) -> Batches:
    ids = list(range(DEVICES)) if ids is None else ids
    generators = [np.random.default_rng([round_, k]) for k in ids]
    samples = [OWN[k] for k in ids]
    return draw_batches(samples, [STEPS[k] for k in ids], BATCH, generators, train.smallest_batch)


def fedavg(train: LocalTraining, plan: Batches | None = None, start: Tensor | None = None) -> LocalTask:
    """Return a round of FedAvg, by default of all devices from the initial model."""
    start = start_of(train) if start is None else start
    return LocalTask(start, plan or batches(train), LR, FedAvg())


def ends(train: LocalTraining, task: LocalTask | None = None) -> Tensor:
    """Return the local models [K, M + Q], by default of a round of FedAvg."""
    return train.run(task or fedavg(train)).rows.clone()


def rounds(train: LocalTraining, algorithm: Algorithm, terms: list[OutputTerm]) -> tuple[Tensor, Tensor]:
    """Return the local models of a second round, and the model aggregated from them."""
    one = TrainedModel(train, algorithm, DeviceStates(DEVICES, torch.device("cpu")), start_of(train))
    one.open(one.model, HELD)
    for round_ in range(2):
        rows = one.train(range(DEVICES), batches(train, round_), LR, terms).round.rows.clone()
        one.aggregate(range(DEVICES), HELD)
    return rows, one.model


def distillation(train: LocalTraining) -> OutputTerm:
    torch.manual_seed(5)
    teacher = start_of(train)
    teacher = teacher + 0.3 * torch.rand_like(teacher)
    return Continuous(coefficient=0.8).anchor(teacher, torch.tensor([True, False, True]))


# ---- kernels agree


def kernels(model: Model, kind: type, **options: Any) -> LocalTraining:
    """Make local training that uses this kernel instead of the kernel that it would choose."""
    train = training(model, **options)
    train._kind = lambda task: kind
    return train


@pytest.mark.parametrize(
    ("name", "model"),
    [
        # as algorithms do not depend on models, only one algorithm of each kind is tested with all models
        *((name, Plain()) for name in ALGORITHMS),
        *(
            (name, model)
            for name in (*EACH_KIND, "hypcluster")
            for model in (Convolutions(), Logistic(), Mlp2(hidden=6))
        ),
    ],
    ids=name_of,
)
def test_the_ways_agree(name: str, model: Model) -> None:
    """All kernels agree for devices with unequal batches and steps, with the distillation of `continuous`."""
    algorithm = registry.get("algorithms", name)()
    by_hand = [ByHand] if model.writes_out() else []
    *others, one = (
        rounds(train, algorithm, [distillation(train)])
        for train in (kernels(model, kind) for kind in (*by_hand, Stacked, OneByOne))
    )
    for other in others:
        for ours, theirs in zip(other, one, strict=True):
            scale = 1.0 if by_hand else float(theirs.abs().max())
            assert float((ours - theirs).abs().max()) < ROUNDING * scale * 10


@pytest.mark.parametrize(("mean", "std"), [(MEAN, STD), (0.0, 1.0)])
def test_logistic_regression_folds_the_scaling_of_inputs(mean: float, std: float) -> None:
    """The stepper gets raw inputs, and autograd scaled inputs; two of three devices have a second step."""
    train = training(Logistic())
    layout = train.layout.parameters
    torch.manual_seed(2)
    rows, weight = torch.randn(3, layout.size) / 10, torch.rand(2, 3, 8)
    y = torch.randint(0, CLASSES, (2, 3, 8))
    raw = torch.randint(0, 256, (2, 3, 8, 2, SIDE, SIDE)).float()
    steps = Logistic().stepper(ChunkOfDevices(layout, rows, y, weight, scaling=(mean, 1 / std)))
    for step, active in ((0, 3), (1, 2)):
        scaled = (raw[step, :active] - mean) / std
        labels = (y[step, :active], weight[step, :active])
        expected = Model.gradients(Logistic(), train._module, layout, rows[:active], scaled, *labels)
        found = steps(step, active, lambda step, first, end: raw[step, first:end])
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))


# ---- independence of batching, order and other devices


@pytest.mark.parametrize("batching", ["stacked", "sequential"])
@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_threads_do_not_matter(model: Model, batching: str) -> None:
    found = []
    for threads in (1, 3):
        train = training(model, batching=batching, threads=threads, memory_bytes=1)
        found.append(ends(train))
    assert torch.equal(*found)


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_neither_chunks_nor_neighbours_matter(model: Model) -> None:
    """A device has the same model alone or among other devices, with momentum, batches, masks and statistics."""
    train = training(model, batching="stacked", memory_bytes=10**9)
    earlier = start_of(train) + 0.1

    def previous(devices: Sequence[int]) -> Tensor:
        return earlier.expand(len(devices), -1)

    together = ends(train, LocalTask(start_of(train), batches(train), LR, Moon(), previous=previous))
    for k in range(DEVICES):
        work = LocalTask(start_of(train), batches(train, 0, [k]), LR, Moon(), previous=previous)
        torch.testing.assert_close(ends(train, work)[0], together[k], atol=ROUNDING * 10, rtol=0)
    small = training(model, batching="stacked", memory_bytes=1)
    assert small.chunk(BATCH) == 1
    alone = ends(small, LocalTask(start_of(small), batches(small), LR, Moon(), previous=previous))
    torch.testing.assert_close(alone, together, atol=ROUNDING * 10, rtol=0)


def test_nothing_is_left_over_from_the_last_round() -> None:
    for model in MODELS:
        train = training(model, batching="stacked")
        assert torch.equal(ends(train), ends(train))


def test_devices_can_start_from_models_of_their_own() -> None:
    for model in MODELS:
        train = training(model, batching="stacked")
        starts = start_of(train) + 0.1 * torch.rand(DEVICES, train.layout.size)
        together = ends(train, fedavg(train, start=starts))
        for k in (0, 4):
            alone = ends(train, fedavg(train, batches(train, 0, [k]), starts[k]))
            torch.testing.assert_close(alone[0], together[k], atol=ROUNDING * 10, rtol=0)


# ---- batch norm and dropout


def test_statistics_move_as_in_training_mode() -> None:
    """After e steps, a device's running mean is 0.9^e times the initial mean, plus its own batches' means."""
    train = training(Convolutions(), batching="stacked")
    start = start_of(train)
    plan = batches(train)
    rows = ends(train, LocalTask(start, plan, 0.0, FedAvg()))  # at rate 0, batch norm's inputs stay equal
    with torch.no_grad():
        conv = train._module.features[0]
        for k in range(DEVICES):
            mean = torch.zeros(4)
            for step in range(STEPS[k]):
                chosen = plan.rows[k, step, : plan.sizes[k, step]]
                outputs = conv((torch.from_numpy(X[chosen]).float() - MEAN) / STD)
                mean = 0.9 * mean + 0.1 * outputs.mean((0, 2, 3))
            found = train.layout.views(rows[k])["features.1.running_mean"]
            torch.testing.assert_close(found, mean, atol=ROUNDING, rtol=1e-5)


def test_statistics_are_averaged_like_parameters() -> None:
    train = training(Convolutions())
    assert train.layout.statistics.size == 2 * (4 + 5)
    one = TrainedModel(train, FedAvg(), DeviceStates(DEVICES, torch.device("cpu")), start_of(train))
    one.open(one.model, HELD)
    rows = one.train(range(DEVICES), batches(train), LR, []).round.rows.double().numpy().copy()
    one.aggregate([1, 4], HELD)
    weights = np.array([HELD[1], HELD[4]]) / (HELD[1] + HELD[4])
    assert np.abs(one.model.numpy() - weights @ rows[[1, 4]]).max() < ROUNDING * 10


def test_dropout_masks_are_the_devices_own() -> None:
    """Changing a device's seed changes only this device's model."""
    train = training(Convolutions(), batching="stacked")
    plan = batches(train)
    first = ends(train, fedavg(train, plan))
    plan.seeds[2] += 1
    second = ends(train, fedavg(train, plan))
    differs = (first != second).any(1)
    assert differs.tolist() == [k == 2 for k in range(DEVICES)]


# ---- the choice


@pytest.mark.parametrize("model", [Logistic(), Mlp2()], ids=name_of)
def test_a_model_with_gradients_of_its_own_is_trained_by_these(model: Model) -> None:
    """A model's own gradients are used even if the loss has additional terms."""
    train = training(model)
    start = start_of(train)
    previous = {"previous": lambda devices: start.expand(len(devices), -1)}
    for algorithm in (FedAvg(), Moon()):
        ends(train, LocalTask(start, batches(train), LR, algorithm, **previous))
        assert list(train._workers) == [ByHand]


def test_a_model_that_writes_out_the_cross_entropy_alone_meets_further_terms_by_autograd() -> None:
    class Alone(Plain):
        def gradients(self, *given: Any) -> Tensor:
            return super().gradients(*given)

    train = training(Alone())
    plan = batches(train)
    assert train._kind(fedavg(train, plan)) is ByHand
    assert train._kind(LocalTask(start_of(train), plan, LR, Moon())) is not ByHand


def kind_of(train: LocalTraining, times: int) -> type:
    """Return the kernel that is chosen for a round of 6 x `times` devices."""
    return train._kind(fedavg(train, batches(train, 0, list(range(DEVICES)) * times)))


def test_the_choice_is_by_layers_sizes_and_processor() -> None:
    """Small dense models are stacked; convolutions on a CPU, and recurrent layers anywhere, train sequentially.

    If a round has few devices, or memory suffices for few devices, they train sequentially, too.
    """
    assert kind_of(training(Plain()), 2) is Stacked
    assert kind_of(training(Plain()), 1) is OneByOne
    assert kind_of(training(Plain(), memory_bytes=10_000), 2) is OneByOne
    assert kind_of(training(Convolutions()), 2) is OneByOne
    dense, conv = (model.build((2, SIDE, SIDE), 3) for model in (Plain(), Convolutions()))
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    assert choose(dense, STACKED_FROM, cpu) == "stacked"
    assert choose(dense, STACKED_FROM - 1, cpu) == "sequential"
    assert choose(conv, 100, cpu) == "sequential"
    assert choose(dense, 1, cuda) == choose(conv, 1, cuda) == "stacked"
    for name in ("lstm", "text_bag"):
        ours = registry.get("models", name)(**SMALL[name]).build((9,), 3)
        assert choose(ours, 100, cpu) == choose(ours, 100, cuda) == "sequential"
    assert choose(nn.LSTM(3, 4), 100, cuda) == "sequential"


@pytest.mark.parametrize("name", [name for name in registry.names("models") if name != "factory"])
def test_the_choice_knows_all_layers_of_our_models(name: str) -> None:
    """All layers are known, so all models except the LSTM and the bag of embeddings are stacked on a GPU."""
    model = registry.get("models", name)(**SMALL.get(name, {}))
    module = model.build(INPUT.get(name, model.typical_input), CLASSES)
    stacked = choose(module, 1, torch.device("cuda")) == "stacked"
    assert stacked == (name not in ("lstm", "text_bag"))


def test_the_same_choice_gives_the_same_bytes() -> None:
    ids = list(range(DEVICES)) * 2
    for model, batching in ((Plain(), "stacked"), (Convolutions(), "sequential")):
        trainings = training(model), training(model, batching=batching)
        assert torch.equal(*(ends(train, fedavg(train, batches(train, 0, ids))) for train in trainings))


class Unstackable(Plain):
    """A model whose control flow depends on data, which vmap does not support."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        class Branch(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return x if x.sum() > 0 else 2 * x

        return nn.Sequential(nn.Flatten(), Branch(), nn.Linear(2 * SIDE * SIDE, classes))


def test_a_model_that_cannot_be_stacked_goes_one_by_one() -> None:
    train = training(Unstackable())
    ends(train)
    assert list(train._workers) == [OneByOne]
    with refused_at("learning.local.batching"):
        training(Unstackable(), batching="stacked")


def test_the_size_of_a_written_out_chunk_matters_by_rounding_alone() -> None:
    """Chunks of one, some, or all devices differ by rounding only, as BLAS rounds differently for other shapes.

    A sum of n products errs by at most 6 sqrt(n) 2^-24 of the sum of their sizes, in all but 2n exp(-18) of cases
    (Higham and Mary, SIAM J. Sci. Comput. 41, 2019). So logits err by `logit`, and a probability by half of `logit`,
    as its slope by each logit is at most 1/4. A gradient errs by this plus the error of its sum over the batch, times
    an input. SGD adds gradients with momentum's weights. The factor 2 is for the two compared results.
    """
    ends_of = {}
    for memory_bytes in (1, 20_000, 10**9):
        train = training(Logistic(), memory_bytes=memory_bytes)
        ends_of[train.chunk(BATCH)] = ends(train)
    assert len(ends_of) == 3
    found = list(ends_of.values())
    largest = max(MEAN, 255 - MEAN) / STD  # largest input
    weights = [train.layout.views(row)["1.weight"] for end in found for row in end]
    # bound of the sum of the magnitudes of a logit's products
    products = largest * max(float(weight.abs().sum(1).max()) for weight in weights)
    logit = rounding_of_a_sum(2 * SIDE**2) * products
    gradient = (logit / 2 + rounding_of_a_sum(BATCH)) * largest
    tolerance = 2 * LR * float(train.travel(np.array([max(STEPS)]))[0]) * gradient
    moved = float((found[0] - start_of(train)).abs().max())
    assert tolerance < 1e-3 * moved, "one more sample, weight or step exceeds the tolerance"
    for other in found[1:]:
        assert float((other - found[0]).abs().max()) < tolerance


def rounding_of_a_sum(count: int) -> float:
    """Bound the relative rounding error of a float32 sum of this many products, with high probability."""
    return 6 * count**0.5 * 2.0**-24


def test_chunks_fit_the_memory() -> None:
    """Chunks of logistic regression on 28x28 images have ten devices, the measured optimum."""
    module = Logistic().build((28, 28), 10)
    split = Split(np.zeros((1, 28, 28), np.uint8), np.zeros(1, np.int64))
    data = SplitInMemory(split, *(np.float32(1),) * 2, torch.device("cpu"))
    shipped = LocalTraining(Logistic(), module, data, UpdateRule(0.9))
    assert shipped.chunk(128) == 10
    train = training(Plain(), memory_bytes=10**6)
    numbers = 4 * train.layout.size + BATCH * (2 * SIDE**2 + 2 * (2 * SIDE**2 + 7 + 7 + CLASSES))
    assert train.chunk(BATCH) == 10**6 // (4 * numbers)


def test_a_chunk_that_a_gpu_cannot_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(chunk: ChunkTraining, positions: list[int]) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(ChunkTraining, "run", full)
    train = training(Plain())
    with refused_at("learning.local.batching", "GPU"):
        ends(train)


# ---- precision


class Smooth(Plain):
    """A convolution without batch norm, with images in their stored order or channels last."""

    last: bool

    @property
    def channels_last_gain(self) -> str:
        return "all" if self.last else "none"

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(2, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(64, classes))


@pytest.mark.parametrize("batching", ["stacked", "sequential"])
@pytest.mark.parametrize(
    ("model", "read_as", "roundings"),
    [
        (Smooth(last=False), Smooth(last=False), 4),
        (Smooth(last=False), Smooth(last=True), 4),
        (Convolutions(), Convolutions(), 8),  # more roundings, in batch norm and layers
    ],
)
def test_bf16_is_float32_to_rounding(batching: str, model: Model, read_as: Model, roundings: int) -> None:
    """Updates agree up to a few roundings of the inputs, as parameters remain in float32."""
    updates = []
    for one, bf16 in ((model, False), (read_as, True)):
        # with batch norm, the exact updates are always trained sequentially
        train = training(one, batching=batching if bf16 or roundings < 8 else "sequential", bf16=bf16)
        start = start_of(train)
        updates.append((ends(train) - start).clone())
    exact, rounded = updates
    error = float((rounded - exact).norm() / exact.norm())
    assert 0 < error < roundings * BF16


def test_a_model_that_gains_by_it_is_trained_channels_last_to_rounding() -> None:
    found = {}
    for gain in ("none", "tests", "all"):
        gaining = type("Gaining", (Convolutions,), {"channels_last_gain": gain, "__module__": __name__})
        found[gain] = ends(training(gaining()))
    assert torch.equal(found["none"], found["tests"])
    assert not torch.equal(found["none"], found["all"])
    torch.testing.assert_close(found["none"], found["all"], atol=ROUNDING * 10, rtol=0)


def test_bf16_is_refused_where_its_gradients_are_wrong() -> None:
    """Images that shrink to one pixel before ResNet-18's last stride are refused."""
    with refused_at("learning.local.precision"):
        training(Resnet18(), bf16=True)
    training(Resnet18())


def test_bf16_goes_through_autograd_also_for_logistic_regression() -> None:
    train = training(Logistic(), bf16=True, batching="stacked")
    ends(train)
    assert list(train._workers) == [Stacked]


# ---- every registered model

SMALL: dict[str, dict[str, int]] = {"lstm": {"hidden": 12}, "text_bag": {"vocabulary": 80}}
INPUT = {"resnet18": (3, 64, 64), "svhn_cnn": (3, 16, 16), "cnn2": (12, 12), "lstm": (9,), "text_bag": (9,)}
INPUT |= {"mlp2": (7,), "mlp": (7,)}


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap cannot batch an embedding bag
@pytest.mark.parametrize(
    ("name", "algorithm", "devices"),
    [
        (name, *how)
        for name in registry.names("models")
        if name not in ("resnet34", "factory")
        for how in ((Moon(), 2), (FedAvg(), 1))
        if name != "resnet18" or how[1] == 2
    ],
    ids=name_of,
)
def test_kernels_train_every_model_alike(name: str, algorithm: Algorithm, devices: int) -> None:
    """All kernels agree for unequal batches and two steps, with statistics and dropout, and all parameters change."""
    model = registry.get("models", name)(**SMALL.get(name, {}))
    shape = INPUT.get(name, model.typical_input)
    draws = np.random.default_rng(4)
    data = Split(draws.integers(0, 80, (12, *shape), dtype=np.uint8), draws.integers(0, CLASSES, 12))
    torch.manual_seed(3)
    module = model.build(shape, CLASSES)
    tokens = name in ("lstm", "text_bag")
    scaling = (np.float32(0), np.float32(1)) if tokens else (np.float32(40), np.float32(23))
    split = SplitInMemory(data, *scaling, torch.device("cpu"))
    own, rngs = [np.arange(7), np.arange(7, 12)], [np.random.default_rng(k) for k in range(devices)]
    plan = draw_batches(own[:devices], [2, 2][:devices], 4, rngs, 2)
    found = []
    for kind in (ByHand, Stacked, OneByOne):
        if kind is ByHand and not model.writes_out_terms():
            continue
        train = LocalTraining(model, module, split, UpdateRule(RHO), memory_bytes=10**9)
        train._kind = lambda task, kind=kind: kind
        start = train.layout.flatten(module)
        previous = 1.01 * start.expand(2, -1)
        task = LocalTask(start, plan, 0.01, algorithm, previous=lambda ids, rows=previous: rows[: len(ids)])
        found.append(ends(train, task) - start)
    scale = float(found[-1].abs().max())
    assert scale > 0
    for other in found[:-1]:
        assert float((other - found[-1]).abs().max()) < 1e-3 * scale
    without_effect = biases_before_batch_norm(module, torch.zeros(2, *shape))
    for name_of_tensor, moved in train.layout.parameters.views(train.layout.split(found[0])[0]).items():
        if name_of_tensor in without_effect:
            assert float(moved.abs().max()) < ROUNDING * scale
        else:
            assert bool((moved != 0).any()), "a tensor that does not move is not trained"


def biases_before_batch_norm(module: nn.Module, x: Tensor) -> set[str]:
    """Return the biases directly before a batch norm; their gradients are zero, as it subtracts the mean."""
    outputs: list[tuple[str, Tensor]] = []
    without_effect: set[str] = set()

    def note(name: str, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if isinstance(layer, _BatchNorm):
            without_effect.update(maker for maker, made in outputs if made is inputs[0])
        elif getattr(layer, "bias", None) is not None:
            outputs.append((f"{name}.bias", output))

    layers = [(name, layer) for name, layer in module.named_modules() if not list(layer.children())]
    hooks = [layer.register_forward_hook(partial(note, name)) for name, layer in layers]
    with torch.no_grad():
        module(x)
    for hook in hooks:
        hook.remove()
    return without_effect


class Sliced(Model):
    """A model that slices its ParameterList."""

    class Module(nn.Module):
        def __init__(self, inputs: int, classes: int) -> None:
            super().__init__()
            self.weights = nn.ParameterList([torch.randn(classes, inputs), torch.randn(classes)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.linear(x.flatten(1), *self.weights[:2])

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return Sliced.Module(int(np.prod(input_shape)), classes)


def test_a_module_that_hides_its_parameters_is_not_stacked() -> None:
    with refused_at("learning.local.batching", "weights.0, weights.1", "sequential"):
        training(Sliced(), batching="stacked")
    train = training(Sliced(), batching="sequential")
    start = start_of(train)
    assert bool((ends(train) != start).any(1).all())
