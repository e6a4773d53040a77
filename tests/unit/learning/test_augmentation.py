"""Images shifted within a black margin and mirrored: by law, pixel by pixel, alike however devices are trained."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from edgefl import EdgeflError, load_scenario
from edgefl.contract import SessionStart
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.updates.updates import TrainedRound
from edgefl.run.plan import prepare
from tests.tools.constants import with_constants

CLOSE = 1e-6
DEVICES, STEPS, LR, RHO = 3, 10, 0.1, 0.9


def view(augmentation: Augmentation, image: np.ndarray, number: int) -> np.ndarray:
    """Pad with zeros, cut, mirror, as it is told."""
    margin, offsets = augmentation.padding, 2 * augmentation.padding + 1
    down, right, mirrored = number % offsets, number // offsets % offsets, number // offsets**2
    height, width = image.shape[-2:]
    padded = np.pad(image, [(0, 0)] * (image.ndim - 2) + [(margin, margin)] * 2)
    cut = padded[..., down : down + height, right : right + width]
    return cut[..., ::-1] if mirrored else cut


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
    """Of n views the mirrored ones are n/2 +- 4 standard errors; chi square of the 81 places within 5 of its own."""
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


BASE: dict[str, Any] = {
    "name": "augmented",
    "devices": {"count": DEVICES},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "learning": {
        "dataset": "digits",
        "partition": "iid",
        "model": "logistic",
        "batch": 16,
        "lr": LR,
        "steps": STEPS,
        "momentum": RHO,
        "augmentation": True,
    },
}


def trained(**changes: Any) -> tuple[Any, TrainedRound]:
    learner = prepare(load_scenario(BASE).with_(**changes), device="cpu").learner
    stage = next(iter(learner.session(SessionStart(1, tuple(range(DEVICES)), 1))))
    stage.train(range(DEVICES), 1)
    return learner, learner.federation.model.waiting_round(range(DEVICES))


@pytest.mark.parametrize("model", ["logistic", {"name": "mlp", "hidden": [5]}], ids=["written out", "vmap"])
def test_stacked_is_one_by_one_is_a_loop_over_padded_images(model: Any) -> None:
    learner, stacked = trained(learning__batching="stacked", learning__model=model)
    _, sequential = trained(learning__batching="sequential", learning__model=model)
    assert torch.allclose(stacked.rows, sequential.rows, atol=CLOSE)
    data, layout, module = learner.trainer.training_data.train, learner.trainer.layout, learner.trainer.module
    plan, augmentation = stacked.batches, Augmentation()
    assert plan is not None
    assert plan.views is not None
    for k in range(DEVICES):
        module.load_state_dict(layout.views(stacked.start.clone()))
        optimiser = torch.optim.SGD(module.parameters(), lr=LR, momentum=RHO)
        for step in range(STEPS):
            size = plan.sizes[k, step]
            rows = plan.rows[k, step, :size]
            images = np.stack(
                [
                    view(augmentation, data.x[row].numpy(), number)
                    for row, number in zip(rows, plan.views[k, step, :size].tolist(), strict=True)
                ]
            )
            x = (torch.from_numpy(images).float() - data.mean) * data.scale
            optimiser.zero_grad()
            cross_entropy(module(x), data.y[rows]).backward()
            optimiser.step()
        assert torch.allclose(layout.flatten(module), stacked.rows[k], atol=CLOSE)


def test_batches_stay() -> None:
    _, plain = trained(learning__augmentation=False)
    _, seen = trained()
    assert plain.batches is not None
    assert seen.batches is not None
    assert np.array_equal(plain.batches.rows, seen.batches.rows)
    assert not torch.equal(plain.rows, seen.rows)


def test_what_is_no_image_is_refused() -> None:
    with pytest.raises(EdgeflError, match=r"learning.augmentation: .*samples are \[60\]: only images"):
        prepare(load_scenario(BASE).with_(learning__dataset="synthetic"), device="cpu")
