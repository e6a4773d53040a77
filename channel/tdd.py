"""Time-division duplex frames, which define the share of each slot that serves downlink and uplink.

A direction has one weight per slot of a period: 1 for its own slots, 0 for the other direction's slots, and for a
special slot the share of symbols that serve this direction. The slot's absolute index modulo the period selects the
weight. Without weights (None) every slot serves the transfer, as in the journal paper's separate intervals. Flexible
slots have no weights either; each flexible slot serves the direction that has data.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray

__all__ = ["Direction", "Frame", "Pattern", "frame_of"]

Direction = Literal["downlink", "uplink"]
# [period] share of each slot; a hashable key for cached tables
Weights = tuple[float, ...]

SYMBOLS_PER_SLOT = 14


@dataclass(frozen=True)
class Pattern:
    """A frame of downlink (D), uplink (U) and special (S) slots that repeats from slot 0, or flexible slots (F).

    Args:
        pattern: one letter per slot, e.g. DDDSU; F if all slots are flexible.
        special: symbols of a special slot for downlink, guard and uplink, e.g. 10:2:2; they sum to 14.

    Raises:
        ValueError: a letter is unknown, symbols do not sum to 14, or a direction has no symbol.

    Source: 3GPP TS 38.213, 11.1. Left out: reference and control symbols; special slots that differ within a period.
    """

    pattern: str = "DDDSU"
    special: str = "10:2:2"

    def __post_init__(self) -> None:
        wrong = sorted(set(self.pattern) - set("DSU"))
        if not self.flexible and (wrong or not self.pattern):
            raise ValueError(
                "pattern must be made of D (downlink), S (special) and U (uplink), such as DDDSU, or be F "
                f"(flexible), got {self.pattern!r}" + (f" with {', '.join(wrong)}" if wrong else "")
            )
        self._special_symbols()
        for direction in get_args(Direction):
            if not any(self.weights(direction)):
                raise ValueError(
                    f"pattern {self.pattern} with special slot {self.special} gives the {direction} "
                    f"no symbol: add a {direction[0].upper()}, or an S with {direction} symbols"
                )

    @property
    def flexible(self) -> bool:
        """Whether each slot serves the direction that has data in it."""
        return self.pattern == "F"

    def weights(self, direction: Direction) -> Weights:
        """Return [period] the share of each slot that serves a direction; for DDDSU's downlink 1, 1, 1, 10/14, 0.

        A flexible slot can serve either direction in full.
        """
        if direction not in get_args(Direction):
            raise ValueError(f"direction must be one of {', '.join(get_args(Direction))}, got {direction!r}")
        downlink, _, uplink = self._special_symbols()
        symbols = downlink if direction == "downlink" else uplink
        share = {"D": 0.0, "U": 0.0, "S": symbols / SYMBOLS_PER_SLOT, "F": 1.0, direction[0].upper(): 1.0}
        return tuple(share[letter] for letter in self.pattern)

    def _special_symbols(self) -> tuple[int, int, int]:
        parts = self.special.split(":")
        if len(parts) == 3 and all(part.isdecimal() for part in parts):
            downlink, guard, uplink = (int(part) for part in parts)
            if downlink + guard + uplink == SYMBOLS_PER_SLOT:
                return downlink, guard, uplink
        raise ValueError(
            "special must give the symbols of downlink, guard and uplink, "
            f"which sum to {SYMBOLS_PER_SLOT}, such as 10:2:2, got {self.special!r}"
        )


class Frame:
    """One direction's weights with their sums. Airtime is a sum of weights, in full slots.

    Get a frame from `frame_of`, which caches frames.
    """

    def __init__(self, weights: Weights) -> None:
        """Check the weights and sum them.

        Args:
            weights: [period] weight of each slot, 0 to 1, not all 0.

        Raises:
            ValueError: a weight is out of range, or all weights are 0.
        """
        if not weights or not all(0 <= weight <= 1 for weight in weights) or not any(weights):
            raise ValueError(
                f"weights must be shares of a slot between 0 and 1, at least one of them > 0, got {weights}"
            )
        self.weights = weights
        self.period = len(weights)
        self.plain = all(weight == 1 for weight in weights)
        # airtime before slots 0, 1, ..., period
        self._before = list(accumulate(weights, initial=0.0))
        self._airtime = self._before[-1]
        self._served = [slot for slot, weight in enumerate(weights) if weight > 0]
        self._tiled = np.empty(0)  # weights, beginning with slot 0, as far as requested
        self.mean = self._airtime / self.period

    def weights_from(self, first_slot: int, count: int) -> FloatArray:
        """Return the weights [count] of slots first_slot, first_slot + 1, ..., read-only."""
        first = first_slot % self.period
        if first + count > len(self._tiled):
            self._tiled = np.tile(np.asarray(self.weights, dtype=float), -(-(first + count) // self.period))
            self._tiled.flags.writeable = False
        return self._tiled[first : first + count]

    def airtime(self, first_slot: int, slots: int) -> float:
        """Sum the weights of `slots` slots, beginning with first_slot."""
        periods, rest = divmod(first_slot % self.period + slots, self.period)
        return periods * self._airtime + self._before[rest] - self._before[first_slot % self.period]

    def turn(self, slot: int) -> int:
        """Return how many slots before this one serve the direction at least in part."""
        periods, rest = divmod(slot, self.period)
        return periods * len(self._served) + bisect_left(self._served, rest)

    def slot_of(self, turn: int) -> int:
        """Return the slot that serves the direction after `turn` earlier serving slots."""
        periods, rest = divmod(turn, len(self._served))
        return periods * self.period + self._served[rest]

    def slots(self, first_slot: int, airtime: float) -> int:
        """Return the smallest number of slots from first_slot on with at least this airtime, up to rounding."""
        phase = first_slot % self.period
        until = airtime + self._before[phase]
        # whole periods, such that the rest is in (0, period]
        periods = math.ceil(until / self._airtime) - 1
        rest = until - periods * self._airtime
        if rest <= 0 < periods:  # the quotient above was rounded up
            periods, rest = periods - 1, self._airtime
        rest = min(rest, self._airtime)  # rounding may exceed a period: use its last serving slot
        return max(0, periods * self.period + bisect_left(self._before, rest, 0, self.period) - phase)

    def whole_slots(self, airtime: float) -> float:
        """Return the airtime, up to the end of their last slot, of transfers that use `airtime` > 0.

        This is the mean over all slots in which a transfer may begin, those that serve the direction.
        """
        least = airtime * (1 - 1e-12)  # a rounding error must not add a slot
        used = [self.airtime(first, self.slots(first, least)) for first in self._served]
        return sum(used) / len(used)

    def autocorrelation(self) -> FloatArray:
        """Return R(j) = mean over n of w_n w_(n+j), [period + 1] for j = 0 .. period."""
        w = np.asarray(self.weights)
        return np.array([np.mean(w * np.roll(w, -j)) for j in range(self.period + 1)])


def frame_of(weights: npt.ArrayLike | None) -> Frame:
    """Return the frame with the given weights; without weights, every slot serves in full.

    Raises:
        ValueError: a weight is out of range, or all weights are 0.
    """
    if weights is None:
        return _ALWAYS
    return _frame(weights if isinstance(weights, tuple) else tuple(np.asarray(weights, dtype=float).tolist()))


@lru_cache(maxsize=64)
def _frame(weights: Weights) -> Frame:
    made = Frame(weights)
    return _ALWAYS if made.plain else made


_ALWAYS = Frame((1.0,))


@dataclass(frozen=True)
class OnTime:
    """On-time of a radio since a slot boundary; in each slot, the radio is on for a share equal to the slot's weight.

    The share of a special slot is spread evenly over the slot.

    Args:
        first_slot: absolute index of the first slot.
    """

    frame: Frame
    slot_s: float
    first_slot: int

    def place(self, time_s: float) -> tuple[int, float]:
        """Return the absolute slot that contains a time, and the time in s since the slot's start.

        A time that differs from a slot boundary only by rounding is treated as the boundary.
        """
        elapsed_s = time_s - self.first_slot * self.slot_s
        whole = int((elapsed_s + rounding_s(time_s)) / self.slot_s)
        return self.first_slot + whole, max(0.0, elapsed_s - whole * self.slot_s)

    def until_s(self, time_s: float) -> float:
        """Return the total on-time in s until a time."""
        slot, rest_s = self.place(time_s)
        whole = self.frame.airtime(self.first_slot, slot - self.first_slot) * self.slot_s
        return whole + rest_s * self.frame.weights[slot % self.frame.period]

    def airtime_s(self, start_s: float, end_s: float) -> float:
        """Return the on-time in s from `start_s`, the first slot's start, until `end_s`."""
        return end_s - start_s if self.frame.plain else self.until_s(end_s)


# Sums of delays are off by a few rounding errors; differences in time of up to this many roundings are ignored.
_ROUNDINGS = 16


def rounding_s(time_s: float) -> float:
    """Return the tolerance in s within which a time counts as a slot boundary."""
    return _ROUNDINGS * math.ulp(time_s)


def roundings_s(times_s: FloatArray) -> FloatArray:
    """Return the tolerance in s within which each of n times counts as a slot boundary."""
    return _ROUNDINGS * np.spacing(np.abs(times_s))
