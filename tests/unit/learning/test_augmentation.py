"""Test shifted and mirrored images: their distribution, their pixels, and that kernels do not matter."""

import numpy as np
import pytest
import torch

from edgefl.learning.augmentation import Augmentation
from edgefl.learning.federation.training_data import TrainingData
from tests.refusals import refused_at
from tests.tools.constants import with_constants
from tests.unit.learning.digits_cell import CPU, settings_of
from tests.unit.learning.local.test_beside_pytorch import view


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
