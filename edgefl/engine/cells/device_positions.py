"""Current positions of the devices, and which of them are in the simulated area."""

import math
from collections.abc import Callable

import numpy as np
import simpy

from edgefl.channel.geometry import within
from edgefl.channel.tdd import rounding_s
from edgefl.mobility import Movement, positions_of, still_until_s


class DevicePositions:
    """The devices' positions at the current simulated time.

    Args:
        radius_m: distance from the origin beyond which a device is absent, or None without a limit.
        reached: returns [n] whether any site is in range of positions [n, 2], or None if the sites' range is
            unlimited.
    """

    def __init__(
        self,
        env: simpy.Environment,
        movement: Movement,
        radius_m: float | None,
        reached: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        self.moves = movement.moves
        self._env = env
        self._movement = movement
        self._radius_m = radius_m
        self._reached = reached
        self._places_s = self._until_s = -math.inf  # devices stay at _places_m between these times
        self._places_m = np.empty((0, 2))

    def positions_m(self) -> np.ndarray:
        """Return [devices, 2] the current positions, read-only; nan for a device outside the simulated area.

        As long as no device moves, the same array object is returned, so that callers need not compare positions.
        """
        now_s = self._env.now
        # the clock adds up delays, so one time may be rounded in several ways, but must have one set of positions
        since_s = now_s - self._places_s
        if since_s < 0.0 or not (now_s < self._until_s or since_s <= rounding_s(now_s)):
            self._places_m = positions_of(
                self._movement, now_s, len(self._places_m) or None
            ).copy()  # the model may reuse this array
            self._places_m.flags.writeable = False
            self._places_s, self._until_s = now_s, still_until_s(self._movement, now_s)
        return self._places_m

    @property
    def still(self) -> bool:
        """Whether all devices stand still for some time from now on."""
        self.positions_m()
        return self._env.now < self._until_s

    def here(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [n] whether positions [n, 2] are in the simulated area, which consists of all cells."""
        if self._radius_m is None:
            return np.isfinite(positions_m[:, 0])
        # a comparison with nan is false, so an absent device is not in the area
        here = within(positions_m, self._radius_m)
        if self._reached is not None:
            here[here] = self._reached(positions_m[here])
        return here
