"""Who is in the cell: movement, arrivals and departures across the cell edge."""

from collections.abc import Callable, Generator

import numpy as np
import simpy

from edgefl.engine.records import Event, Recorder
from edgefl.mobility import Movement


class Population:
    """The devices of a run and whether each is within the cell."""

    def __init__(
        self,
        env: simpy.Environment,
        movement: Movement,
        *,
        radius_m: float,
        tick_s: float,
        recorder: Recorder,
    ) -> None:
        self.env = env
        self.session: int | None = None
        self._movement = movement
        self._radius_m = radius_m
        self._tick_s = tick_s
        self._recorder = recorder
        self._inside = self._in_cell()
        self._arrival = env.event()
        self.on_departure: Callable[[int], None] = lambda device: None

    @property
    def present(self) -> list[int]:
        """Sorted ids of the devices in the cell."""
        return np.flatnonzero(self._inside).tolist()

    def positions_m(self) -> np.ndarray:
        """[devices, 2] positions now."""
        return self._movement.positions_m(self.env.now)

    def arrival(self) -> simpy.Event:
        """Succeeds when the next device enters the cell; never if devices do not move."""
        return self._arrival

    def watch(self) -> Generator[simpy.Event, None, None]:
        """Look at the cell edge every tick; nothing to do when devices do not move."""
        if not self._movement.moves:
            return
        for tick in range(1, 2**62):
            # an absolute grid, so that ticks do not drift with rounding
            yield self.env.timeout(tick * self._tick_s - self.env.now)
            inside = self._in_cell()
            for device in np.flatnonzero(inside != self._inside).tolist():
                name = "arrival" if inside[device] else "departure"
                self._recorder.write(Event(self.env.now, name, device, self.session))
                if not inside[device]:
                    self.on_departure(device)
            arrived = bool((inside & ~self._inside).any())
            self._inside = inside
            if arrived:
                self._arrival.succeed()
                self._arrival = self.env.event()

    def _in_cell(self) -> np.ndarray:
        return np.linalg.norm(self._movement.positions_m(self.env.now), axis=1) <= self._radius_m
