"""Test that stacked and sequential training agree with a plain PyTorch loop, for each task and augmented images."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from edgefl import load_scenario
from edgefl.contract import SessionStart
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.federation.training_data import TrainingData
from edgefl.learning.updates.updates import TrainedRound
from edgefl.run.plan import prepare
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tools.constants import with_constants
from tests.unit.learning.digits_cell import CPU, settings_of

CLOSE = 1e-6
EPS = torch.finfo(torch.float32).eps


class Noisy(Dataset):
    """A data set of forty samples of six values, for any task."""

    learns: str

    @property
    def task(self) -> str:
        return self.learns

    def load(self) -> Data:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(50, 6)).astype(np.float32)
        z = x @ rng.normal(size=(6, 3)) + rng.normal(size=(50, 3))
        y = {
            "regression": (10 + 5 * z[:, 0]).astype(np.float32),
            "multi_label": (z > 0).astype(np.float32),
        }.get(self.learns, z.argmax(1))
        whole, tests = Split(x, y), np.arange(50) >= 40
        names = tuple("a" if self.learns == "regression" else "abc")
        return Data.unscaled(whole.part(~tests), whole.part(tests), names)


@dataclass(frozen=True)
class Case:
    """Learning settings, and PyTorch's loss of outputs and the data set's targets."""

    learning: dict[str, Any]
    loss: Callable[[Tensor, Tensor], Tensor]
    devices: int = 4
    mu: float = 0.0  # of FedProx
    close: float = CLOSE
    steps: int = 50

    def trained(self, **further: Any) -> tuple[Any, TrainedRound]:
        plain = {"partition": "iid", "local": {"steps": self.steps}}
        settings = within(within(plain, self.learning), further)
        scenario = {"name": "one", "devices": {"count": self.devices}, "learning": settings}
        scenario["sessions"] = {"name": "schedule", "count": 1, "rounds": 1}
        learner = prepare(load_scenario(scenario), device="cpu").learner
        ids = tuple(range(self.devices))
        next(iter(learner.session(SessionStart(1, ids, 1)))).train(ids, 1)
        return learner, learner.federation.model.waiting_round(ids)


def squared(outputs: Tensor, y: Tensor) -> Tensor:
    """Return the squared error for targets standardised by the mean and deviation of the training samples."""
    data = Noisy(learns="regression").load().train.y.astype(np.float64)
    return functional.mse_loss(outputs[:, 0], (y - data.mean()) / data.std())


def of_task(name: str, loss: Callable[..., Tensor], algorithm: str) -> Case:
    learning = {
        "dataset": {"name": f"{__name__}:Noisy", "learns": name},
        "model": {"name": "mlp2", "hidden": 5},
        "local": {"batch": 8, "lr": 0.05, "momentum": 0.9},
        "algorithm": algorithm,
    }
    # each step rounds a weight of order 1 by EPS / 2; momentum multiplies this error by 1 / (1 - rho)
    return Case(learning, loss, mu=float(algorithm == "fedprox"), close=50 / (1 - 0.9) * EPS / 2)


LETTERS = {
    "dataset": {"name": "tests.unit.learning.test_every_token:Letters"},
    "model": {"name": "lstm", "vocabulary": 5, "hidden": 6, "targets": "every"},
    "local": {"batch": 4, "lr": 0.5, "momentum": 0.5},
    "algorithm": "fedprox",
}
SEEN = {"dataset": "digits", "local": {"batch": 16, "lr": 0.1, "momentum": 0.9, "augmentation": True}}
CASES = {
    "next_token": of_task("next_token", functional.cross_entropy, "fedprox"),
    "regression": of_task("regression", squared, "fedprox"),
    "regression scaffold": of_task("regression", squared, "scaffold"),
    "multi_label": of_task("multi_label", functional.binary_cross_entropy_with_logits, "fedprox"),
    # PyTorch's loss expects classes in the second dimension, and averages over texts and positions
    "every_token": Case(LETTERS, lambda out, y: functional.cross_entropy(out.transpose(1, 2), y), 3, mu=1.0),
    "augmented, written out": Case({**SEEN, "model": "logistic"}, functional.cross_entropy, 3, steps=10),
    "augmented, vmap": Case(
        {**SEEN, "model": {"name": "mlp", "hidden": [5]}}, functional.cross_entropy, 3, steps=10
    ),
}


def view(augmentation: Augmentation, image: np.ndarray, number: int) -> np.ndarray:
    """Return an image's view with this number: padded with zeros, cropped, and mirrored in half of the views."""
    margin, offsets = augmentation.padding, 2 * augmentation.padding + 1
    down, right, mirrored = number % offsets, number // offsets % offsets, number // offsets**2
    height, width = image.shape[-2:]
    padded = np.pad(image, [(0, 0)] * (image.ndim - 2) + [(margin, margin)] * 2)
    cut = padded[..., down : down + height, right : right + width]
    return cut[..., ::-1] if mirrored else cut


def inputs(data: SplitInMemory, rows: np.ndarray, views: np.ndarray | None) -> Tensor:
    if views is None:
        return data.normalised(torch.from_numpy(rows)).clone()
    pairs = zip(rows, views.tolist(), strict=True)
    images = np.stack([view(Augmentation(), data.x[row].numpy(), number) for row, number in pairs])
    return (torch.from_numpy(images).float() - data.mean) * data.scale


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap runs an LSTM device by device
@pytest.mark.parametrize("name", CASES)
def test_stacked_is_one_by_one_is_pytorch(name: str) -> None:
    """Stacked and sequential training agree with PyTorch, even if devices' batches differ in size."""
    case = CASES[name]
    learner, stacked = case.trained(local={"batching": "stacked"})
    _, sequential = case.trained(local={"batching": "sequential"})
    assert torch.allclose(stacked.rows, sequential.rows, atol=case.close)
    data, layout, module = learner.trainer.training_data.train, learner.trainer.layout, learner.trainer.module
    plan = stacked.batches
    begin = [one.clone() for one in layout.views(stacked.start).values()]
    for k in range(case.devices):
        module.load_state_dict(layout.views(stacked.start.clone()))
        lr, momentum = (case.learning["local"][key] for key in ("lr", "momentum"))
        optimiser = torch.optim.SGD(module.parameters(), lr=lr, momentum=momentum)
        for step in range(case.steps):
            size = plan.sizes[k, step]
            rows = plan.rows[k, step, :size]
            optimiser.zero_grad()
            loss = case.loss(
                module(inputs(data, rows, None if plan.views is None else plan.views[k, step, :size])),
                data.y[rows],
            )
            own = zip(module.parameters(), begin, strict=True)
            near = sum((parameter - start).square().sum() for parameter, start in own)
            (loss + case.mu / 2 * near).backward()
            optimiser.step()
        assert torch.allclose(layout.flatten(module), stacked.rows[k], atol=case.close)


def test_batches_stay_as_they_are_where_images_are_seen_otherwise() -> None:
    (_, plain), (_, seen) = (
        CASES["augmented, vmap"].trained(local={"augmentation": how}) for how in (False, True)
    )
    assert np.array_equal(plain.batches.rows, seen.batches.rows)
    assert not torch.equal(plain.rows, seen.rows)


@pytest.mark.parametrize("shape", [(6, 5), (3, 4, 7)], ids=["grey", "colour"])
def test_pixels_come_from_the_padded_image_in_every_view(shape: tuple[int, ...]) -> None:
    augmentation = with_constants(Augmentation, padding=2)()
    numbers = np.arange(augmentation.views)
    assert len(numbers) == 5 * 5 * 2
    images = np.random.default_rng(0).integers(1, 256, (len(numbers), *shape), dtype=np.uint8)
    seen = augmentation.seen(torch.from_numpy(images), torch.from_numpy(numbers))
    assert seen.dtype == torch.uint8
    for image, number, found in zip(images, numbers.tolist(), seen.numpy(), strict=True):
        assert np.array_equal(found, view(augmentation, image, number))


def test_half_are_mirrored_and_all_places_are_as_likely() -> None:
    """Half of the views are mirrored (4 standard errors); chi-square of 81 shifts is within 5 standard deviations."""
    augmentation, n = Augmentation(), 40_000
    views = augmentation.draw(np.full((1, 1), n), n, [np.random.default_rng(1)])[0, 0]
    places = 81
    assert abs((views >= places).mean() - 0.5) < 4 * 0.5 / n**0.5
    counts = np.bincount(views % places, minlength=places)
    chi_square = ((counts - n / places) ** 2 / (n / places)).sum()
    assert abs(chi_square - (places - 1)) < 5 * (2 * (places - 1)) ** 0.5


def test_a_device_draws_the_same_in_any_company() -> None:
    augmentation, sizes = Augmentation(), np.array([[4, 2], [7, 7]])
    together = augmentation.draw(sizes, 7, [np.random.default_rng(k) for k in range(2)])
    alone = augmentation.draw(sizes[:1], 4, [np.random.default_rng(0)])
    assert np.array_equal(together[0, :, :4], alone[0])
    assert not together[0, 0, 4:].any()


def test_what_is_no_image_is_refused() -> None:
    with refused_at("learning.local.augmentation", "[60]"):
        TrainingData(settings_of(dataset="synthetic", local={"augmentation": True}), CPU, devices=3)
