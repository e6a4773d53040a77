"""The clock of a run: SimPy's, in which an error ends the run at once."""

import simpy
from simpy.core import SimTime
from simpy.events import NORMAL, EventPriority

_schedule = simpy.Environment.schedule


class Clock(simpy.Environment):
    """Simulated time in which a process that fails ends the run there and then, with its own error.

    SimPy puts the error off until all else of its moment has happened: others would read a failed process as one that
    has returned, and other cells would ask their learners what a run that goes on asks in another order.
    """

    def schedule(self, event: simpy.Event, priority: EventPriority = NORMAL, delay: SimTime = 0) -> None:
        """Schedule an event; raise the error of a process that has failed."""
        if not event._ok and isinstance(event, simpy.Process):
            raise event._value
        _schedule(self, event, priority, delay)
