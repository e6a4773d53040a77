"""Test random numbers that can be read at any index."""

import math

import numpy as np
from scipy import special

from edgefl.channel.geometry import on_disc
from edgefl.mobility._draws import UniformDraws, normal
from edgefl.rng import Streams

SEED = 5
DEVICES = 200
NUMBERS = 500
STANDARD_ERRORS = 4
MASK = 2**64 - 1
DRAWS = UniformDraws(Streams(SEED), DEVICES)
EVERYONE = np.arange(DEVICES)


def split_mix_64(state: int) -> int:
    """Return the mixing function as published, in integers of any size."""
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
    state = (state ^ state >> 27) * 0x94D049BB133111EB & MASK
    return state ^ state >> 31


def test_sequence_of_a_device_is_splitmix64() -> None:
    # first number printed by Vigna's reference program with seed 1234567
    assert split_mix_64(1234567 + 0x9E3779B97F4A7C15 & MASK) == 6457827717110365317
    key = Streams(SEED).key("mobility", "path", 3) & MASK
    expected = [
        (split_mix_64(key + (n + 1) * 0x9E3779B97F4A7C15 & MASK) >> 12) * 2.0**-52 + 2.0**-53
        for n in range(10)
    ]
    assert DRAWS.uniform(np.array([3]), 0, 10)[:, 0].tolist() == expected
    assert DRAWS.uniform(np.array([3]), 4, 2)[:, 0].tolist() == expected[4:6]
    assert DRAWS.uniform(np.array([7, 3]), np.array([0, 9]), 1)[0, 1] == expected[9]


def test_numbers_are_uniform_and_independent() -> None:
    numbers = DRAWS.uniform(EVERYONE, 0, NUMBERS)
    count = numbers.size
    ordered = np.sort(numbers.ravel())
    distance = np.abs(ordered - (np.arange(count) + 0.5) / count).max()
    assert distance < special.kolmogi(1e-3) / math.sqrt(count)
    centred = (numbers - 0.5) * math.sqrt(12)
    for other in (np.roll(centred, 1, axis=0), np.roll(centred, 1, axis=1), np.roll(centred, 7, axis=0)):
        assert abs((centred * other).mean()) < STANDARD_ERRORS / math.sqrt(count)
        # squares have a variance of 1.8 - 1 = 0.8 each
        assert abs(((centred**2 - 1) * (other**2 - 1)).mean()) < STANDARD_ERRORS * 0.8 / math.sqrt(count)


def test_points_on_a_disc_and_normal_numbers() -> None:
    uniform = DRAWS.uniform(EVERYONE, 0, 2)
    points = on_disc(uniform, 30.0)
    assert np.allclose(np.hypot(*points), 30.0 * np.sqrt(uniform[0]))
    first = DRAWS.uniform(EVERYONE, 0, NUMBERS)
    deviates = normal(np.stack([first[0::2].ravel(), first[1::2].ravel()])).ravel()
    count = len(deviates)
    assert abs(deviates.mean()) < STANDARD_ERRORS / math.sqrt(count)
    assert abs(deviates.var() - 1) < STANDARD_ERRORS * math.sqrt(2 / count)
    # E x^4 = 3, and its variance is 105 - 9
    assert abs((deviates**4).mean() - 3) < STANDARD_ERRORS * math.sqrt(96 / count)
