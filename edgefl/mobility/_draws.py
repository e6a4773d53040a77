"""Random numbers that can be read at any index of a sequence, for many devices at once."""

import math

import numpy as np

from edgefl.rng import Streams

# SplitMix64: step of the sequence, and the multipliers of its mixing function
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


class UniformDraws:
    """Uniform random numbers as a function of the seed, the device and the index in the device's sequence.

    One call draws numbers for all devices, whereas NumPy generators require a Python call for each device. The
    sequence of a device is the output of SplitMix64, started at the device's own key. All sequences are sections of
    one cycle of 2^64 numbers; 10,000 sections of a million numbers overlap with a probability of about 1e-5.

    Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
    """

    def __init__(
        self, streams: Streams, devices: int, name: tuple[str | int, ...] = ("mobility", "path")
    ) -> None:
        self._keys = streams.low_keys(name, devices)

    def uniform(self, ids: np.ndarray, first: int | np.ndarray, count: int) -> np.ndarray:
        """Return uniform numbers [count, ids], strictly between 0 and 1.

        Args:
            ids: numbers of the devices to draw for.
            first: [ids] index of the first number to read in each device's sequence, >= 0, or one index for all.
            count: how many successive numbers to read.
        """
        places = np.broadcast_to(np.asarray(first, dtype=np.uint64), ids.shape)
        with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is intended
            state = np.arange(1, count + 1, dtype=np.uint64)[:, None] + places
            state *= _STEP
            state += self._keys[ids]
            for shift, factor in zip(_SHIFTS, _MIX, strict=False):
                state ^= state >> shift
                state *= factor
            state ^= state >> _SHIFTS[-1]
        # 52 random bits plus one half: the result is never 0 or 1
        return ((state >> np.uint64(12)) + 0.5) * 2.0**-52


def normal(uniform: np.ndarray) -> np.ndarray:
    """Return independent standard normal numbers [2, n], from uniform numbers [2, n] (Box and Muller, 1958)."""
    size = np.sqrt(-2.0 * np.log(uniform[0]))
    angle = 2.0 * math.pi * uniform[1]
    return np.stack([size * np.cos(angle), size * np.sin(angle)])
