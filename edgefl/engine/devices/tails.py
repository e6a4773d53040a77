"""Tails: what radios draw after a transfer, until the next one, or until their connection is released."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray

# s; a clock that waits for a time reaches it up to a rounding
SOON_S = 1e-9

Tail = Sequence[tuple[float, float]]  # how long, s, and its power, W; one after the other


class Tails:
    """The radios of all devices between transfers, beside whatever else a device does meanwhile.

    A tail is named by its device and by when the transfer ended that began it.

    Args:
        tails: of each device.
    """

    def __init__(self, tails: Sequence[Tail]) -> None:
        self.any = any(tails)
        self._tails = tails
        self._since_s: list[float | None] = [None] * len(tails)  # of those that run
        self._ended_s: dict[tuple[int, float], float] = {}  # of those that nobody has taken yet

    def begins(self, device: int, time_s: float) -> None:
        """Begin a tail: a transfer is over."""
        if self._tails[device]:
            self._since_s[device] = time_s

    def ends(self, device: int, time_s: float) -> None:
        """End a device's tail, if one runs: a transfer begins, or the device no longer runs."""
        since_s = self._since_s[device]
        if since_s is not None:
            self._ended_s[device, since_s] = min(time_s, since_s + self._longest_s(device))
            self._since_s[device] = None

    def now(self, device: int, time_s: float) -> tuple[float, float | None]:
        """Return the power now, and when it changes next if nothing happens; None: it does not."""
        end_s = self._since_s[device]
        if end_s is None:
            return 0.0, None
        for lasts_s, power_w in self._tails[device]:
            end_s += lasts_s
            if time_s < end_s - SOON_S:
                return power_w, end_s
        return 0.0, None

    def take(self, device: int, since_s: float, now_s: float) -> float | None:
        """Return how long a tail has lasted that is over, once, s; 0: there was none; None: it goes on.

        Args:
            since_s: when the transfer ended that began it.
            now_s: infinity: it lasts as long as it can.
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

    def energy_j(self, device: int, lasts_s: float) -> float:
        """Return the energy of a device's tail that has lasted for a time."""
        energy_j = 0.0
        for most_s, power_w in self._tails[device]:
            energy_j += power_w * min(max(0.0, lasts_s), most_s)
            lasts_s -= most_s
        return energy_j

    def energies_j(self, devices: np.ndarray, lasts_s: npt.ArrayLike) -> FloatArray:
        """Return [n] the energies of the tails of devices [n] that have lasted for times [n], or one for all."""
        energy_j, left_s = np.zeros(len(devices)), np.asarray(lasts_s, dtype=float)
        for most_s, power_w in self._steps[:, :, devices]:
            energy_j += power_w * np.minimum(np.maximum(0.0, left_s), most_s)
            left_s = left_s - most_s
        return energy_j

    @cached_property
    def _steps(self) -> FloatArray:
        """[steps, 2, devices] how long each lasts and its power; 0 where a device has fewer steps."""
        steps = np.zeros((max(map(len, self._tails), default=0), 2, len(self._tails)))
        for device, tail in enumerate(self._tails):
            for number, step in enumerate(tail):
                steps[number, :, device] = step
        return steps

    def rest_j(self, device: int, now_s: float) -> float:
        """Return the energy of a tail that runs, from now until it is over if nothing happens."""
        since_s = self._since_s[device]
        if since_s is None:
            return 0.0
        return self.energy_j(device, self._longest_s(device)) - self.energy_j(device, now_s - since_s)

    def cut(self, device: int, missing_j: float) -> None:
        """End a tail that runs before it is over, so that it takes less by an energy."""
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
