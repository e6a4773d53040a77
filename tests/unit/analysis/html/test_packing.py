"""Test that packed columns unpack to the original values within half a unit."""

import json

import numpy as np
import pytest

from edgefl.analysis.html.replay import Column, pack, unit_of
from tests.tools.unpacked import unpack


@pytest.mark.parametrize(("largest", "bytes_"), [(3000.0, 2), (30_000.0, 4)])
def test_unpacking_gives_back_the_values(largest: float, bytes_: int) -> None:
    tracks = np.random.default_rng(1).uniform(-largest, largest, (7, 50))
    tracks[2, 10:20] = np.nan
    tracks[3] = np.nan
    packed = json.loads(json.dumps(pack({"x_m": Column(tracks, 0.1), "id": Column(np.arange(50))})))
    found = unpack(packed)
    assert packed["columns"][0]["bytes"] == bytes_
    np.testing.assert_allclose(found["x_m"], tracks, atol=0.05 + 1e-9)
    np.testing.assert_array_equal(found["id"], np.arange(50))


def test_a_walk_takes_less_than_a_byte_and_a_half_per_coordinate() -> None:
    """Positions of 100 walkers for an hour, every 5 s, take less than 1.5 bytes per coordinate before base64."""
    steps = np.random.default_rng(2).normal(0.0, 7.0, (2, 100, 720))
    walks = np.clip(np.cumsum(steps, axis=-1), -3000, 3000)
    packed = pack({"x_m": Column(walks[0], 0.1), "y_m": Column(walks[1], 0.1)})
    assert len(packed["data"]) < 1.5 * walks.size * 4 / 3


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"column x: 1e\+10 units of 1 do not fit"):
        pack({"x": Column(np.array([1e10]))})


def test_the_largest_that_fits_in_32_bits_is_kept_and_the_next_is_refused() -> None:
    """Integers of 32 bits range from -2^31 to 2^31 - 1, and the lowest marks missing values."""
    largest = np.array([2.0**31 - 2, -(2.0**31 - 2), np.nan])
    np.testing.assert_array_equal(unpack(pack({"x": Column(largest)}))["x"], largest)
    for beyond in (2.0**31, -(2.0**31)):
        with pytest.raises(ValueError, match="do not fit in 32 bits"):
            pack({"x": Column(np.array([beyond]))})


@pytest.mark.parametrize("largest", [2.6, 3600.0, 86_400.0, 2e9])
def test_the_unit_is_the_finest_that_fits(largest: float) -> None:
    unit = unit_of(largest)
    assert largest / unit <= 2e9 < 10 * largest / unit * (1 + 1e-9)
    pack({"x": Column(np.array([largest]), unit)})


def test_nothing_is_packed_and_unpacked() -> None:
    assert unpack(pack({"x": Column(np.array([]))}))["x"].size == 0
