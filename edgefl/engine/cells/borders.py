"""How often devices cross the border between two cells, by geometry alone. Pure NumPy, no clock."""

import math

import numpy as np

from edgefl.channel.layout import Wraparound
from edgefl.engine.cells.serving_cells import NOWHERE

LOOK_S = 1.0  # a car at 50 km/h is 14 m farther on: of two crossings within, near a corner, none is seen


class Borders:
    """The cell in which each device lies, that of the nearest point, and how often one lies in another than before.

    Handovers for each border crossed say how much of them is movement, and how much the radio going to and fro:
    networks have 1.5 to 2.4 (docs/trust.md). Nothing is drawn, and nothing else depends on it.

    Args:
        cells_m: [cells, 2] a point of each, such as its site.
        wraparound: of the layout that they are of; None: the world ends.
        every_s: between two looks at the devices.

    Attributes:
        crossed: borders crossed, by all devices together.
    """

    def __init__(
        self, cells_m: np.ndarray, wraparound: Wraparound | None = None, every_s: float = LOOK_S
    ) -> None:
        self._wraparound = wraparound
        self._cells = self._framed(cells_m)
        self._every_s = every_s
        self._next_s = -math.inf
        self._places_m = np.empty((0, 2))
        self._cell = np.empty(0, dtype=int)
        self.crossed = 0

    def look(self, time_s: float, positions_m: np.ndarray, served: np.ndarray) -> None:
        """Count the devices that have crossed a border since the last look, if that is long enough ago.

        Args:
            positions_m: [devices, 2], nan: absent.
            served: [devices] whether it is one that could hand over; another one begins anew.
        """
        if time_s < self._next_s:
            return
        self._next_s = time_s + self._every_s * (1 - 1e-9)
        if not len(self._cell):
            self._cell = np.full(len(positions_m), NOWHERE)
            self._places_m = np.full(positions_m.shape, np.nan)
        before, here = self._cell, served & np.isfinite(positions_m[:, 0])
        moved = (positions_m != self._places_m).any(axis=1)
        asked = np.flatnonzero(here & (moved | (before == NOWHERE)))
        self._cell = np.where(here, before, NOWHERE)
        self._cell[asked] = self._nearest(positions_m[asked])
        self._places_m = positions_m
        both = (before != NOWHERE) & (self._cell != NOWHERE)
        self.crossed += int(np.count_nonzero(both & (before != self._cell)))

    def unmoved(self, time_s: float) -> None:
        """Note a look at devices that are where they were at the last one."""
        if time_s >= self._next_s:
            self._next_s = time_s + self._every_s * (1 - 1e-9)

    def _nearest(self, places_m: np.ndarray) -> np.ndarray:
        axes = self._framed(places_m)[:, None] - self._cells[:, :, None]
        if self._wraparound:
            return self._wraparound.square_distance(axes).argmin(axis=0)
        return np.square(axes).sum(axis=0).argmin(axis=0)

    def _framed(self, points_m: np.ndarray) -> np.ndarray:
        """[2, n] points by axis, in the frame of the wrap-around if there is one."""
        return self._wraparound.aligned_axes(points_m.T) if self._wraparound else points_m.T
