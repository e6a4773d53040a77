"""Ticks at which nothing can happen, because nobody has moved and all else is as it was."""

from dataclasses import dataclass

import numpy as np

from edgefl.engine.cells.handover import EventA3, Layer3Filter
from edgefl.engine.cells.serving_cells import ServingCells
from edgefl.engine.cells.whereabouts import Whereabouts
from edgefl.engine.devices.power import Power


@dataclass(eq=False)
class Stillness:
    """Tells whether another look at the devices would find what the last one has found.

    So it is while everybody stays where they are, each has its cell and its power as at that look, no handover is
    under way, no timer of one runs, and the filter of measurements has come to rest. Most of a town's day is so.
    """

    whereabouts: Whereabouts
    served: ServingCells
    power: Power
    a3: EventA3
    measured: Layer3Filter
    _still: bool = False
    _until_s: float = 0.0
    _before: tuple[np.ndarray, ...] = ()

    def looked(self, time_s: float, several: bool) -> None:
        """Note that all devices have been looked at now; several: and measured, as there are several cells."""
        self._still, since_s = False, self.served.since_s
        if several and not (self.measured.settled and self.a3.idle):
            return  # nearly always while somebody is on the way
        self._until_s = self.whereabouts.still_until_s()
        self._still = self._until_s > time_s and bool(((since_s <= time_s) | np.isinf(since_s)).all())
        if self._still:
            self._before = self.served.cell.copy(), since_s.copy(), self.power.running.copy()

    def lasts(self, time_s: float) -> bool:
        """Tell whether nothing has changed since the last look."""
        if not self._still or time_s > self._until_s:
            return False
        now = self.served.cell, self.served.since_s, self.power.running
        return all(np.array_equal(one, other) for one, other in zip(now, self._before, strict=True))
