"""Tails: the power that radios draw after a transfer, until the next transfer or the connection's release."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray

# tolerance in s for a clock that misses its target by a rounding error
SOON_S = 1e-9

Tail = Sequence[tuple[float, float]]  # duration in s and power in W of each step, in order


class Tails:
    """The radios of all devices between transfers, regardless of the devices' other activities.

    A tail is identified by its device and the end of the transfer that started it.

    Args:
        tails: steps of each device's tail.
    """

    def __init__(self, tails: Sequence[Tail]) -> None:
        self.any = any(tails)
        self._tails = tails
        self._since_s: list[float | None] = [None] * len(tails)  # starts of running tails
        self._ended_s: dict[tuple[int, float], float] = {}  # ends of tails not yet removed by `take`
        self._last_s = [-math.inf] * len(tails)  # end of the last transfer of each connection

    def begins(self, device: int, time_s: float) -> None:
        """Start a tail at the end of a transfer."""
        self._last_s[device] = time_s
        if self._tails[device]:
            self._since_s[device] = time_s

    def ends(self, device: int, time_s: float) -> None:
        """End a device's running tail, if any, because a transfer begins or the device stops."""
        since_s = self._since_s[device]
        if since_s is not None:
            self._ended_s[device, since_s] = min(time_s, since_s + self._longest_s(device))
            self._since_s[device] = None

    def disconnects(self, device: int) -> None:
        """End a device's connection before its release, because its link has failed or the device stops."""
        self._last_s[device] = -math.inf

    def since_s(self, device: int, time_s: float) -> float:
        """Return the time since the last transfer of a device's connection; inf without a connection."""
        return time_s - self._last_s[device]

    def began(self, device: int, after_s: float) -> bool:
        """Return whether a device's last tail began after this time, and no transfer or stop has ended it."""
        since_s = self._since_s[device]
        return since_s is not None and since_s > after_s

    def now(self, device: int, time_s: float) -> tuple[float, float | None]:
        """Return the current power of a device's tail in W, and the time of its next change (None without a tail)."""
        end_s = self._since_s[device]
        if end_s is None:
            return 0.0, None
        for lasts_s, power_w in self._tails[device]:
            end_s += lasts_s
            if time_s < end_s - SOON_S:
                return power_w, end_s
        return 0.0, None

    def take(self, device: int, since_s: float, now_s: float) -> float | None:
        """Remove an ended tail and return its duration in s; 0 if there was no tail, None if it is still running.

        Args:
            since_s: end of the transfer that started the tail.
            now_s: current time; inf counts a running tail in full.
        """
        ended_s = self._ended_s.pop((device, since_s), None)
        if ended_s is not None:
            return ended_s - since_s
        if self._since_s[device] != since_s:
            return 0.0
        longest_s = self._longest_s(device)
        if now_s < since_s + longest_s:
            return None
        self._since_s[device] = None
        return longest_s

    def ended_j(self, since_s: Mapping[int, float]) -> float:
        """Return the energy of the ended tails that have not been taken.

        Args:
            since_s: device -> time; the device's earlier tails, and tails of other devices, do not count.
        """
        return math.fsum(
            self.energy_j(device, ended_s - began_s)
            for (device, began_s), ended_s in self._ended_s.items()
            if began_s > since_s.get(device, math.inf)
        )

    def energy_j(self, device: int, lasts_s: float) -> float:
        """Return the energy in J of a device's tail of this duration."""
        energy_j = 0.0
        for most_s, power_w in self._tails[device]:
            energy_j += power_w * min(max(0.0, lasts_s), most_s)
            lasts_s -= most_s
        return energy_j

    def energies_j(self, devices: np.ndarray, lasts_s: npt.ArrayLike) -> FloatArray:
        """Return [n] the energies of tails of devices [n] with durations [n], or with one duration for all."""
        energy_j, left_s = np.zeros(len(devices)), np.asarray(lasts_s, dtype=float)
        for most_s, power_w in self._steps[:, :, devices]:
            energy_j += power_w * np.minimum(np.maximum(0.0, left_s), most_s)
            left_s = left_s - most_s
        return energy_j

    @cached_property
    def _steps(self) -> FloatArray:
        """Duration in s and power in W of all tail steps, [steps, 2, devices]; 0 if a device has fewer steps."""
        steps = np.zeros((max(map(len, self._tails), default=0), 2, len(self._tails)))
        for device, tail in enumerate(self._tails):
            for number, step in enumerate(tail):
                steps[number, :, device] = step
        return steps

    def rest_j(self, device: int, now_s: float) -> float:
        """Return the energy that a running tail will still use if nothing ends it."""
        since_s = self._since_s[device]
        if since_s is None:
            return 0.0
        return self.energy_j(device, self._longest_s(device)) - self.energy_j(device, now_s - since_s)

    def cut(self, device: int, missing_j: float) -> None:
        """End a running tail so early that it uses `missing_j` less energy."""
        since_s, lasts_s = self._since_s[device], self._longest_s(device)
        assert since_s is not None
        for most_s, power_w in reversed(self._tails[device]):
            if missing_j < most_s * power_w:
                lasts_s -= missing_j / power_w
                break
            lasts_s, missing_j = lasts_s - most_s, missing_j - most_s * power_w
        self.ends(device, since_s + lasts_s)

    def _longest_s(self, device: int) -> float:
        return sum(lasts_s for lasts_s, _ in self._tails[device])
