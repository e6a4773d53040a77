"""Who is in a server's cell, and waiting until somebody is."""

import math
from collections.abc import Callable, Collection, Generator

import simpy

from edgefl.engine.federation.books import Books
from edgefl.engine.federation.seat import Seat
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.records import OUT_OF_COVERAGE, EventName
from edgefl.errors import EdgeflError


class Deserted(Exception):
    """A cell has had no device since a time, and waiting for one is given up."""

    def __init__(self, since_s: float) -> None:
        super().__init__(since_s)
        self.since_s = since_s


class Attendance:
    """The devices that a cell's server may send to work.

    Args:
        members: session number -> the only devices that may take part; None: all that are present.

    Attributes:
        session: the number of the one under way.
    """

    def __init__(
        self,
        simulation: Simulation,
        seat: Seat,
        members: Callable[[int], Collection[int] | None],
        books: Books,
    ) -> None:
        self._simulation, self._seat, self._members, self._books = simulation, seat, members, books
        self._cell = seat.cell
        self.session = 0

    def present(self) -> list[int]:
        """Return the devices that may take part now, sorted."""
        return self._allowed(self._simulation.network.present(self._cell))

    def coverage_columns(self) -> dict[str, int]:
        """Return the further column of rounds.csv where there is a coverage: who lacks it now and would be there."""
        without = self._simulation.network.out_of_coverage(self._cell)
        return {} if without is None else {OUT_OF_COVERAGE: len(self._allowed(without))}

    def wait_for_devices(self, until_s: float) -> Generator[simpy.Event, None, None]:
        """Wait until at least one device is in the cell, or it is until_s; the federation stands still meanwhile.

        Raises:
            Deserted: nobody came in time, and another federation is done.
            EdgeflError: nobody came in time, and the run has neither a result nor a duration.
        """
        seat, federations, env = self._seat, self._simulation.federations, self._simulation.env
        began_s = env.now
        self._books.event(EventName.WAITING_FOR_DEVICES)
        given_up = federations.waits(seat.key)
        while not self.present() and env.now < until_s:
            over = [env.timeout(until_s - env.now)] if until_s < math.inf else []
            yield env.any_of([self._simulation.network.arrival(self._cell), given_up, *over])
            if given_up.processed and not self.present():
                if federations.done:
                    raise Deserted(began_s)
                if self._simulation.duration_s < math.inf:
                    given_up = federations.waits(seat.key)  # the run has an end: until then a device may come
                    continue
                raise EdgeflError(
                    f"{seat} has had no device{self._why()} for {env.now - began_s:g} s since simulated time"
                    f" {began_s:.3f} s, and no federation can go on; raise devices.count or cell.radius_m, or"
                    " allow a longer rounds.max_wait_s, or give the run a duration_s",
                    ("rounds", "max_wait_s"),
                )
        if self.present():
            federations.works(seat.key)

    def _allowed(self, ids: list[int]) -> list[int]:
        allowed = self._members(self.session)
        return ids if allowed is None else [id_ for id_ in ids if id_ in allowed]

    def _why(self) -> str:
        return " with a link" if self._simulation.network.out_of_coverage(self._cell) else ""
