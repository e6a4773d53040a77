"""Test that free-space loss follows Friis's formula."""

import math

import numpy as np
import pytest

from edgefl.channel.path_loss.free_space import FreeSpace

FREE_SPACE = FreeSpace()


def test_free_space_is_friis() -> None:
    # at a distance of one wavelength the loss is (4 pi)^2, with or without line of sight
    wavelength_m = 3e8 / 3.5e9
    loss = FREE_SPACE.path_loss_db(
        wavelength_m, carrier_hz=3.5e9, line_of_sight=False, bs_height_m=2.0, ut_height_m=2.0
    )
    assert loss == pytest.approx(20 * math.log10(4 * math.pi), rel=1e-12)
    # 3 m horizontally and 4 m vertically are 5 m in 3D, twice 2.5 m
    far = FREE_SPACE.path_loss_db(3.0, carrier_hz=3.5e9, bs_height_m=5.0, ut_height_m=1.0)
    near = FREE_SPACE.path_loss_db(2.5, carrier_hz=3.5e9, bs_height_m=1.0, ut_height_m=1.0)
    assert far - near == pytest.approx(20 * math.log10(2), rel=1e-12)


def test_free_space_is_always_in_sight_and_has_no_shadowing() -> None:
    np.testing.assert_array_equal(FREE_SPACE.los_probability([1.0, 1e6]), 1.0)
    assert FREE_SPACE.std_db == (0.0, 0.0)
