"""Interference slot by slot: transmitters of other cells that send in a slot, or do not."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from channel.fading import BLOCK, Fading
from channel.units import FloatArray

# Blocks whose activity is kept; those of one time are asked for by all links in turn
_KEPT = 16


class Activity:
    """Which of n transmitters send in which slot: each in each with one probability, independently.

    A function of key and slot, the same for all who hear them.

    Args:
        key: 128-bit, of its random numbers.
        load: probability of sending, 0 to 1.
    """

    def __init__(self, key: int, transmitters: int, load: float) -> None:
        self.load = load
        self.transmitters = transmitters
        self._key = key
        self.block = lru_cache(maxsize=_KEPT)(self._block)

    def _block(self, index: int) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        """Return [transmitters, BLOCK] who sends in the slots of a block, and a uniform number of each."""
        rng = np.random.Generator(np.random.Philox(key=self._key, counter=[0, index, 0, 0]))
        uniform = rng.random((2, self.transmitters, BLOCK))
        return uniform[0] < self.load, uniform[1]


class Heard:
    """Interference over noise at one receiver, slot by slot.

    Each transmitter is heard at a level of its own; where a cell has several, such as the devices that take turns in
    the uplink, one of its levels is drawn for each slot. What the whole band is used for: one transmitter a slot and
    cell, with its full power over the band.

    Args:
        levels: of each transmitter of the activity, linear, its power over the noise here; several: any of them.
    """

    def __init__(self, activity: Activity, levels: Sequence[FloatArray]) -> None:
        self._activity = activity
        self._levels = [np.asarray(level, dtype=float) for level in levels]
        self._heard = lru_cache(maxsize=2)(self._of_block)

    @property
    def mean(self) -> float:
        """Its mean over time."""
        return self._activity.load * sum(float(level.mean()) for level in self._levels if len(level))

    def _of_block(self, index: int) -> FloatArray:
        sends, which = self._activity.block(index)
        total = np.zeros(BLOCK)
        # in the order of the transmitters: the sum must not depend on a library's threads
        for level, sending, uniform in zip(self._levels, sends, which, strict=True):
            if len(level) == 1:
                total += level[0] * sending
            elif len(level):
                total += level[(uniform * len(level)).astype(np.int64)] * sending
        return total

    def over_noise(self, first_slot: int, count: int) -> FloatArray:
        """[count] interference over noise of the slots first_slot, first_slot + 1, ..."""
        first, last = first_slot // BLOCK, (first_slot + max(count, 1) - 1) // BLOCK
        start = first_slot - first * BLOCK
        if first == last:
            return self._heard(first)[start : start + count]
        blocks = [self._heard(index) for index in range(first, last + 1)]
        return np.concatenate(blocks)[start : start + count]


class Interfered:
    """A link's power over noise and interference: |h|^2 / (1 + I_n / N).

    Its SNR is then that without interference. The mean-noise shortcut puts the mean of I into the noise instead; as
    log2(1 + S / (N + I)) is convex in I, its rates are too low: transfers come out 1.2 to 1.4 times too long at loads
    of 0.1 to 0.5 with rates up to 7.4 bit/s/Hz (more without a cap), and right at 0 and 1. Left out: fast fading of
    the interference.

    Args:
        heard: at the link's receiver; may be replaced when gains are read anew.
    """

    static = False

    def __init__(self, fading: Fading, heard: Heard) -> None:
        self._fading = fading
        self.heard = heard
        self.correlation = fading.correlation
        self.generator = fading.generator

    @property
    def mean_power(self) -> float:
        """The power at the mean interference."""
        return self._fading.mean_power / (1.0 + self.heard.mean)

    def power(self, first_slot: int, count: int) -> FloatArray:
        """[count] power of the slots first_slot, first_slot + 1, ..., relative to the mean over noise."""
        over_noise = self.heard.over_noise(first_slot, count)
        return np.asarray(self._fading.power(first_slot, count) / (1.0 + over_noise))
