"""Test the times at which a run samples its devices' positions if the scenario does not set them."""

import math
from itertools import pairwise, takewhile

import pytest

from edgefl.engine.cells.positions import FEWEST_LOOKS, FIRST_S, LOOKS, MOST_ROWS, looks


def test_a_run_with_an_end_is_looked_at_evenly_from_its_start_to_its_end() -> None:
    times = list(looks(10, 86_400.0))
    assert len(times) == LOOKS + 1
    assert (times[0], times[-1]) == (0.0, 86_400.0)
    assert {round(b - a, 6) for a, b in pairwise(times)} == {216.0}


@pytest.mark.parametrize("devices", [1, 500, 2_000, 5_000])
def test_many_devices_are_looked_at_less_often(devices: int) -> None:
    assert len(list(looks(devices, 100.0))) * devices <= max(MOST_ROWS, LOOKS * devices) + devices
    assert (len(list(looks(devices, 100.0))) - 1) * devices <= MOST_ROWS or devices < 500


def test_no_number_of_devices_is_looked_at_less_than_some_times() -> None:
    assert len(list(looks(1_000_000, 100.0))) == FEWEST_LOOKS + 1


@pytest.mark.parametrize("lasted_s", [30.0, 1e3, 86_400.0, 3e6])
def test_an_open_end_costs_looks_by_the_logarithm_of_how_long_it_lasts(lasted_s: float) -> None:
    """A run has 400 samples at first, and 200 per doubling of time; its last half has at least 100 even steps."""
    times = list(takewhile(lambda time_s: time_s <= lasted_s, looks(10, math.inf)))
    doublings = max(0.0, math.log2(lasted_s / (LOOKS * FIRST_S)))
    assert len(times) <= LOOKS * (1 + 0.5 * (doublings + 1)) + 1
    assert times == sorted(times)
    half = [time_s for time_s in times if time_s >= lasted_s / 2]
    assert len(half) >= min(100, lasted_s / FIRST_S / 2)
    assert max(b - a for a, b in pairwise(times)) <= max(2 * FIRST_S, lasted_s / 100)
