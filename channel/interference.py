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
        self.sends = lru_cache(maxsize=_KEPT)(self._sends)
        self.which = lru_cache(maxsize=_KEPT)(self._which)

    def _sends(self, index: int) -> npt.NDArray[np.float32]:
        """Return [transmitters, BLOCK] 1 where one sends in a slot of a block, else 0."""
        return (self._uniform(index, 0) < self.load).astype(np.float32)

    def _which(self, index: int) -> npt.NDArray[np.float32]:
        """Return [transmitters, BLOCK] uniform numbers that say who of a cell it is."""
        return self._uniform(index, 1)

    def _uniform(self, index: int, purpose: int) -> npt.NDArray[np.float32]:
        rng = np.random.Generator(np.random.Philox(key=self._key, counter=[0, index, purpose, 0]))
        return rng.random((self.transmitters, BLOCK), dtype=np.float32)


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
        sends = self._activity.sends(index)
        if all(len(level) == 1 for level in self._levels):
            # einsum and not @: the sum must not depend on a library's threads
            return np.asarray(np.einsum("t,tn->n", np.concatenate(self._levels), sends))
        total = np.zeros(BLOCK)
        for level, sending, uniform in zip(self._levels, sends, self._activity.which(index), strict=True):
            if len(level):
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
    log2(1 + S / (N + I)) is convex in I, its rates are too low: transfers come out on average 1.40, 1.45, 1.41 and
    1.27 times too long with rates up to 7.4 bit/s/Hz at loads of 0.1, 0.2, 0.3 and 0.5 (UMi, places all over a cell
    amid six at 500 m; more without a cap), and right at 0 and 1. Left out: fast fading of the interference.

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
