"""A run's clock: a SimPy environment in which an error ends the run at once."""

import simpy
from simpy.core import SimTime
from simpy.events import NORMAL, EventPriority

_schedule = simpy.Environment.schedule


class Clock(simpy.Environment):
    """A SimPy environment in which a failing process ends the run immediately, with the process's own error.

    SimPy delays the error until all other events of the same time have happened. Until then, other processes would
    treat the failed process as one that has returned, and other cells would call their learners in a different order
    than in a run that continues.
    """

    def schedule(self, event: simpy.Event, priority: EventPriority = NORMAL, delay: SimTime = 0) -> None:
        """Schedule an event; raise the error of a failed process."""
        if not event._ok and isinstance(event, simpy.Process):
            raise event._value
        _schedule(self, event, priority, delay)
