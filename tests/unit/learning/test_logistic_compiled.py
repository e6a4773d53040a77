"""Logistic regression in C: its gradients and logits by their definitions, whatever is computed beside them."""

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import Tensor

import edgefl
from edgefl import EdgeflError, load_scenario
from edgefl.learning import compiling
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedprox import FedProx
from edgefl.learning.algorithms.moon import Moon
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.drifts.label_swap import LabelSwap
from edgefl.learning.hands import Hands
from edgefl.learning.local.local_task import LocalTask
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import ChunkOfDevices
from edgefl.learning.models import _logistic_compiled as in_c
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.modules.parameters import ModelLayout, TensorLayout
from edgefl.learning.scores.evaluation import evaluate
from edgefl.learning.scores.tester import ModelTester
from edgefl.run.plan import prepare

pytestmark = pytest.mark.skipif(compiling.compiler() is None, reason="there is no C compiler")
EPS = float(np.finfo(np.float32).eps)
MEAN, SCALE, CPU = 90.0, 1 / 70.0, torch.device("cpu")
# classes and inputs on both sides of every width of vectors and of every tile
SIZES = [(1, 1), (2, 3), (3, 16), (5, 17), (9, 8), (10, 784), (11, 33), (14, 100), (23, 60)]


def chunk_of(
    classes: int, inputs: int, count: int, batch: int, sizes: list[int], raw: bool
) -> ChunkOfDevices:
    """Two steps of devices whose batches hold so many samples; logits differ by some tens."""
    rng = np.random.default_rng(classes * inputs)
    layout = TensorLayout(("w", "b"), (torch.Size([classes, inputs]), torch.Size([classes])))
    there = np.arange(batch) < np.array(sizes)[:, None]
    weight = np.broadcast_to(there / np.array(sizes)[:, None], (2, count, batch)).astype(np.float32)
    samples = rng.integers(0, 50, (2, count, batch))
    x = torch.from_numpy(rng.integers(0, 256, (50, inputs), dtype=np.uint8))
    weights, biases = (
        rng.normal(0, 3 / inputs**0.5, (count, classes * inputs)),
        rng.normal(0, 20, (count, classes)),
    )
    return ChunkOfDevices(
        layout,
        torch.from_numpy(np.concatenate([weights, biases], 1).astype(np.float32)),
        torch.from_numpy(rng.integers(0, classes, (2, count, batch))),
        torch.from_numpy(weight),
        (MEAN, SCALE),
        (x if raw else x.float(), torch.from_numpy(samples)),
    )


def gradients(chunk: ChunkOfDevices, raw: bool, block_bytes: int = 1) -> list[Tensor]:
    """Of both steps; the last device has done its training after the first."""
    assert chunk.raw is not None
    x, samples = chunk.raw
    seen = ChunkOfDevices(
        chunk.layout, chunk.rows, chunk.y, chunk.weight, chunk.scaling, chunk.raw if raw else None
    )
    steps = in_c.CompiledSteps(seen, block_bytes)

    def read(step: int, first: int, end: int) -> Tensor:
        assert not raw
        return x[samples[step, first:end]].float()

    count = len(chunk.rows)
    return [steps(step, active, read).clone() for step, active in enumerate((count, count - 1))]


def rounding_of_a_sum(count: int) -> float:
    """The error of a float32 sum of so many products, relative to the sum of their sizes, but for rare cases."""
    return 6 * count**0.5 * 2.0**-24


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(("classes", "inputs"), SIZES)
@pytest.mark.parametrize("batch", [1, 6, 37])
def test_gradients_by_their_definition(classes: int, inputs: int, batch: int, raw: bool) -> None:
    """delta = weight (softmax - onehot), in double precision; the tolerance is that of float32 sums as long."""
    sizes = [batch, max(1, batch - 3), batch]
    chunk = chunk_of(classes, inputs, 3, batch, sizes, raw)
    assert chunk.raw is not None
    x, samples = chunk.raw
    for step, found in enumerate(gradients(chunk, raw)):
        for k, gradient in enumerate(found.double().numpy()):
            w = chunk.rows[k].double().numpy()
            weights, bias = w[: classes * inputs].reshape(classes, inputs), w[classes * inputs :]
            inputs_seen = (x[samples[step, k]].double().numpy() - MEAN) * SCALE
            logits = inputs_seen @ weights.T + bias
            shares = np.exp(logits - logits.max(1, keepdims=True))
            shares /= shares.sum(1, keepdims=True)
            shares[np.arange(batch), chunk.y[step, k].numpy()] -= 1
            delta = shares * chunk.weight[step, k].double().numpy()[:, None]
            wanted = np.concatenate([(delta.T @ inputs_seen).ravel(), delta.sum(0)])
            # of raw inputs, of which the mean's part is taken away in the end; an error of a logit moves a share by
            # half as much at most, and shares' own is that of an exponential of up to 100
            products = (x[samples[step, k]].double().numpy() + MEAN) * SCALE @ np.abs(weights).T + np.abs(
                bias
            )
            logit = rounding_of_a_sum(inputs) * products.max()
            share = logit / 2 + 8 * EPS + rounding_of_a_sum(batch)
            assert np.abs(gradient - wanted).max() <= share * (255 + MEAN) * SCALE, (step, k)
            assert share < 0.1 / batch, "a sample too many, or its label, adds up to 1 / batch"


@pytest.mark.parametrize("raw", [True, False])
def test_neither_other_devices_nor_padding_reach_a_gradient(raw: bool) -> None:
    chunk = chunk_of(10, 100, 4, 37, [37, 20, 5, 37], raw)
    together = gradients(chunk, raw, block_bytes=10**9)
    for one, other in zip(together, gradients(chunk, raw), strict=True):
        assert torch.equal(one, other)
    assert chunk.raw is not None
    narrow = ChunkOfDevices(
        chunk.layout, chunk.rows[1:3], chunk.y[:, 1:3, :20], chunk.weight[:, 1:3, :20], chunk.scaling,
        (chunk.raw[0], chunk.raw[1][:, 1:3, :20]),
    )  # fmt: skip
    assert torch.equal(gradients(narrow, raw)[0], together[0][1:3])


def test_a_model_that_is_no_number_has_no_gradient() -> None:
    """So that its divergence is seen, and not before; its neighbours' are as they were."""
    chunk = chunk_of(3, 16, 3, 6, [6, 6, 6], True)
    before = gradients(chunk, True)[0]
    chunk.rows[1, 0] = torch.nan
    found = gradients(chunk, True)[0]
    assert found[1].isnan().all()
    assert torch.equal(found[[0, 2]], before[[0, 2]])
    chunk.rows[1, 0] = torch.inf
    assert gradients(chunk, True)[0][1].isnan().any()


SIDE, CLASSES = 8, 10
rng = np.random.default_rng(0)
IMAGES = Split(rng.integers(0, 256, (90, SIDE, SIDE), dtype=np.uint8), rng.integers(0, CLASSES, 90))


def trained(compiled: bool, algorithm: Algorithm, after: Split | None, augmentation: Any) -> Tensor:
    """Local models of three devices after two epochs in batches of 16, the second one on data after a drift."""
    model = Logistic(compiled=compiled)
    torch.manual_seed(0)
    module = model.build((SIDE, SIDE), CLASSES)
    data = SplitInMemory(
        IMAGES, np.float32(MEAN), np.float32(1 / SCALE), CPU, after, augmentation=augmentation
    )
    train = LocalTraining(model, module, data, UpdateRule(0.9))
    own = [np.arange(30), np.arange(30, 73) + (90 if after else 0), np.arange(73, 90)]
    batches = draw_batches(own, [4, 6, 4], 16, [np.random.default_rng(k) for k in range(3)])
    if augmentation is not None:
        draws = [np.random.default_rng(k) for k in range(3)]
        views = augmentation.draw(batches.sizes, batches.rows.shape[2], draws)
        batches = type(batches)(**{**vars(batches), "views": views})
    start = train.layout.flatten(module)
    task = LocalTask(
        start, batches, 0.01, algorithm, previous=lambda positions: start.expand(len(positions), -1)
    )
    return train.run(task).rows - start


@pytest.mark.parametrize("algorithm", [FedProx(), Moon()], ids=["fedprox", "moon"])
@pytest.mark.parametrize("after", [None, LabelSwap(at=1).change(IMAGES, CLASSES)], ids=["before", "after"])
@pytest.mark.parametrize("augmentation", [None, Augmentation()], ids=["seen", "turned"])
def test_devices_train_as_by_pytorch(algorithm: Algorithm, after: Split | None, augmentation: Any) -> None:
    """All the same but for the rounding of a few steps; MOON's term goes the same way in both."""
    plain, compiled = (trained(way, algorithm, after, augmentation) for way in (False, True))
    if isinstance(algorithm, Moon):
        assert torch.equal(plain, compiled)
    assert float((plain - compiled).abs().max()) < 1e-5 < 1e-3 * float(plain.abs().max())


def test_models_are_tested_as_by_the_module() -> None:
    module = Logistic().build((SIDE, SIDE), CLASSES).eval()
    row = ModelLayout.of(module).flatten(module)
    data = SplitInMemory(IMAGES, np.float32(MEAN), np.float32(1 / SCALE), CPU)
    plain, compiled = (
        evaluate(ModelTester(Logistic(compiled=way), module, Hands(1)), row, data, range(CLASSES))
        for way in (False, True)
    )
    assert plain[0] == compiled[0]
    assert plain[1] == pytest.approx(compiled[1], rel=64 * EPS)


SCENARIO = """\
name: small
devices: {count: 12}
sessions: {name: schedule, count: 1, rounds: 2}
learning: {dataset: digits, steps: 2, batch: 16, model: {name: logistic, compiled: true}}
"""


def test_threads_change_no_byte(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SCENARIO)
    scenario = edgefl.load_scenario(tmp_path / "small.yaml")
    for threads in (1, 3):
        edgefl.simulate(scenario, tmp_path / str(threads), device="cpu", threads=threads)
    for table in ("rounds.csv", "devices.csv"):
        assert (tmp_path / "1" / table).read_bytes() == (tmp_path / "3" / table).read_bytes()


@pytest.mark.parametrize("first", [0, 1], ids=["as they lie", "somewhere"])
def test_logits_of_bytes_are_those_of_their_floats(first: int) -> None:
    """Which are read together with a sample makes no bit."""
    x = torch.from_numpy(rng.integers(0, 256, (90, 33), dtype=np.uint8))
    samples = torch.arange(first, 90, 1 + first)
    weights, offset = torch.randn(7, 33), torch.randn(7)
    found, wanted = (torch.zeros(7, 100)[:, : len(samples)] for _ in range(2))
    in_c.product_of_bytes(weights, (x, samples), offset, SCALE, found)
    in_c.product(weights, x[samples].float(), offset, SCALE, wanted)
    assert torch.equal(found, wanted)
    exact = SCALE * weights.double() @ x[samples].double().T + offset.double()[:, None]
    assert torch.allclose(found.double(), exact, atol=rounding_of_a_sum(33) * 255 * SCALE * 33)


@pytest.fixture
def anew() -> Any:
    """The functions are made anew, and again by who comes next."""
    in_c._library.cache_clear()
    yield in_c.library
    in_c._library.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PATH", "", "there is no C compiler .cc, gcc, clang.: install one .*; or set it to false"),
        ("CC", "no-such-compiler", "there is no C compiler .no-such-compiler."),
        ("CC", "false", "false .*fails .*name another compiler in the variable CC; or set it to false"),
        ("CFLAGS", "-no-such-option", r"-no-such-option fails \(.*no-such-option"),
    ],
)
def test_what_is_missing_is_named_and_done_without_if_nobody_insists(
    name: str, value: str, told: str, anew: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(EdgeflError, match=told) as error:
        Logistic(compiled=True).on_this_machine(CLASSES, CPU)
    assert error.value.place == ("learning", "model", "compiled")
    model = Logistic().on_this_machine(CLASSES, CPU)
    assert (model.compiled, model.computed_by()) == (False, "PyTorch")


def test_who_says_nothing_gets_it_where_it_is_faster() -> None:
    on_a_gpu = torch.device("cuda")
    most = in_c.MOST_CLASSES
    assert Logistic().on_this_machine(most, CPU).compiled is True
    assert Logistic().on_this_machine(most + 1, CPU).compiled is False
    assert Logistic().on_this_machine(most, on_a_gpu).compiled is False
    assert Logistic(compiled=True).on_this_machine(most + 1, CPU).compiled is True
    assert Logistic(compiled=False).on_this_machine(most, CPU).compiled is False
    with pytest.raises(EdgeflError, match="--device cpu"):
        Logistic(compiled=True).on_this_machine(most, on_a_gpu)


def test_a_run_says_what_has_computed_it(anew: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it goes on with the same alone, and its reader knows why last digits differ elsewhere."""
    text = SCENARIO.replace(", compiled: true", "")
    said = []
    for path in (None, ""):
        if path is not None:
            monkeypatch.setenv("PATH", path)
            in_c._library.cache_clear()
        plan = prepare(load_scenario(yaml.safe_load(text)), device="cpu")
        assert plan.training is not None
        assert plan.training.further["computed_by"] == plan.model["model"]["computed_by"]
        said.append(plan.training.further["computed_by"])
    assert said == [f"C, compiled by {compiling._version(('cc',))}", "PyTorch"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the option is this processor's")
def test_narrower_vectors_give_the_same_but_for_rounding(anew: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = chunk_of(10, 100, 3, 37, [37, 20, 37], True)
    found = gradients(chunk, True)
    in_c._library.cache_clear()
    monkeypatch.setenv("CFLAGS", "-mno-avx")
    for one, other in zip(found, gradients(chunk, True), strict=True):
        assert torch.allclose(one, other, atol=1e-5 * float(one.abs().max()), rtol=0)
