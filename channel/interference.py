"""Slot-by-slot interference from transmitters of other cells that send in some slots."""

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from edgefl.channel.fading import BLOCK, Fading
from edgefl.channel.many_links import draw_ahead, power_of_many
from edgefl.channel.units import FloatArray

# Number of cached blocks of activity; a few suffice, since all links read the same slots in turn
_KEPT = 16
# Number of blocks of drawn interference that a receiver caches
_KEPT_DRAWN = 4
# Number of transmitters per table of sums; the 2^7 sums of a table cost as much as a few hundred slots
_GROUP = 7

IntArray = npt.NDArray[np.intp]


class TransmitterActivity:
    """The slots in which each of n transmitters sends, drawn independently with a common probability.

    The activity is a function of key and slot, and the same for all receivers.

    Args:
        key: 128-bit key of the random numbers.
        load: probability that a transmitter sends in a slot, 0 to 1.
    """

    def __init__(self, key: int, transmitters: int, load: float) -> None:
        self.load = load
        self.transmitters = transmitters
        self._key = key
        self.groups = lru_cache(maxsize=_KEPT)(self._groups)
        self.turns = lru_cache(maxsize=_KEPT)(self._turns)

    def _sends(self, index: int) -> npt.NDArray[np.bool_]:
        """Return [transmitters, BLOCK] whether each transmitter sends in each slot of a block."""
        return self._uniform(index, 0) < self.load

    def _groups(self, index: int) -> list[IntArray]:
        """Return for each group the bit masks [BLOCK] of sending transmitters, with the first in the lowest bit."""
        sends = self._sends(index).astype(np.intp)
        return [
            np.asarray(np.bitwise_or.reduce(some << np.arange(len(some))[:, None], axis=0))
            for some in np.split(sends, range(_GROUP, self.transmitters, _GROUP))
        ]

    def _turns(self, index: int) -> list[tuple[IntArray, FloatArray]]:
        """Return for each transmitter the slots of a block in which it sends, each with a uniform random number."""
        which = self._uniform(index, 1)
        slots = [np.flatnonzero(sends) for sends in self._sends(index)]
        return [(sent, uniform[sent]) for sent, uniform in zip(slots, which, strict=True)]

    def _uniform(self, index: int, purpose: int) -> npt.NDArray[np.float32]:
        rng = np.random.Generator(np.random.Philox(key=self._key, counter=[0, index, purpose, 0]))
        return rng.random((self.transmitters, BLOCK), dtype=np.float32)


class Heard:
    """Interference over noise at one receiver, slot by slot.

    Each transmitter has its own level at the receiver. A cell has one transmitter per slot on the part of the band
    that is received here, and levels are powers on that part. If a cell has several levels, such as the levels of
    devices that take turns in the uplink, one level is drawn for each slot.

    Args:
        levels: for each cell, the linear ratio of received power to noise, or several such ratios to draw from.
    """

    def __init__(self, activity: TransmitterActivity, levels: Sequence[FloatArray]) -> None:
        self._activity = activity
        self._levels = [np.asarray(level, dtype=float) for level in levels]
        means = (float(level.sum() / len(level)) for level in self._levels if len(level))
        self.mean = activity.load * sum(means)
        self._drawn: dict[int, FloatArray] = {}
        self._sums: _Sums | None = None  # None if a cell has several levels and one is drawn per slot
        self._row = 0
        if all(len(level) == 1 for level in self._levels):
            self._sums = _Sums(np.array(self._levels).T)

    @classmethod
    def each(cls, activity: TransmitterActivity, levels: FloatArray) -> "list[Heard]":
        """Return the interference at each of many receivers, where each transmitter has a single level.

        Args:
            levels: [receivers, transmitters] linear received powers divided by noise; not copied: do not change them.
        """
        means = activity.load * np.add.accumulate(levels, axis=1)[:, -1]
        sums, receivers = _Sums(levels), []
        for row, mean in enumerate(means.tolist()):
            one = cls.__new__(cls)
            one._activity, one.mean, one._sums, one._row = activity, mean, sums, row
            receivers.append(one)
        return receivers

    def over_noise(self, first_slot: int, count: int) -> FloatArray:
        """Return [count] the interference over noise of the slots first_slot, first_slot + 1, ..."""
        block, start = divmod(first_slot, BLOCK)
        if start + count <= BLOCK:
            return self._within(block, slice(start, start + count))
        pieces, end = [], first_slot + count
        for at in range(block, -(-end // BLOCK)):
            low = at * BLOCK
            pieces.append(self._within(at, slice(max(first_slot - low, 0), min(end - low, BLOCK))))
        return np.concatenate(pieces)

    @staticmethod
    def over_noise_of_many(receivers: "Sequence[Heard]", first_slot: int, count: int) -> FloatArray:
        """Return the interference over noise [receivers, count] at many receivers; fast for receivers from `each`."""
        over_noise = np.empty((len(receivers), count))
        together: dict[int, list[int]] = {}
        block, start = divmod(first_slot, BLOCK)
        for place, one in enumerate(receivers):
            if one._sums is None or start + count > BLOCK:
                over_noise[place] = one.over_noise(first_slot, count)
            else:
                together.setdefault(id(one._sums), []).append(place)
        for places in together.values():
            first = receivers[places[0]]
            assert first._sums is not None  # the loop above groups only receivers with sums
            rows = [receivers[place]._row for place in places]
            total, *others = (
                sums[rows].take(senders[start : start + count], axis=1, mode="clip")
                for sums, senders in zip(first._sums.groups, first._activity.groups(block), strict=True)
            )
            for other in others:
                total += other
            over_noise[places] = total
        return over_noise

    def _within(self, block: int, slots: slice) -> FloatArray:
        """Return the interference in the given slots of a block, as a read-only array."""
        if self._sums is None:
            if block not in self._drawn:
                if len(self._drawn) == _KEPT_DRAWN:
                    del self._drawn[min(self._drawn)]
                self._drawn[block] = self._of_block(block)
            return self._drawn[block][slots]
        total, *others = (
            sums[self._row].take(senders[slots], mode="clip")
            for sums, senders in zip(self._sums.groups, self._activity.groups(block), strict=True)
        )
        for other in others:
            total += other
        return total

    def _of_block(self, index: int) -> FloatArray:
        total = np.zeros(BLOCK)
        for level, (slots, uniform) in zip(self._levels, self._activity.turns(index), strict=True):
            if len(level):
                total[slots] += level[(uniform * len(level)).astype(np.intp)]
        return total


class _Sums:
    """Interference of every combination of a group's transmitters at many receivers, computed on first use.

    Most receivers need only the mean interference.

    Args:
        levels: [receivers, transmitters] linear received powers divided by the receiver's noise.
    """

    def __init__(self, levels: FloatArray) -> None:
        self._levels = levels

    @cached_property
    def groups(self) -> list[FloatArray]:
        """Sums [receivers, 2^transmitters] of each group's levels; an index's lowest bit is the first transmitter."""
        groups = []
        for first in range(0, self._levels.shape[1], _GROUP):
            some = self._levels[:, first : first + _GROUP]
            sums = np.zeros((len(some), 1 << some.shape[1]))
            for place in range(some.shape[1]):
                half = 1 << place
                np.add(sums[:, :half], some[:, place, None], out=sums[:, half : 2 * half])
            groups.append(sums)
        return groups


class Interfered:
    """A link's power over noise and interference, |h|^2 / (1 + I_n / N).

    The SNR of a link with this fading must not include interference. The mean-noise shortcut adds the mean of I to
    the noise instead. Since log2(1 + S / (N + I)) is convex in I, the rates of this shortcut are too low: on average,
    transfers take 1.40, 1.45, 1.41 and 1.27 times the correct time at loads of 0.1, 0.2, 0.3 and 0.5, with rates up
    to 7.4 bit/s/Hz (UMi, places anywhere in a cell with six neighbours at 500 m; without this cap, times are even
    longer). At loads of 0 and 1, the shortcut's times are correct. Left out: fast fading of the interference.

    Args:
        heard: interference at the link's receiver; this attribute is replaced when gains are measured again.
    """

    static = False
    renews = False  # the distribution of a sum of rates is unknown, since interference is correlated over time, too

    def __init__(self, fading: Fading, heard: Heard) -> None:
        self._fading = fading
        self.heard = heard
        self.correlation = fading.correlation
        self.generator = fading.generator
        self.forget = fading.forget

    @property
    def mean_power(self) -> float:
        """Mean power over noise plus mean interference."""
        return self._fading.mean_power / (1.0 + self.heard.mean)

    def power(self, first_slot: int, count: int) -> FloatArray:
        """Return [count] the power of slots beginning with first_slot, divided by the mean power over noise."""
        signal, over_noise = self.parts(first_slot, count)
        return np.asarray(signal / (1.0 + over_noise))

    def parts(self, first_slot: int, count: int) -> tuple[FloatArray, FloatArray]:
        """Return |h|^2 and interference over noise, [count] each, of the slots first_slot, first_slot + 1, ..."""
        return self._fading.power(first_slot, count), self.heard.over_noise(first_slot, count)


def draw_all_ahead(links: Sequence[Fading], first_slot: int) -> None:
    """Draw the block of a slot for links of any kind, as `draw_ahead` does for a single kind."""
    draw_ahead([link._fading if isinstance(link, Interfered) else link for link in links], first_slot)


def power_of_all(links: Sequence[Fading], first_slot: int, count: int) -> FloatArray:
    """Return the power [links, count] of links of any kind in the slots first_slot, first_slot + 1, ..."""
    fading = [link._fading if isinstance(link, Interfered) else link for link in links]
    power = power_of_many(fading, np.full(len(fading), first_slot), count)
    places = [place for place, link in enumerate(links) if isinstance(link, Interfered)]
    if places:
        heard = [link.heard for link in links if isinstance(link, Interfered)]
        over_noise = Heard.over_noise_of_many(heard, first_slot, count)
        over_noise += 1.0
        if len(places) == len(links):
            power /= over_noise
        else:
            power[places] /= over_noise
    return power
