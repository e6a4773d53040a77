"""Define a round on the radio, with its links, their transfers, and the broadcast."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import simpy

from edgefl.channel.fading import Fading
from edgefl.channel.many_links import static_power
from edgefl.channel.packet_errors import PacketErrors
from edgefl.channel.tdd import Direction, OnTime
from edgefl.channel.units import FloatArray
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.broadcast import Broadcast
from edgefl.engine.air.channel_reports import ChannelReports
from edgefl.engine.air.links import DIRECTIONS, Links, Transfer, Transfers
from edgefl.engine.air.many_transfers import time_transfers
from edgefl.engine.air.progressive import (
    FixedShareTransfer,
    HeldShareTransfer,
    MonitoredTransfer,
    ProgressiveTransfer,
    SharedBandTransfer,
)
from edgefl.engine.air.slot_interference import InterferedLinks
from edgefl.engine.parts import Cause, Span, total


@dataclass(frozen=True)
class RadioRound:
    """A round that is open; its participants' links stay the same until the round ends.

    Any number of rounds may be open at the same time, even in a single cell.

    Attributes:
        cell: the cell of the server that opened the round.
        reports: measured SNR of the links, or None if the SNR is constant during the round.
        interfered: the links' fading with slot-by-slot interference, or None if interference is part of the SNR.
        broadcast: the downlink's broadcast, or None for unicast.
        packet_errors: model of lost uploads, or None if all uploads arrive.
        elsewhere: returns a round with a device's new link to a cell's site after a link failure, or None if the
            device is absent; `elsewhere` itself is None if failed links are not re-established.
    """

    air: AirInterface
    links: Links
    cell: int
    reports: ChannelReports | None = None
    interfered: InterferedLinks | None = None
    broadcast: Broadcast | None = None
    elsewhere: "Callable[[Link, int], RadioRound | None] | None" = None
    packet_errors: PacketErrors | None = None

    def __iter__(self) -> "Iterator[Link]":
        return (Link(self, row) for row in range(len(self.links)))

    @property
    def predictable(self) -> bool:
        """Whether all transfer times are known when the round opens, provided that no other round uses its band."""
        settings = self.air.settings
        shared = self.air.dynamic and (self.air.groups or settings.background or settings.flexible)
        if any((self.reports, self.broadcast, self.interfered, shared)):
            return False
        return len(self.in_sync()) == len(self.links)

    def in_sync(self) -> list[int]:
        """Return the rows of the links that carry bits in both directions."""
        if self.air.monitoring.t310 is None:
            return list(range(len(self.links)))
        return [link.row for link in self if all(map(link.carries, DIRECTIONS))]

    def transfers(self, direction: Direction, payload_bits: Sequence[int], from_s: FloatArray) -> Transfers:
        """Compute the times of all transfers of a predictable round, with the same results as `Link.transfer`."""
        return time_transfers(self.air, self.links, direction, payload_bits, from_s)

    @cached_property
    def rates_bit_s(self) -> dict[Direction, FloatArray]:
        """Mean rate of each link by direction, bit/s; in a dynamic band, the rate on an equal share of the band."""
        links, equal = self.links, np.full(len(self.links), 1.0 / max(1, len(self.links)))
        shares = dict.fromkeys(DIRECTIONS, equal) if self.air.dynamic else links.share
        static, held = static_power(links.fading)
        return {
            way: carrier.mean_slot_bits(shares[way], links.snr[way] * held, static) / carrier.slot_s
            for way, carrier in self.air.carriers.items()
        }

    @property
    def sent_slots(self) -> float:
        """Downlink slots used in the cell's dynamic band since the run began, summed over shares.

        If the band is divided among groups of devices, count only the group of these links, in full-power slots.
        """
        if not self.air.dynamic:
            return 0.0
        band = self.air.band(self.cell, "downlink").band
        if self.air.groups is None:
            return band.sent_slots
        return band.sent_slots_of(self.air.groups.of(self.links.devices[0]))


@dataclass(frozen=True, slots=True)
class Link:
    """A device's link in a round, which is a row of the round's links."""

    round: RadioRound
    row: int

    @property
    def device(self) -> int:
        """The device's id."""
        return self.round.links.devices[self.row]

    @property
    def cell(self) -> int:
        """The cell that the link connects to."""
        return self.round.links.cells[self.row]

    @property
    def uplink_power(self) -> float:
        """Fraction of its power that the device radiates; the uplink's SNR already includes this factor."""
        return float(self.round.links.uplink_power[self.row])

    def on_block(self, direction: Direction, snr: float) -> tuple[float, float]:
        """Return the full-power SNR on the whole band, and the highest SNR that power control allows on a block.

        `snr` is the current mean SNR on the whole band, at the link's power. When the path loss changes by x dB, the
        controlled power changes by alpha x dB.
        """
        if direction == "downlink":
            return snr, math.inf
        control, opening = float(self.round.links.control[self.row]), self.snr(direction)
        change = (snr / opening) ** -self.round.air.settings.budget.uplink_alpha if snr != opening else 1.0
        full = snr / self.uplink_power
        return full, full * control * change

    def flow(self, direction: Direction, payload_bits: int) -> dict[str, Any]:
        """Return the arguments of `SharedBand.add` for the link as it was at the round's opening."""
        snr, most_snr = self.on_block(direction, self.snr(direction))
        return {
            "id_": self.device,
            "payload_bits": payload_bits,
            "snr_whole_band": snr,
            "most_snr": most_snr,
            "widest": self.share(direction),
            "fading": self.power(direction),
            "neighbours": float(self.round.links.neighbours[self.row]) if direction == "downlink" else 0.0,
        }

    def by_blocks(self, direction: Direction) -> bool:
        """Return whether resource blocks determine in which slots, and with what power, the device sends."""
        return direction == "uplink" and self.round.air.carriers[direction].blocks is not None

    def share(self, direction: Direction) -> float:
        """Return the link's share of the band; in a dynamically shared band, the largest share that it can use."""
        return float(self.round.links.share[direction][self.row])

    def snr(self, direction: Direction) -> float:
        """Return the mean SNR over the whole band at the round's opening; in the uplink, times `uplink_power`."""
        return float(self.round.links.snr[direction][self.row])

    def snr_now(self, direction: Direction) -> float:
        """Return the current mean SNR over the whole band; in the uplink, times `uplink_power`."""
        reports = self.round.reports
        return self.snr(direction) if reports is None else reports.snr(self.device, direction)

    def known_snr(self, direction: Direction) -> float | None:
        """Return the link's mean SNR as `snr_now` does, or None if the link has not been measured at this time."""
        reports = self.round.reports
        return self.snr(direction) if reports is None else reports.known_snr(self.device, direction)

    def power(self, direction: Direction) -> Fading:
        """Return the factor by which fading and any slot-by-slot interference change the SNR in each slot."""
        interfered = self.round.interfered
        return self.round.links.fading[self.row] if interfered is None else interfered(direction)[self.row]

    def carries(self, direction: Direction, share: float | None = None, *, alone: bool = False) -> bool:
        """Return whether the link, as it was at the round's opening, can carry data in a direction.

        Args:
            share: share of the band; by default the link's own share.
            alone: whether to leave out slot-by-slot interference.
        """
        air, share = self.round.air, self.share(direction) if share is None else share
        # a link without bits may have no share
        if air.monitoring.t310 is None or not (air.dynamic or share):
            return True
        fading = self.round.links.fading[self.row] if alone else self.power(direction)
        best_snr = self._best_snr(direction, share, fading, self.snr(direction))
        return best_snr >= air.monitoring.lowest_snr[direction]

    def _best_snr(self, direction: Direction, share: float, fading: Fading, snr: float) -> float:
        """Return the mean SNR over fading that monitoring compares with its lowest SNR.

        Args:
            snr: mean SNR on the whole band, at the link's power.
        """
        if self.by_blocks(direction):
            snr = float(self.round.air.monitoring.at_best(direction, *self.on_block(direction, snr)))
        return _mean_snr(self.round.air, direction, share, fading, snr)

    def sync_snr(self, direction: Direction, share: float, snr: float) -> float:
        """Return the mean SNR over fading on a share of the band, from the mean SNR on the whole band."""
        return _mean_snr(self.round.air, direction, share, self.power(direction), snr)

    def transfer(
        self, direction: Direction, payload_bits: int, radio_on: Callable[[OnTime], None] = lambda on: None
    ) -> Generator[simpy.Event, None, Transfer]:
        """Transfer payload_bits, beginning at the next slot; an interrupt with a Cause cuts the transfer off.

        Args:
            radio_on: called at the start of the first slot; for an uplink, only if there are bits to send.
        """
        air, env, slot_s = self.round.air, self.round.air.env, self.round.air.slot_s
        first_slot, share, got_bits = air.next_slot(env.now), self.share(direction), 0
        on = OnTime(air.carriers[direction].frame, slot_s, first_slot)
        start_s = first_slot * slot_s
        broadcast = self.round.broadcast if direction == "downlink" and payload_bits else None
        moving, monitored = self._begun(direction, share, payload_bits, first_slot)
        if monitored is not None and broadcast is None:
            monitored.expect(first_slot)
        try:
            yield air.until(first_slot)
        except simpy.Interrupt as interrupt:
            if monitored is not None:
                monitored.give_up()
            return Transfer(env.now, env.now, 0, 0.0, interrupt.cause)
        if payload_bits or direction == "downlink":  # even an empty downlink ends the previous tail
            radio_on(on)
        if broadcast is not None:
            try:
                yield air.until(broadcast.end_slot)
            except simpy.Interrupt as interrupt:
                end_s = max(env.now, start_s)
                bits = int(min(payload_bits, broadcast.bits_until(self.device, on.place(end_s)[0])))
                return Transfer(start_s, end_s, bits, on.airtime_s(start_s, end_s), interrupt.cause)
            first_slot, share = broadcast.end_slot, broadcast.share
            got_bits = payload_bits - broadcast.missing_bits(self.device, payload_bits)
            payload_bits -= got_bits
            moving, monitored = self._begun(direction, share, payload_bits, first_slot)
        cut: Cause | None = None
        try:
            if monitored is None:
                end_slot = cast(int, (yield from moving.go(first_slot, self.snr(direction), None)))
            else:
                with self._measured():
                    end_slot, cut = yield from monitored.run(first_slot)
        except simpy.Interrupt as interrupt:
            # only complete slots carried bits, but power was drawn until the end
            end_s = max(env.now, start_s)
            end_slot, cut = on.place(end_s)[0], interrupt.cause
        else:
            end_s = end_slot * slot_s
        stalls_s = [] if monitored is None else monitored.stalls_s(end_s)
        bits = got_bits + (payload_bits if cut is None else moving.bits(end_slot))
        stalled_s = total(until_s - since_s for since_s, until_s in stalls_s)
        if self.by_blocks(direction) and isinstance(moving, SharedBandTransfer):
            on_slots, power = moving.sent()
            return Transfer(start_s, end_s, bits, on_slots * slot_s, cut, stalled_s, power=power)
        stalled_air_s = total(on.airtime_s(start_s, b) - on.airtime_s(start_s, a) for a, b in stalls_s)
        return Transfer(start_s, end_s, bits, on.airtime_s(start_s, end_s), cut, stalled_s, stalled_air_s)

    def _begun(
        self, direction: Direction, share: float, payload_bits: int, first_slot: int
    ) -> tuple[ProgressiveTransfer, MonitoredTransfer | None]:
        """Return a new transfer and its monitor; the monitor is None if the link needs no monitoring."""
        air, fading = self.round.air, self.power(direction)
        holds = not payload_bits or (self.round.reports is None and self.carries(direction, share))
        moving: ProgressiveTransfer
        if air.dynamic and payload_bits:
            band, on_block = air.band(self.cell, direction), partial(self.on_block, direction)
            moving = SharedBandTransfer(band, self.flow(direction, payload_bits), air.until, on_block)
        elif holds:
            snr = self.snr(direction)
            moving = HeldShareTransfer(air, direction, share, snr, fading, payload_bits, first_slot)
        else:
            moving = FixedShareTransfer(air, direction, share, fading, payload_bits, first_slot)
        if holds:
            return moving, None
        now = (
            partial(self.snr_now, direction),
            partial(self.known_snr, direction),
            # called at each measurement of each transfer, so constants are bound once
            partial(self._best_snr, direction, share, fading),
        )
        return moving, MonitoredTransfer(air, moving, *now, air.monitoring.lowest_snr[direction])

    def _measured(self) -> AbstractContextManager[None]:
        """Return a context that keeps the link measured, if the round has reports."""
        reports = self.round.reports
        return nullcontext() if reports is None else reports.under_way(self.device)

    def received(self, upload: Span) -> Span:
        """Return an upload as the server receives it, either complete or lost to packet errors at its end."""
        if (errors := self.round.packet_errors) is None or upload.cut is not None or not upload.bits:
            return upload
        snr = self.sync_snr("uplink", self.share("uplink"), self.snr_now("uplink"))
        end = self.round.air.next_slot(upload.end_s)
        arrives, lost = errors.drawn(self.round.links.fading[self.row], snr, end)
        return upload._replace(arrives=arrives, cut=Cause.LOST if lost else None)


def _mean_snr(air: AirInterface, direction: Direction, share: float, fading: Fading, snr: float) -> float:
    return float(air.carriers[direction].share_snr(1.0 if air.dynamic else share, snr)) * fading.mean_power
