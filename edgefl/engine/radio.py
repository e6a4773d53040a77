"""The radio: links of a round, and transfers as one event each."""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import simpy

from channel.carrier import MAX_SLOTS
from channel.fading import Fading
from channel.many import slots_of_many
from channel.shared_band import SharedBand
from channel.tdd import Direction, OnTime
from channel.transfer import Flow
from channel.units import FloatArray
from edgefl.engine.band import BandInUse
from edgefl.engine.efficiency import Efficiency
from edgefl.engine.links import Link, Links, Transfer, Transfers
from edgefl.engine.parts import Cause, Span, total
from edgefl.engine.readings import InTheBand, Moving, OwnShare, Track
from edgefl.engine.regime import RenewalRegime
from edgefl.engine.round_links import LinksOfRounds
from edgefl.errors import refused


class Radio(LinksOfRounds):
    """The radio of all cells: how long transfers between base stations and devices take.

    The large-scale gain is held for a round, or read anew while a transfer lasts; fading is a function of link
    and slot. A device's downlink and uplink follow one another (J's intervals), or take the slots that a TDD frame
    gives each direction; its radio is on in these, while its transfer lasts. Devices of a cell do not interfere
    with one another.

    What the server sends follows `power_over_share`: with `full` every downlink's share is sent with its full
    power, K shares with K times as much; `per_resource_block` is one full power over the whole band, for as
    long as any downlink lasts. The other sites do as this cell does: in `neighbour_load` of their slots they
    send as many shares as this cell's round has downlinks, or as the dynamically shared band has just then.

    Args:
        device_power_w: [devices] what each radiates while it sends, or one for all.
        reading_s: time between two readings of a gain, where the settings ask for them.
    """

    def __init__(self, env: simpy.Environment, **parts: Any) -> None:
        super().__init__(env, **parts)
        settings = self._settings
        self.server_draw_w = self._budget.server_power_w / settings.server_pa_efficiency
        on_shares = {direction: carrier.frame.mean for direction, carrier in self._carriers.items()}
        self.efficiency = Efficiency(settings.bandwidth_hz, on_shares, self.dynamic)
        self.regime = RenewalRegime()
        self._bands: dict[tuple[int, Direction], BandInUse] = {}

    def server_energy_j(self, cell: int, downlinks: Sequence[Span]) -> float:
        """Return what the server of a cell drew for the downlinks of a round that is over.

        They begin together. In a dynamic band it is the shares in use, in whole slots; what went on in another cell
        after a failure is there in that cell's next round.
        """
        airtimes_s, to_all_s = [span.airtime_s for span in downlinks], 0.0
        if cell in self._sent_to_all:
            # for as long as anybody listens, and then for each that lacked something
            to_all_s = min(self._sent_to_all[cell].airtime_s, max(airtimes_s))
            airtimes_s = [max(0.0, airtime_s - to_all_s) for airtime_s in airtimes_s]
        if self._settings.power_over_share == "per_resource_block":
            sent_s = max(airtimes_s)
            if not to_all_s and any(span.pieces for span in downlinks):
                sent_s = self._served_s(cell, downlinks)
        elif self.dynamic:
            sent_s = self._band(cell, "downlink").take_sent_slots() * self._settings.slot_s
        else:
            sent_s = total(airtimes_s)
        return self.server_draw_w * (to_all_s + sent_s)

    def _served_s(self, cell: int, downlinks: Sequence[Span]) -> float:
        """Return for how long the sites sent a round's downlinks, some of which went on elsewhere after a failure."""
        pieces = [piece for span in downlinks for piece in (span.pieces or ((cell, span),))]
        frame, slot_s, sent_s = self._carriers["downlink"].frame, self._settings.slot_s, 0.0
        for site in {at for at, _ in pieces}:
            until_s = -math.inf
            for start_s, end_s in sorted((span.start_s, span.end_s) for at, span in pieces if at == site):
                start_s = max(start_s, until_s)
                if end_s > start_s:
                    sent_s += _airtime_s(OnTime(frame, slot_s, self.next_slot(start_s)), start_s, end_s)
                    until_s = end_s
        return sent_s

    def transfer(
        self,
        link: Link,
        direction: Direction,
        payload_bits: int,
        radio_on: Callable[[OnTime], None] = lambda on: None,
    ) -> Generator[simpy.Event, None, Transfer]:
        """Move payload_bits from the next slot on; an interrupt with a Cause cuts the transfer off.

        Args:
            radio_on: called when the first slot begins.
        """
        slot_s, carrier = self._settings.slot_s, self._carriers[direction]
        first_slot = self.next_slot(self.env.now)
        on = OnTime(carrier.frame, slot_s, first_slot)
        start_s = first_slot * slot_s
        try:
            yield self.env.timeout(max(0.0, start_s - self.env.now))
        except simpy.Interrupt as interrupt:
            return Transfer(self.env.now, self.env.now, 0, 0.0, interrupt.cause)
        radio_on(on)
        got_bits, broadcast = 0, link.broadcast if direction == "downlink" and payload_bits else None
        if broadcast is not None:
            try:
                yield self.env.timeout(max(0.0, broadcast.end_slot * slot_s - self.env.now))
            except simpy.Interrupt as interrupt:
                end_s = max(self.env.now, start_s)
                bits = int(min(payload_bits, broadcast.bits_until(link.device, on.place(end_s)[0])))
                return Transfer(start_s, end_s, bits, _airtime_s(on, start_s, end_s), interrupt.cause)
            first_slot = broadcast.end_slot
            got_bits = payload_bits - broadcast.missing_bits(link.device, payload_bits)
            payload_bits -= got_bits
            link = replace(link, share={**link.share, "downlink": broadcast.share})
        moving = self._moving(link, direction, payload_bits, first_slot)
        cut: Cause | None = None
        try:
            if moving is not None:
                end_slot, cut = yield from self._read_and_move(link, moving, first_slot)
            elif self.dynamic:
                with refused("radio"):
                    end = self._band(link.cell, direction).begin(
                        link.device,
                        payload_bits,
                        snr_whole_band=link.snr[direction],
                        neighbours=link.neighbours if direction == "downlink" else 0.0,
                        fading=link.power(direction),
                        slot=first_slot,
                    )
                    end_slot = cast(int, (yield end))
            else:
                end_slot = first_slot + self._static_slots(link, direction, payload_bits, first_slot)
                yield self.env.timeout(max(0.0, end_slot * slot_s - self.env.now))
        except simpy.Interrupt as interrupt:
            # only whole slots have moved bits; the power was spent until the very end
            end_s = max(self.env.now, start_s)
            end_slot, cut = on.place(end_s)[0], interrupt.cause
        else:
            end_s = end_slot * slot_s
        bits = payload_bits
        if cut is not None and moving is not None:
            bits = moving.bits(end_slot)
        elif cut is not None:
            bits = self._bits_until_now(link, direction, payload_bits, first_slot, end_slot - first_slot)
        stalls_s = [] if moving is None else moving.stalls_s(end_s)
        return Transfer(
            start_s,
            end_s,
            got_bits + bits,
            _airtime_s(on, start_s, end_s),
            cut,
            total(until_s - since_s for since_s, until_s in stalls_s),
            total(_airtime_s(on, start_s, b) - _airtime_s(on, start_s, a) for a, b in stalls_s),
        )

    def seconds_alone(self, direction: Direction, payload_bits: int, snr: FloatArray) -> FloatArray:
        """Return how long a payload takes alone in the band, the mean over fading; inf: below the lowest rate."""
        carrier = self._carriers[direction]
        rate = carrier.mean_efficiency(snr) * carrier.frame.mean
        with np.errstate(divide="ignore"):
            taken_s: FloatArray = carrier.need(payload_bits) / rate * self.slot_s
        lowest = self._rules.lowest_snr if self._rules.t310 is not None else 0.0
        return np.where(snr >= lowest, taken_s, np.inf)

    def join_background(
        self, cell: int, direction: Direction, number: int, bits: int, snr: float, fading: Fading, slot: int
    ) -> None:
        """Let a file of background traffic into the band at a slot boundary, which is now."""
        with refused("radio"):
            # devices have ids from 0 on
            self._band(cell, direction).begin(
                -number, bits, snr_whole_band=snr, fading=fading, slot=slot, background=True
            )

    def _moving(self, link: Link, direction: Direction, payload_bits: int, first_slot: int) -> Moving | None:
        """Return a transfer whose SNR may change or fail; None: it holds throughout."""
        if not payload_bits or (
            link.readings is None and self._in_sync(link, direction, link.snr[direction])
        ):
            return None
        track: Track
        carrier, fading = self._carriers[direction], link.power(direction)
        if self.dynamic:
            neighbours = link.neighbours if direction == "downlink" else 0.0
            band = self._band(link.cell, direction)
            track = InTheBand(band, link.device, fading, payload_bits, neighbours, self._settings.slot_s)
        else:
            track = OwnShare(self.env, carrier, link.share[direction], fading, payload_bits, first_slot)
        return Moving(
            self.env,
            self._rules,
            track,
            lambda: link.snr_now(direction),
            lambda snr: self._sync_snr(link, direction, snr),
        )

    def _read_and_move(
        self, link: Link, moving: Moving, first_slot: int
    ) -> Generator[simpy.Event, Any, tuple[int, Cause | None]]:
        """Run a transfer while its gain is read."""
        if link.readings is None:
            return (yield from moving.run(first_slot))
        link.readings.begin(link.device)
        try:
            return (yield from moving.run(first_slot))
        finally:
            link.readings.end(link.device)

    def transfers(
        self, links: Links, direction: Direction, payload_bits: Sequence[int], from_s: FloatArray
    ) -> Transfers:
        """Time transfers on static shares that nothing cuts off.

        Args:
            payload_bits: of each link.
            from_s: [links] when each may begin.
        """
        slot_s = self._settings.slot_s
        first_slots = self.next_slots(from_s)
        start_s = first_slots * np.float64(slot_s)
        end_s = (first_slots + self._slots(links, direction, payload_bits, first_slots)) * np.float64(slot_s)
        # the clock reaches a time by waiting for it from where it stands, which may round
        begun_s = from_s + np.maximum(0.0, start_s - from_s)
        clock_s = begun_s + np.maximum(0.0, end_s - begun_s)
        airtime_s = end_s - start_s
        frame = self._carriers[direction].frame
        if not frame.plain:
            ends = zip(first_slots.tolist(), end_s.tolist(), strict=True)
            airtime_s = np.array([OnTime(frame, slot_s, first).until_s(end) for first, end in ends])
        return Transfers(start_s, end_s, airtime_s, clock_s)

    def certain(self, links: Links, direction: Direction, bits: int, power: FloatArray) -> bool:
        """Tell whether transfers are sure to end, ten times sooner than they must.

        Args:
            power: [links] of the fading in all slots; less than nearly all slots have.
        """
        carrier, share = self._carriers[direction], links.share[direction]
        snr = carrier.share_snr(share, links.snr[direction])
        if not bits:
            return True
        if not (np.all(share > 0) and np.all((snr > 0) & (snr < np.inf))):
            return False
        rate = carrier.efficiency(power * snr) * carrier.frame.mean
        need = carrier.needs(np.full(len(links), float(bits)), share)
        return bool(np.all(need <= MAX_SLOTS / 10 * rate))

    def _slots(
        self,
        links: Links,
        direction: Direction,
        payload_bits: Sequence[int],
        first_slots: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Return [links] the number of slots that each transfer takes."""
        carrier, bits = self._carriers[direction], np.asarray(payload_bits)
        busy = np.flatnonzero(bits)  # who has nothing to move may have no share
        share = links.share[direction][busy]
        snr = carrier.share_snr(share, links.snr[direction][busy])
        fading = [links.fading[i] for i in busy.tolist()]
        slots = np.zeros(len(links), np.int64)
        with refused("radio"):
            slots[busy] = slots_of_many(
                carrier,
                bits[busy],
                share=share,
                snr=snr,
                fading=fading,
                first_slot=first_slots[busy],
                direction=direction,
                fidelity=self._settings.fidelity,
            )
        if self._settings.fidelity == "renewal":
            expected = carrier.needs(bits[busy], share) / (carrier.mean_efficiency(snr) * carrier.frame.mean)
            self.regime.count(expected, [link.correlation for link in fading])
        return slots

    def _bits_until_now(
        self, link: Link, direction: Direction, payload_bits: int, first_slot: int, slots: int
    ) -> int:
        """Return the bits that a transfer had moved when it was cut off, after a number of whole slots."""
        if not payload_bits:
            return 0
        if self.dynamic:
            band = self._band(link.cell, direction)
            return int(band.cut_off(link.device, payload_bits, first_slot + slots))
        return int(self._flow(link, direction, first_slot).bits(slots, payload_bits))

    def _flow(self, link: Link, direction: Direction, first_slot: int) -> Flow:
        """Make the flow of a link, on its share of the band, from a slot on."""
        carrier, share = self._carriers[direction], link.share[direction]
        return Flow(
            carrier.part(share),
            float(carrier.share_snr(share, link.snr[direction])),
            link.power(direction),
            first_slot,
            direction,
            self._settings.fidelity,
        )

    def _static_slots(self, link: Link, direction: Direction, payload_bits: int, first_slot: int) -> int:
        if not payload_bits:
            return 0
        flow = self._flow(link, direction, first_slot)
        with refused("radio"):
            slots = flow.slots(payload_bits)
        if self._settings.fidelity == "renewal":
            self.regime.count(flow.expected_slots(payload_bits), flow.fading.correlation)
        return slots

    def _band(self, cell: int, direction: Direction) -> BandInUse:
        if (cell, direction) not in self._bands:
            band = SharedBand(self._scheduler, self._carriers[direction])
            self._bands[cell, direction] = BandInUse(self.env, band, self._settings.slot_s)
        return self._bands[cell, direction]


def _airtime_s(on: OnTime, start_s: float, end_s: float) -> float:
    """Return how long a transfer's radio is on: in a TDD frame, only in the slots of its direction."""
    return end_s - start_s if on.frame.plain else on.until_s(end_s)
