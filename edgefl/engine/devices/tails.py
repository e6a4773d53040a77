"""Tails: what radios draw after a transfer, until the next one, or until their connection is released."""

from collections.abc import Sequence

import numpy as np

from channel.units import FloatArray

# s; a clock that waits for a time reaches it up to a rounding
SOON_S = 1e-9

Tail = Sequence[tuple[float, float]]  # how long, s, and its power, W; one after the other


class Tails:
    """The radios of all devices between transfers, beside whatever else a device does meanwhile.

    Args:
        tails: of each device.
    """

    def __init__(self, tails: Sequence[Tail]) -> None:
        self.any = any(tails)
        self._tails = tails
        self._since_s = np.full(len(tails), np.nan)  # nan: none
        self._booked_j = np.zeros(len(tails))

    def begins(self, device: int, time_s: float) -> None:
        """A transfer is over."""
        if self._tails[device]:
            self._since_s[device] = time_s

    def ends(self, device: int, time_s: float) -> None:
        """A transfer begins, or the device no longer runs."""
        if self.any:
            self._booked_j[device] += self._open_j(device, time_s)
            self._since_s[device] = np.nan

    def runs(self, device: int) -> bool:
        """Whether a device has had a transfer, and has none now."""
        return not np.isnan(self._since_s[device])

    def now(self, device: int, time_s: float) -> tuple[float, float | None]:
        """Return the power now, and when it changes next if nothing happens; None: it does not."""
        if not self.any or np.isnan(self._since_s[device]):
            return 0.0, None
        end_s = float(self._since_s[device])
        for lasts_s, power_w in self._tails[device]:
            end_s += lasts_s
            if time_s < end_s - SOON_S:
                return power_w, end_s
        return 0.0, None

    def energy_j(self, time_s: float) -> FloatArray:
        """Return [devices] the energy of all tails until a time."""
        energy_j = self._booked_j.copy()
        for device in np.flatnonzero(~np.isnan(self._since_s)).tolist():
            energy_j[device] += self._open_j(device, time_s)
        return energy_j

    def _open_j(self, device: int, time_s: float) -> float:
        begin_s, energy_j = float(self._since_s[device]), 0.0
        if np.isnan(begin_s):
            return 0.0
        for lasts_s, power_w in self._tails[device]:
            energy_j += power_w * min(max(0.0, time_s - begin_s), lasts_s)
            begin_s += lasts_s
        return energy_j
