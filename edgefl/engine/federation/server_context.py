"""The components of a cell's server, which all its sessions share."""

from collections.abc import Generator
from dataclasses import dataclass

import simpy

from edgefl.engine.federation.attendance import Attendance
from edgefl.engine.federation.books import Books
from edgefl.engine.federation.ending import Ending
from edgefl.engine.federation.made import Exchange
from edgefl.engine.federation.open_session import Counts
from edgefl.engine.federation.rounds import Rounds
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.timetable import Timetable, wait_until


@dataclass(frozen=True)
class ServerContext:
    """The components of a cell's server.

    exchange: called after each round of the global model, or None if models stay in the cell.
    """

    simulation: Simulation
    rounds: Rounds
    books: Books
    attendance: Attendance
    ending: Ending
    timetable: Timetable
    counts: Counts
    exchange: Exchange | None

    def turn(self, until_s: float, *, links: bool = True) -> Generator[simpy.Event, None, bool]:
        """Wait until the next round may begin and a device is present; return False if until_s comes first.

        Args:
            links: whether to wait for devices that are connecting.
        """
        env, timetable = self.simulation.env, self.timetable
        while True:
            begin_s = max(env.now, timetable.next_s)
            if (stop_s := min(begin_s, until_s)) > env.now:
                yield from wait_until(env, stop_s)
            if links and env.now < until_s:
                yield from self.attendance.wait_for_links(until_s)
            if env.now >= until_s:
                return False
            if self.attendance.present():
                return True
            yield from self.attendance.wait_for_devices(until_s)
            timetable.resumed(env.now)
