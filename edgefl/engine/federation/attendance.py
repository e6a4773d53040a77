"""Find the devices that are present in a server's cell, and wait for a device if there is none."""

import math
from collections.abc import Callable, Collection, Generator

import simpy

from edgefl.engine.federation.made import Columns, Made
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.timetable import wait_until
from edgefl.engine.records import CONNECTING, OUT_OF_COVERAGE, Event, EventName


class Deserted(Exception):
    """Raised when a server gives up waiting for a device; the server's cell has been empty since `since_s`."""

    def __init__(self, since_s: float) -> None:
        super().__init__(since_s)
        self.since_s = since_s


class Attendance:
    """The devices that a cell's server may dispatch.

    Args:
        label: name that identifies the server in the run.
        members: returns the devices that may take part in a session, or None if all present devices may.

    Attributes:
        session: number of the current session.
    """

    def __init__(
        self,
        simulation: Simulation,
        cell: int,
        label: int | str,
        members: Callable[[int], Collection[int] | None] = lambda session: None,
    ) -> None:
        self._simulation, self._cell, self._members = simulation, cell, members
        self.label = label
        self._waited_for = frozenset[int]()  # devices waited for since the last row
        self._without_link = Columns()  # counts for the current round
        self.session = 0

    def present(self) -> list[int]:
        """Return the devices that may take part now, sorted."""
        return self._allowed(self._simulation.network.present(self._cell))

    def without_link(self, made: Made) -> Columns:
        """Return the latest counts of `count_links` as columns of a round."""
        return self._without_link

    def count_links(self) -> None:
        """Count the devices that are absent at the start of a round only because they have no link.

        Such a device is out of coverage if the scenario checks coverage, or connecting if links can fail. Devices for
        which the round has waited count as connecting.
        """
        network = self._simulation.network
        without, columns = network.out_of_coverage(self._cell), dict[str, int]()
        if without is not None:
            columns[OUT_OF_COVERAGE] = len(self._allowed(without))
        if self._simulation.radio.may_fail:
            now = self._allowed(list(network.connecting(self._cell)))
            columns[CONNECTING] = len(self._waited_for.union(now))
            self._waited_for = frozenset()
        self._without_link = Columns(columns)

    def wait_for_links(self, until_s: float) -> Generator[simpy.Event, None, None]:
        """Wait for the devices that are connecting now, at most for one interruption's length and not beyond until_s.

        A device with a failed link is present again handover_latency_s after its part of the round. Without this
        wait, the device would miss the next round, which begins at once. If links never fail, no round waits (J).
        """
        if not self._simulation.radio.may_fail:
            return
        coming = self._simulation.network.connecting(self._cell)
        allowed = self._allowed(sorted(coming))
        if allowed:
            self._waited_for = self._waited_for.union(allowed)
            last_s = max(coming[id_] for id_ in allowed)
            yield from wait_until(self._simulation.env, min(last_s, until_s))

    def wait_for_devices(self, until_s: float) -> Generator[simpy.Event, None, None]:
        """Wait until a device is in the cell, at most until `until_s`; meanwhile the federation counts as waiting.

        Raises:
            Deserted: no device came in time, and another federation has finished.
            EdgeflError: no device came in time, no federation has finished, and the run has no duration.
        """
        federations, env = self._simulation.federations, self._simulation.env
        began_s = env.now
        event = Event(began_s, EventName.WAITING_FOR_DEVICES, None, self.session, self._cell)
        self._simulation.recorder.write(event)
        given_up = federations.waits(self.label)
        while not self.present() and env.now < until_s:
            over = [env.timeout(until_s - env.now)] if until_s < math.inf else []
            yield env.any_of([self._simulation.network.arrival(self._cell), given_up, *over])
            if given_up.processed and not self.present():
                if federations.done:
                    raise Deserted(began_s)
                if self._simulation.duration_s < math.inf:
                    # a run with a duration ends in any case, and a device may still come before its end
                    given_up = federations.waits(self.label)
                    continue
                network = self._simulation.network
                out = len(network.out_of_coverage(self._cell) or ())
                raise federations.deserted(self.label, began_s, out, network.power)
        if self.present():
            federations.works(self.label)

    def _allowed(self, ids: list[int]) -> list[int]:
        allowed = self._members(self.session)
        return ids if allowed is None else [id_ for id_ in ids if id_ in allowed]
