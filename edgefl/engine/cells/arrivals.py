"""Wait for the next device that becomes present in a cell."""

import math
from collections import deque

import simpy


class Arrivals:
    """For each cell, an event that succeeds when the next device becomes present in the cell."""

    def __init__(self, env: simpy.Environment, cells: int) -> None:
        self._env = env
        self._events = [env.event() for _ in range(cells)]
        # times at which devices in handover will be connected, for processes that start to wait before then
        self._coming_s = [deque[float]() for _ in range(cells)]

    def next(self, cell: int) -> simpy.Event:
        """Return the event of the next arrival in a cell."""
        coming = self._coming_s[cell]
        while coming:
            self._announce_at(cell, coming.popleft())
        return self._events[cell]

    def awaited(self) -> list[int]:
        """Return the cells in which a process waits for a device."""
        return [cell for cell, event in enumerate(self._events) if event.callbacks]

    def announce(self, cell: int) -> None:
        """Wake the processes that wait for a device in this cell."""
        if self._events[cell].callbacks:
            waiting, self._events[cell] = self._events[cell], self._env.event()
            waiting.succeed()

    def announce_in(self, cell: int, delay_s: float) -> None:
        """After a delay, wake the processes that are then waiting for a device in this cell."""
        then_s = self._env.now + delay_s
        if not delay_s:
            self.announce(cell)
        elif self._events[cell].callbacks:
            self._announce_at(cell, then_s)
        else:
            # usually no process is waiting, and a timer for every handover would be too slow
            coming = self._coming_s[cell]
            while coming and coming[0] <= self._env.now:
                coming.popleft()
            coming.append(then_s)

    def _announce_at(self, cell: int, time_s: float) -> None:
        now_s = self._env.now
        if time_s <= now_s:
            return
        delay_s = time_s - now_s
        while now_s + delay_s < time_s:  # rounding must not wake a process before the device is connected
            delay_s = math.nextafter(delay_s, math.inf)
        self._env.timeout(delay_s).callbacks.append(lambda _: self.announce(cell))
