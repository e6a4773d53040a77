"""The clock of a run: SimPy's environment, in which an error ends everything at once."""

from heapq import heappush

import simpy
from simpy.core import NORMAL, EventPriority


class Clock(simpy.Environment):
    """Simulated time that stops where a process fails, before anything else of that moment goes on.

    SimPy tells of a failed process by an event behind all others of its moment: what other cells do and write until
    then is nothing that a run which goes on from there would do next. It also raises a copy made from the error's
    arguments, which not every class can be made from; here it is the error itself.
    """

    def schedule(self, event: simpy.Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event; the end of a process that has failed is raised."""
        if event.__class__ is simpy.Process and not event._ok:
            raise event._value
        heappush(self._queue, (self._now + delay, priority, next(self._eid), event))
