"""Test that scores and losses of models follow their definitions for any division into blocks and threads."""

import threading

import numpy as np
import pytest
import torch

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Moment
from edgefl.learning.drifts.label_swap import LabelSwap
from edgefl.learning.federation.drifting import Drifting, both_concepts
from edgefl.learning.models import Model
from edgefl.learning.models.lenet import Lenet
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.resnet18 import Resnet18
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.scores import tester as blocks
from edgefl.learning.scores.tester import ModelTester
from edgefl.learning.tasks.classification import VECTOR, Classification
from edgefl.learning.thread_pool import ThreadPool

CPU, CLASSES, SAMPLES = torch.device("cpu"), 4, 61
EPS = float(np.finfo(np.float32).eps)
MEAN, STD = 100.0, 60.0


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrink blocks, so that 61 samples take several blocks, and logistic regression reads blocks in parts."""
    monkeypatch.setattr(blocks, "BATCH", 16)
    monkeypatch.setattr(blocks, "BATCH_WRITTEN", 16)
    monkeypatch.setattr("edgefl.learning.models._logistic_steps.TESTED_BYTES", 4 * 3 * 64 * 5)


def images(channels: int = 1, side: int = 8) -> Split:
    rng = np.random.default_rng(0)
    shape = (SAMPLES, channels, side, side)
    return Split(rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, CLASSES, SAMPLES))


def in_memory(split: Split, std: np.ndarray | float = STD) -> SplitInMemory:
    return SplitInMemory(split, np.float32(MEAN), np.asarray(std, np.float32), CPU, count=SAMPLES)


def built(model: Model, split: Split) -> tuple[torch.nn.Module, torch.Tensor]:
    """Return a module in evaluation mode, and a model [M + Q] that differs from the module's own."""
    torch.manual_seed(0)
    module, other = (model.build(split.x.shape[1:], CLASSES).eval() for _ in range(2))
    return module, ModelLayout.of(other).flatten(other)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("scattered", [False, True])
def test_written_outputs_are_the_modules(channels: int, scattered: bool) -> None:
    """Outputs agree with a float64 reference within float32 rounding of a sum of D products of the largest inputs."""
    split = images(channels)
    # with standard deviations per channel, inputs are scaled before the product
    data = in_memory(split, STD if channels == 1 else np.array([50.0, 60.0, 70.0]).reshape(3, 1, 1))
    module, model = built(Logistic(), split)
    rows = torch.from_numpy(np.flatnonzero(split.y != 1) if scattered else np.arange(5, 50))
    found = torch.cat(
        ModelTester(Logistic(), module, ThreadPool(1)).run(model, data, rows, lambda outputs, y: outputs)
    )
    weights, bias = (one.double() for one in ModelLayout.of(module).views(model).values())
    scale = (data.scale.double() * torch.ones(split.x.shape[1:])).flatten()
    x = torch.from_numpy(split.x[rows]).double().flatten(1)
    wanted = ((x - MEAN) * scale) @ weights.t() + bias
    largest = (255 * scale * weights.abs()).sum(1).max().item()
    assert torch.allclose(found.double(), wanted, rtol=0, atol=weights.shape[1] * EPS * largest)


@pytest.mark.parametrize("model", [Logistic(), Lenet(), Resnet18()], ids=lambda model: type(model).__name__)
def test_threads_change_no_byte(model: Model) -> None:
    split = images(3, 16)
    module, row = built(model, split)
    before = [one.clone() for one in module.state_dict().values()]
    alone, together = (
        ModelTester(model, module, ThreadPool(count)).evaluate(row, in_memory(split), range(CLASSES))
        for count in (1, 3)
    )
    assert alone == together
    assert all(map(torch.equal, before, module.state_dict().values()))


@pytest.mark.parametrize("channels", [1, 3])
def test_convolutions_are_tested_channels_last(channels: int) -> None:
    """Channels-last order changes scores by rounding only, and is applied to a copy of the given module."""
    split, seen = images(channels, 16), set()
    module, row = built(Lenet(), split)
    second = next(layer for layer in module.features if getattr(layer, "in_channels", 0) == 6)
    second.register_forward_pre_hook(
        lambda layer, given: seen.add(given[0].is_contiguous(memory_format=torch.channels_last))
    )
    data, rows, found = in_memory(split), torch.arange(len(split.y)), []
    lying = type("Lying", (Lenet,), {"channels_last_gain": "none", "__module__": __name__})()
    for model, last in ((Lenet(), True), (lying, False)):
        seen.clear()
        tester = ModelTester(model, module, ThreadPool(1))
        found.append(torch.cat(tester.run(row, data, rows, lambda outputs, y: outputs)))
        assert seen == {last}
        seen.clear()
        module(data.normalised(rows[:3]))
        assert seen == {False}
    torch.testing.assert_close(*found, rtol=0, atol=1e-5 * found[1].abs().max().item())


@pytest.mark.parametrize("labels", [range(CLASSES), [0, 2]])
def test_accuracy_and_loss_by_their_definitions(labels: list[int]) -> None:
    split = images()
    module, model = built(Logistic(), split)
    accuracy, loss = ModelTester(Logistic(), module, ThreadPool(1)).evaluate(model, in_memory(split), labels)
    kept = np.isin(split.y, labels)
    weights, bias = (one.double().numpy() for one in ModelLayout.of(module).views(model).values())
    logits = (split.x[kept].reshape(-1, 64) - MEAN) / STD @ weights.T + bias
    y = split.y[kept]
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(y)), y]
    assert accuracy == (logits.argmax(1) == y).mean()
    # an error of a logit, about 1e-6 as above, changes a loss by at most twice as much
    assert loss == pytest.approx(losses.mean(), abs=2 * 64 * EPS * 255 / STD * np.abs(weights).sum(1).max())


def test_after_a_drift_other_labels_are_right() -> None:
    split = images()
    drift = LabelSwap(at=1)
    changed, both = drift.change(split, CLASSES), both_concepts(drift, split, CLASSES)
    assert both.x is split.x
    module, model = built(Logistic(), split)
    tester, data = ModelTester(Logistic(), module, ThreadPool(1)), in_memory(both)
    afterwards = tester.evaluate(model, data.lap(1), range(CLASSES))
    assert afterwards == tester.evaluate(model, in_memory(changed), range(CLASSES))
    assert afterwards != tester.evaluate(model, data, range(CLASSES))


def test_a_model_is_tested_once_and_again_when_anything_is_another() -> None:
    """A model is tested again only if model, labels, concept or data change, or if it has NaN."""
    split = images()
    module, model = built(Logistic(), split)
    tester, asked = ModelTester(Logistic(), module, ThreadPool(1)), []
    swap, ids = LabelSwap(at=2), range(2)
    drifting = Drifting(swap, np.arange(2), 2)
    data, others = (in_memory(both_concepts(swap, split, CLASSES)) for _ in range(2))
    find = tester.of_labels
    tester.of_labels = lambda *args: asked.append(args) or find(*args)
    before, after, unknown = 1, 2, model.new_full(model.shape, np.nan)
    turns = [
        (model, data, [0, 1], before, True), (model, data, [0, 1], before, False),
        (model.clone(), data, [0, 1], before, False), (model, data, [1, 2], before, True),
        (model, data, [0, 1], after, True), (model + 1, data, [0, 1], after, True),
        (model + 1, others, [0, 1], after, True), (unknown, data, [0], before, True),
        (unknown, data, [0], before, True),
    ]  # fmt: skip
    for number, (row, of, labels, round_, anew) in enumerate(turns):
        asked.clear()
        scores = drifting.test(tester, row, of, labels, ids, Moment(round_, 0.0))
        assert bool(asked) == anew, number
        plain = tester.evaluate(row, of.lap(round_ - 1), labels)
        assert scores == plain or row is unknown


@pytest.mark.parametrize("classes", [2, VECTOR - 1, VECTOR, 40])
@pytest.mark.parametrize("by_class", [False, True])
def test_losses_are_the_cross_entropy_however_logits_lie(classes: int, by_class: bool) -> None:
    rng = np.random.default_rng(classes)
    logits, y = rng.normal(0, 3, (SAMPLES, classes)), rng.integers(0, classes, SAMPLES)
    wanted = np.log(np.exp(logits).sum(1)) - logits[np.arange(SAMPLES), y]
    outputs, task = torch.from_numpy(logits).float(), Classification()
    outputs = outputs.t().contiguous().t() if by_class else outputs
    targets = torch.from_numpy(y)
    exact = {"atol": 4 * EPS * np.abs(logits).max(), "rtol": 4 * EPS}
    assert np.allclose(task.loss(outputs, targets, "none"), wanted, **exact)
    assert np.allclose(task.loss(outputs, targets, "mean"), wanted.mean(), **exact)
    assert task.scores(outputs, targets).tolist() == (logits.argmax(1) == y).tolist()


def test_hands_do_each_job_once_and_report_failures() -> None:
    pool, done, together = ThreadPool(3), [], threading.Barrier(3, timeout=60)

    def note(hand: int, job: int) -> None:
        if job < 3:
            together.wait()  # each thread waits until three work at the same time
        done.append((hand, job))

    pool.work(note, range(20))
    assert sorted(job for _, job in done) == list(range(20))
    assert {hand for hand, _ in done} == {0, 1, 2}

    def fail(hand: int, job: int) -> None:
        raise ValueError(f"job {job}")

    with pytest.raises(ValueError, match="job"):
        pool.work(fail, [1, 2, 3])
