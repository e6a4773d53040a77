"""What a device does when its radio link has failed: it looks for a cell, and goes on there."""

import itertools
from collections.abc import Generator

import simpy

from edgefl.channel.tdd import Direction
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.radio_round import Link
from edgefl.engine.cells.network import Network
from edgefl.engine.parts import Cause, Span, Stall


class Search:
    """A device's search for a cell after a radio link failure, while T311 runs and beyond.

    An attempt takes 0.4 s (38.133, 6.2.1): then the cell that is the strongest is measured, and the device has a
    link there if the transfer's direction is above the lowest rate. If not, the next attempt begins. Its receiver is
    on while T311 runs. Then the connection is released. In a round without a deadline the device gives its part up
    there, as failed; before a deadline it goes on, drawing its idle power, for the server waits for it anyway: when a
    cell is there, its traffic sets the connection up again.

    Bits that had arrived are kept: the data path is re-established and not begun anew, the receiver says what it has
    (38.323, 5.1.2 and 5.4), the address stays, and the application's stream over TCP or QUIC goes on. Left out: what
    was in flight, and that a stream starts slowly again; the weak link below the lowest rate had carried nothing.

    Source: 3GPP TS 38.331, 5.3.7 (re-establishment; T311, at whose end a device is idle); TS 38.133, 6.2.1 (its
    delay). Left out: T301, other frequencies, and that an idle device looks less often than one that listens.
    Leaving all of this out, a part of the round ends with the failure of its link, and its energy is lost.

    Args:
        listen_w: what the receiver draws.
    """

    def __init__(self, device: int, air: AirInterface, network: Network, listen_w: float) -> None:
        self._device = device
        self._air = air
        self._network = network
        self._listen_w = listen_w

    def run(
        self, link: Link, direction: Direction, patient: bool
    ) -> Generator[simpy.Event, None, tuple[Span, Link | None]]:
        """Look for a link in place of one that has just failed; return how that went, None: the part is over.

        Args:
            patient: go on when T311 is over.
        """
        env, rules, network = self._air.env, self._air.monitoring, self._network
        assert link.round.elsewhere is not None  # the caller looks only where there is something to find
        failed = self._air.next_slot(env.now)
        released = failed + rules.t311
        network.power.draw(self._device, self._listen_w)
        new_link: Link | None = None
        cut: Cause | None = None
        listens, lasts = True, False
        hopeless: bytes | None = None  # the place at which no cell can carry anything, whoever else sends
        try:
            for attempt in itertools.count(1):
                slot = failed + attempt * rules.reestablishment
                if (lasts or slot > released) and listens:
                    yield self._air.until(released)
                    if not patient:
                        cut = Cause.RADIO_LINK_FAILURE
                        break
                    network.power.rest(self._device)
                    listens = False
                # until it is cut off, if nothing can change: by the deadline at the latest
                yield env.event() if lasts else self._air.until(slot)
                here = network.positions_m()[self._device].tobytes()
                if here == hopeless:  # who stands still finds the same again
                    continue
                cell = network.best_cell(self._device)
                opened = None if cell is None else link.round.elsewhere(link, cell)
                new_link = None if opened is None else next(iter(opened))
                if new_link is not None:
                    if not new_link.carries(direction, alone=True):
                        hopeless = here
                    elif new_link.carries(direction):
                        break
                new_link, lasts = None, not network.moves
        except simpy.Interrupt as interrupt:
            cut = interrupt.cause
        if new_link is not None and not network.reestablished(self._device, new_link.cell):
            new_link, cut = None, Cause.LEFT
        return self._span(failed, cut, env.now), new_link

    def _span(self, failed: int, cut: Cause | None, end_s: float) -> Span:
        """Return the search as a span: the receiver's power while T311 ran, then that of a device without one."""
        start_s = failed * self._air.slot_s
        end_s = max(end_s, start_s)
        listened_s = min(end_s - start_s, self._air.monitoring.t311 * self._air.slot_s)
        idle_w = self._network.power.idle_w(self._device)
        energy_j = self._listen_w * listened_s + idle_w * (end_s - start_s - listened_s)
        return Span(start_s, end_s, energy_j, cut=cut, stall=Stall(end_s - start_s, energy_j))
