"""The dynamically shared band of a cell and direction, with an event at the end of each transfer."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import simpy

from edgefl.channel.shared_band import SharedBand
from edgefl.errors import refused


class BandInUse:
    """A SharedBand on SimPy's clock; flows join at slot boundaries, and each completed flow triggers an event.

    Args:
        band: the band, whose airtimes are read here; its flows change only through this class.
        yields: band of the other direction, if that band may send only while this band has no flows; otherwise None.
    """

    def __init__(
        self, env: simpy.Environment, band: SharedBand, slot_s: float, yields: "BandInUse | None" = None
    ) -> None:
        self.env = env
        self.band = band
        self._slot_s = slot_s
        self._yields = yields
        self._paused = False
        self._pauses: list[tuple[int, float]] = []  # first slot of each pause, and the slot in which it ends
        self._ends: dict[int, Callable[[int], object]] = {}  # called with the flow's last slot boundary
        self._plans = 0

    def begin(self, id_: int, payload_bits: float, *, slot: int, **flow: Any) -> simpy.Event:
        """Start to send a payload at the slot boundary `slot`, which is the current time.

        Args:
            flow: the flow's other arguments of `SharedBand.add`.

        Returns:
            An event that succeeds when the payload has arrived; its value is the slot boundary of arrival.
        """
        self.catch_up(slot)
        end = self.env.event()
        self._ends[id_] = end.succeed
        self.band.add(id_, payload_bits, slot=slot, **flow)
        self._changed(slot)
        return end

    def time(self, begins: Iterable[tuple[float, int, dict[str, Any]]]) -> dict[int, tuple[int, float]]:
        """Return the ends of flows that have the band to themselves, as if each began and ended on the clock.

        Args:
            begins: the clock's time and the slot at which each flow begins, and the flow's arguments of
                `SharedBand.add`, in order of the events.

        Returns:
            Device -> slot boundary by which its payload has arrived, and the clock's time then; in order of time.
        """
        ends: dict[int, tuple[int, float]] = {}
        flows, joins = [], []
        for begin_s, slot, flow in begins:
            flows.append((slot, self.band.add(**flow, slot=slot, expected=True)))
            joins.append((slot, begin_s))
        now_s, joined = self.env.now, 0
        for slot, ids in self.band.planned(flows):
            while joined < len(joins) and joins[joined][0] < slot:
                now_s, joined = joins[joined][1], joined + 1
            # the clock advances by adding a delay to its current time, and the sum may be rounded
            wake_s = now_s + max(0.0, slot * self._slot_s - now_s)
            now_s = wake_s if joined == len(joins) else min(wake_s, joins[joined][1])
            ends |= dict.fromkeys(ids, (slot, now_s))
        return ends

    def change(self, id_: int, snr_whole_band: float, slot: int, most_snr: float = math.inf) -> None:
        """Set a flow's SNR as of the current slot boundary `slot`, unless the flow has just ended."""
        self.catch_up(slot)
        if id_ in self._ends:
            self.band.change(id_, snr_whole_band, slot, most_snr)
            self._plan()

    def cut_off(self, id_: int, payload_bits: float, slot: int) -> float:
        """Remove a flow at the slot boundary `slot`; return the bits that it has sent."""
        self.catch_up(slot)
        if id_ not in self._ends:
            return payload_bits  # the flow's last bit has just arrived
        del self._ends[id_]
        moved = self.band.remove(id_, slot)
        self._changed(slot)
        return moved

    def paused_slots(self, first: int, end: int) -> int:
        """Return in how many slots from `first` on, before `end`, the band was paused."""
        slots = 0
        for begins, ends in reversed(self._pauses):
            if ends <= first:
                break
            slots += max(0, int(min(end, ends)) - max(first, begins))
        return slots

    def catch_up(self, slot: int) -> None:
        """End the flows that have sent all their bits by a slot boundary, which may be in the past."""
        if slot <= self.band.slot and not self.band.complete:
            return
        while True:
            due = self.band.next_end(max(slot, self.band.slot))
            if due is None or due[0] > slot or not due[1]:
                break
            self._hand_out(due[0])
        self._hand_out(max(slot, self.band.slot))

    def _hand_out(self, slot: int) -> None:
        for id_ in self.band.settle(slot):
            assert isinstance(id_, int)
            self._ends.pop(id_)(slot)
        self._tell(slot)

    def _changed(self, slot: int) -> None:
        self._tell(slot)
        self._plan()

    def _tell(self, slot: int) -> None:
        """Pause the other direction's band from a slot on, as long as this band has flows."""
        other, busy = self._yields, bool(self._ends)
        if other is not None and other._paused != busy:
            other.catch_up(slot)
            other._paused = busy
            other.band.pause(slot, busy)
            other._pauses.append((slot, math.inf) if busy else (other._pauses.pop()[0], slot))
            other._plan()

    def _plan(self) -> None:
        """Schedule a wake-up at the next end of a flow, or at the horizon, in place of earlier wake-ups.

        The search for that end waits until all events of this time have been processed, since many flows often
        begin or change together.
        """
        self._plans += 1
        plan = self._plans

        def look(_: simpy.Event) -> None:
            if plan == self._plans:
                with refused("radio"):
                    self._look()

        self.env.timeout(0.0).callbacks.append(look)

    def _look(self) -> None:
        plan = self._plans
        due = self.band.next_end(self.band.horizon)
        if due is None:
            return
        next_slot, _ = due

        def wake(_: simpy.Event) -> None:
            if plan == self._plans:
                with refused("radio"):
                    self.catch_up(next_slot)
                    self._plan()

        delay_s = max(0.0, next_slot * self._slot_s - self.env.now)
        self.env.timeout(delay_s).callbacks.append(wake)
