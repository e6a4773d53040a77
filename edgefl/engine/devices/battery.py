"""A battery that a device's activities drain and a charger refills."""

import math
from itertools import accumulate
from typing import NamedTuple

from edgefl.channel.tdd import OnTime

# number of TDD periods followed slot by slot; later periods all act alike until the battery is full or empty
_PERIODS_FOLLOWED = 2


class Charge(NamedTuple):
    """Energy that recharging has put into a battery so far, and its current level."""

    recharged_j: float
    left_j: float


class Battery:
    """The battery of one device with constant recharge, as a pure function of the times at which its drain changes.

    Power drawn in the slots of a TDD frame drains the battery in these slots. The level is followed slot by slot for
    two periods, and after that in a single step for all whole periods.

    Args:
        capacity_j: level of a full battery; the battery starts full.
        recharge_w: power offered to the battery at all times; a full battery takes in only what is drawn.
        return_share: share of the capacity at which a device returns after its battery was empty.
        place: the scenario's key that sets the capacity, for errors.
    """

    def __init__(
        self,
        capacity_j: float,
        recharge_w: float,
        return_share: float,
        place: tuple[str, ...] = ("devices", "battery_j"),
    ) -> None:
        self.place = place
        self._taken_in_j = 0.0
        self._capacity_j = capacity_j
        self._recharge_w = recharge_w
        self._return_j = return_share * capacity_j
        self._level_j = capacity_j
        self._drain_w = 0.0
        self._beside_w = 0.0
        self._on: OnTime | None = None
        self._since_s = 0.0

    def charge(self, time_s: float) -> Charge:
        """Return the battery's charge at a time no earlier than the last change of drain."""
        level_j, lost_j = self._at(time_s)
        offered_j = self._recharge_w * (time_s - self._since_s)
        # a full battery rejects at most the energy offered to it, but the difference is rounded
        return Charge(self._taken_in_j + offered_j - min(lost_j, offered_j), max(0.0, level_j))

    def level_j(self, time_s: float) -> float:
        """Return the battery's level in J at a time no earlier than the last change of drain."""
        return self.charge(time_s).left_j

    def drain(
        self, time_s: float, power_w: float, on: OnTime | None = None, *, beside_w: float = 0.0
    ) -> None:
        """Set the power that the device draws from now on.

        Args:
            on: times at which the device draws this power, or None if it always does.
            beside_w: additional power that the device always draws.
        """
        self._taken_in_j, level_j = self.charge(time_s)
        self._level_j = max(0.0, level_j)
        self._drain_w, self._beside_w, self._since_s = power_w, beside_w, time_s
        self._on = None if on is None or on.frame.plain or not power_w else on

    def spend(self, time_s: float, energy_j: float) -> float:
        """Remove energy from the battery at once; return how much of it was available, in J."""
        self.drain(time_s, self._drain_w, self._on, beside_w=self._beside_w)
        spent_j = min(energy_j, self._level_j)
        self._level_j -= spent_j
        return spent_j

    def empty_s(self) -> float:
        """Return the time at which the battery will be empty if nothing changes, or inf."""
        if self._on is not None:
            return self._follow(self._on, math.inf)[2]
        net_w = self._drain_w - self._rest_w
        return self._since_s + self._level_j / net_w if net_w > 0 else math.inf

    def back_s(self) -> float:
        """Return the time at which an empty device will have enough charge to return, or inf."""
        net_w = self._rest_w - self._drain_w
        missing_j = max(0.0, self._return_j - self._level_j)
        return self._since_s + missing_j / net_w if net_w > 0 else math.inf

    @property
    def _rest_w(self) -> float:
        """Recharge power minus the power that is always drawn, in W."""
        return self._recharge_w - self._beside_w

    def _at(self, time_s: float) -> tuple[float, float]:
        """Return the level in J at a time, and the energy that the full battery could not take in before."""
        if self._on is not None:
            return self._follow(self._on, time_s)[:2]
        net_w = self._rest_w - self._drain_w
        level_j = self._level_j + net_w * (time_s - self._since_s)
        return min(self._capacity_j, level_j), max(0.0, level_j - self._capacity_j)

    def _follow(self, on: OnTime, until_s: float) -> tuple[float, float, float]:
        """Follow the battery's level from slot to slot, until a time or until the battery is empty.

        From one period to the next, a level x becomes min(x + gain, brim): a period adds `gain`, or ends at `brim` if
        the battery was full in it. After the first period, the level either rises in every period or falls by
        `-gain` in every period.

        Returns:
            Level, energy that the full battery did not take in, and the time at which the level reaches 0 (inf if
            later).
        """
        level_j, lost_j = self._level_j, 0.0
        slot, into_s = on.place(self._since_s)
        last, rest_s = (math.inf, 0.0) if until_s == math.inf else on.place(until_s)
        net_w = [self._rest_w - self._drain_w * weight for weight in on.frame.weights]
        period = len(net_w)
        follow_to = slot + _PERIODS_FOLLOWED * period + 1
        while True:
            if slot == follow_to:
                first = slot % period
                sums_j = list(accumulate(net * on.slot_s for net in net_w[first:] + net_w[:first]))
                gain_j, highest_j, lowest_j = sums_j[-1], max(0.0, *sums_j), min(sums_j)
                # skip all but the last period before the battery is empty, so that it becomes empty slot by slot
                safe = math.inf if gain_j >= 0 else (level_j + lowest_j) / -gain_j - 1
                if safe == last == math.inf:
                    return level_j, lost_j, math.inf
                skipped = int(max(0.0, min(safe, math.inf if last == math.inf else (last - slot) // period)))
                brim_j = self._capacity_j - highest_j + gain_j
                after_j = min(level_j + skipped * gain_j, brim_j) if skipped else level_j
                lost_j += level_j + skipped * gain_j - after_j
                level_j, slot = after_j, slot + skipped * period
            net = net_w[slot % period]
            change_j = net * ((rest_s if slot == last else on.slot_s) - into_s)
            if net < 0 and level_j + change_j <= 0:
                return 0.0, lost_j, slot * on.slot_s + into_s + level_j / -net
            lost_j += max(0.0, level_j + change_j - self._capacity_j)
            level_j = min(self._capacity_j, level_j + change_j)
            if slot >= last:
                return level_j, lost_j, math.inf
            slot, into_s = slot + 1, 0.0
