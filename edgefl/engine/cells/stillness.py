"""Ticks at which nothing can happen, because nobody has moved and all else is as it was."""

import numpy as np

from edgefl.engine.cells.handover import EventA3, Layer3Filter
from edgefl.engine.cells.serving_cells import ServingCells
from edgefl.engine.cells.whereabouts import Whereabouts
from edgefl.engine.devices.power import Power


class Stillness:
    """Tells whether another look at the devices would find what the last one has found.

    So it is while everybody stays where they are, each has its cell and its power as at that look, no handover is
    under way, no timer of one runs, and the filter of measurements has come to rest. Most of a town's day is so.
    """

    def __init__(
        self,
        whereabouts: Whereabouts,
        served: ServingCells,
        power: Power,
        a3: EventA3,
        measured: Layer3Filter,
    ) -> None:
        self._whereabouts = whereabouts
        self._served = served
        self._power = power
        self._a3 = a3
        self._filter = measured
        self._still = False
        self._until_s = 0.0
        self._before: tuple[np.ndarray, ...] = ()

    def looked(self, time_s: float, several: bool) -> None:
        """Note that all devices have been looked at now; several: and measured, as there are several cells."""
        self._still, since_s = False, self._served.since_s
        if several and not (self._filter.settled and self._a3.idle):
            return  # nearly always while somebody is on the way
        self._until_s = self._whereabouts.still_until_s()
        self._still = self._until_s > time_s and bool(((since_s <= time_s) | np.isinf(since_s)).all())
        if self._still:
            self._before = self._served.cell.copy(), since_s.copy(), self._power.running.copy()

    def lasts(self, time_s: float) -> bool:
        """Tell whether nothing has changed since the last look."""
        if not self._still or time_s > self._until_s:
            return False
        now = self._served.cell, self._served.since_s, self._power.running
        return all(np.array_equal(one, other) for one, other in zip(now, self._before, strict=True))
