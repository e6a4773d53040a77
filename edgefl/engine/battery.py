"""A battery: drained by what the device does, filled again while it rests."""

import math


class Battery:
    """Energy of one device between a few power levels; a pure function of the times it is told.

    Args:
        capacity_j: when full; the battery begins full.
        recharge_w: power into the battery, all the time.
        return_share: an empty device is back once this share of the capacity is there.
    """

    def __init__(self, capacity_j: float, recharge_w: float, return_share: float) -> None:
        self._capacity_j = capacity_j
        self._recharge_w = recharge_w
        self._return_j = return_share * capacity_j
        self._level_j = capacity_j
        self._drain_w = 0.0
        self._since_s = 0.0

    def level_j(self, time_s: float) -> float:
        """Return the energy left at a time, which is not before the last change of drain."""
        net_w = self._recharge_w - self._drain_w
        return min(self._capacity_j, self._level_j + net_w * (time_s - self._since_s))

    def drain(self, time_s: float, power_w: float) -> None:
        """Set the power that the device draws from now on."""
        self._level_j = max(0.0, self.level_j(time_s))
        self._drain_w, self._since_s = power_w, time_s

    def empty_s(self) -> float:
        """Return when the battery will be empty if nothing changes; inf: never."""
        net_w = self._drain_w - self._recharge_w
        return self._since_s + self._level_j / net_w if net_w > 0 else math.inf

    def back_s(self) -> float:
        """Return when an empty device will have enough to come back; inf: never."""
        net_w = self._recharge_w - self._drain_w
        missing_j = max(0.0, self._return_j - self._level_j)
        return self._since_s + missing_j / net_w if net_w > 0 else math.inf
