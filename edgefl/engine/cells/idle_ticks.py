"""Detection of ticks at which nothing can happen, since no device moves and no state has changed."""

from dataclasses import dataclass

import numpy as np

from edgefl.engine.cells.device_positions import DevicePositions
from edgefl.engine.cells.handover import EventA3, Layer3Filter
from edgefl.engine.cells.serving_cells import ServingCells
from edgefl.engine.devices.power import Power


@dataclass(eq=False)
class IdleTicks:
    """Decide whether the next tick would find the same state as the last.

    That holds while no device moves, each keeps its cell and power, no handover is under way or timed, and the
    measurement filter has settled. Most ticks of a town's day are like this.
    """

    device_positions: DevicePositions
    served: ServingCells
    power: Power
    a3: EventA3
    measured: Layer3Filter
    _still: bool = False
    _until_s: float = 0.0
    _before: tuple[np.ndarray, ...] = ()

    def looked(self, time_s: float, several: bool) -> None:
        """Note that all devices were checked now, and also measured if there are several cells."""
        self._still, since_s = False, self.served.since_s
        if several and not (self.measured.settled and self.a3.idle):
            return  # the usual case while a device moves
        self._until_s = self.device_positions.still_until_s()
        self._still = self._until_s > time_s and bool(((since_s <= time_s) | np.isinf(since_s)).all())
        if self._still:
            self._before = self.served.cell.copy(), since_s.copy(), self.power.running.copy()

    def lasts(self, time_s: float) -> bool:
        """Return whether nothing has changed since the last check."""
        if not self._still or time_s > self._until_s:
            return False
        now = self.served.cell, self.served.since_s, self.power.running
        return all(np.array_equal(one, other) for one, other in zip(now, self._before, strict=True))
