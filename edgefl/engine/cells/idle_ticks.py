"""Detect ticks at which nothing can happen, since no device moves and no state has changed."""

from dataclasses import dataclass

import numpy as np

from edgefl.engine.cells.device_positions import DevicePositions
from edgefl.engine.cells.handover import EventA3, Layer3Filter
from edgefl.engine.cells.serving_cells import ServingCells
from edgefl.engine.derived import same
from edgefl.engine.devices.power import Power


@dataclass(eq=False)
class IdleTicks:
    """Decide whether the next tick would find the same state as the last tick.

    The state is the same while no device moves or changes its cell or power, no handover or time-to-trigger is under
    way, and the measurement filter has settled. In a simulated day of a town, most ticks change nothing.
    """

    device_positions: DevicePositions
    served: ServingCells
    power: Power
    a3: EventA3
    measured: Layer3Filter
    _before: tuple[np.ndarray, ...] = ()  # state at the last tick; empty if it may change by itself

    def looked(self, time_s: float, several: bool) -> None:
        """Record that all devices were checked now, and also measured if there are several cells."""
        self._before, since_s = (), self.served.since_s
        if several and not (self.measured.settled and self.a3.idle):
            return  # the usual case while a device moves
        if self.device_positions.still and ((since_s <= time_s) | np.isinf(since_s)).all():
            positions_m, *others = self._now()
            self._before = positions_m, *(one.copy() for one in others)

    def lasts(self) -> bool:
        """Return whether nothing has changed since the last check."""
        return bool(self._before) and all(map(same, self._before, self._now()))

    def _now(self) -> tuple[np.ndarray, ...]:
        positions_m = self.device_positions.positions_m()
        return positions_m, self.served.cell, self.served.since_s, self.power.running
