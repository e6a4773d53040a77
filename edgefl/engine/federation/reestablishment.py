"""Re-establish a failed link: the device searches for a cell and resumes its transfer there."""

import itertools
from collections.abc import Generator

import simpy

from edgefl.channel.tdd import Direction
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.radio_round import Link
from edgefl.engine.cells.network import Network
from edgefl.engine.parts import Cause, Span, Stall


class Search:
    """A device's search for a cell after a radio link failure, while T311 runs and afterwards.

    An attempt takes 0.4 s (38.133, 6.2.1). Then the strongest cell is measured, and the attempt succeeds if the link
    to this cell reaches the lowest rate in the transfer's direction; otherwise the next attempt begins. The receiver
    is on while T311 runs; then the connection is released. In a round without a deadline the device then gives up its
    part, which counts as failed. With a deadline, until which the server waits in any case, the device continues the
    search at idle power; once it finds a cell, its traffic sets up a new connection.

    Bits that had arrived are kept: the data path is re-established rather than reset, the receiver reports what it
    has received (38.323, 5.1.2 and 5.4), the IP address stays the same, and the application's TCP or QUIC stream
    continues. Left out: data in flight (a link below the lowest rate carries none), and the stream's slow start.

    Source: 3GPP TS 38.331, 5.3.7 (re-establishment; when T311 expires a device becomes idle); TS 38.133, 6.2.1 (the
    delay). Left out: T301, other frequencies, and the less frequent searches of an idle device. Without
    re-establishment, a device's part of the round would end when its link fails, and its energy would be wasted.

    Args:
        listen_w: power of the receiver.
    """

    def __init__(self, device: int, air: AirInterface, network: Network, listen_w: float) -> None:
        self._device = device
        self._air = air
        self._network = network
        self._listen_w = listen_w

    def run(
        self, link: Link, direction: Direction, patient: bool
    ) -> Generator[simpy.Event, None, tuple[Span, Link | None]]:
        """Search for a new link after a failure; return the search, and the new link or None if the part ends.

        Args:
            patient: whether the search continues after T311 expires.
        """
        env, rules, network = self._air.env, self._air.monitoring, self._network
        assert link.round.elsewhere is not None  # callers start a search only if there are other cells
        failed = self._air.next_slot(env.now)
        released = failed + rules.t311
        network.power.draw(self._device, self._listen_w)
        new_link: Link | None = None
        cut: Cause | None = None
        listens, lasts = True, False
        hopeless: bytes | None = None  # position whose best link is too weak even with the whole band
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
                # if nothing can change, wait until the device is cut off, by the deadline at the latest
                yield env.event() if lasts else self._air.until(slot)
                here = network.positions_m()[self._device].tobytes()
                if here == hopeless:  # a device that has not moved would find the same result again
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
        """Return the search as a span, at the receiver's power while T311 ran and at idle power afterwards."""
        start_s = failed * self._air.slot_s
        end_s = max(end_s, start_s)
        listened_s = min(end_s - start_s, self._air.monitoring.t311 * self._air.slot_s)
        idle_w = self._network.power.idle_w(self._device)
        energy_j = self._listen_w * listened_s + idle_w * (end_s - start_s - listened_s)
        return Span(start_s, end_s, energy_j, cut=cut, stall=Stall(end_s - start_s, energy_j))
