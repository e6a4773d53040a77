"""Write arrivals, departures, handovers, link failures and re-establishments as events."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy

from edgefl.engine.cells.serving_cells import NOWHERE
from edgefl.engine.records import Event, EventName, Recorder
from edgefl.engine.settings import HandoverSettings


@dataclass(frozen=True)
class NetworkEvents:
    """Write rows of the table of events, with the current time."""

    env: simpy.Environment
    recorder: Recorder
    handover: HandoverSettings

    def write(self, name: EventName, device: int, cell: int, **further: Any) -> None:
        """Write an event of a device; `cell` may be NOWHERE, and `further` sets additional columns of Event."""
        in_cell = None if cell == NOWHERE else cell
        self.recorder.write(Event(self.env.now, name, device, None, in_cell, **further))

    def handovers(
        self,
        devices: np.ndarray,
        sources: np.ndarray,
        targets: np.ndarray,
        latency_s: float,
        stays_s: np.ndarray,
        since_change_s: np.ndarray,
        returns: np.ndarray,
    ) -> None:
        """Write handovers [n] between cells; `ServingCells.hand_over` returns the last three arguments."""
        ping_pong = returns & (since_change_s < self.handover.min_time_of_stay_s)
        # most events are handovers, and creating row objects would take longer than deciding them
        self.recorder.write_columns(
            Event,
            time_s=self.env.now,
            event=EventName.HANDOVER.value,
            device=devices,
            session=None,
            cell=targets,
            from_cell=sources,
            stay_s=stays_s,
            interruption_s=latency_s,
            detail=np.where(ping_pong, "ping_pong", ""),
        )
