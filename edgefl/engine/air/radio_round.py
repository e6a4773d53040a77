"""A round on the radio, as a value: its links, their transfers, the broadcast, and the server's energy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edgefl.channel.many_links import static_power
from edgefl.channel.packet_errors import PacketErrors
from edgefl.channel.tdd import Direction, OnTime
from edgefl.channel.units import FloatArray, dbm_to_watt
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.broadcast import Broadcast
from edgefl.engine.air.channel_reports import ChannelReports
from edgefl.engine.air.link import Link, airtime_s
from edgefl.engine.air.links import DIRECTIONS, Links, Transfers
from edgefl.engine.air.many_transfers import time_in_band, time_transfers
from edgefl.engine.air.sent_time import SentTime, in_turn
from edgefl.engine.air.slot_interference import InterferedLinks
from edgefl.engine.parts import Span, total


@dataclass(frozen=True)
class RadioRound:
    """An open round: the links of its participants, fixed until the round is over.

    Any number of rounds may be open at the same time, even in one cell.

    Attributes:
        cell: the cell of the server that opened the round.
        reports: measured SNR of the links, or None if the SNR is constant during the round.
        interfered: the links' fading with slot-by-slot interference, or None if interference is part of the SNR.
        broadcast: the downlink's broadcast, or None for unicast.
        packet_errors: the loss of uploads, or None if all uploads arrive.
        elsewhere: returns a round with the current link of a failed link's device to another cell's site, or None if
            the device is absent; `elsewhere` is None if failed links are not re-established.
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
        """Whether all transfer times are known when the round opens, if no other round uses its band."""
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
        """Time all transfers of a predictable round, with the same results as `Link.transfer` for each."""
        return time_transfers(self.air, self.links, direction, payload_bits, from_s)

    def in_band(
        self,
        direction: Direction,
        payload_bits: Sequence[int],
        from_s: FloatArray,
        led: Sequence[tuple[float, ...]],
    ) -> Transfers:
        """Time the transfers of a predictable round in a dynamically shared band, as in `time_in_band`."""
        flows = [link.flow(direction, bits) for link, bits in zip(self, payload_bits, strict=True)]
        return time_in_band(self.air, self.cell, direction, flows, from_s, led)

    @cached_property
    def rates_bit_s(self) -> dict[Direction, FloatArray]:
        """Mean rate of each link by direction, bit/s; in a dynamic band as if all links shared it equally."""
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

        If the band is divided among groups of devices, count only the links' own group, in full-power slots.
        """
        if not self.air.dynamic:
            return 0.0
        band = self.air.band(self.cell, "downlink")
        if self.air.groups is None:
            return band.sent_slots
        return band.sent_slots_of(self.air.groups.of(self.links.devices[0]))

    def server_energy_j(
        self, downlinks: Sequence[Span], billed_slots: float = 0.0, billed: SentTime | None = None
    ) -> float:
        """Return the joules that the cell's server spent on the round's downlinks, which began together and are over.

        In a dynamic band, the round is billed for the used slots that no round has been billed for yet, including
        those of devices that came from another cell after a failure, and of background traffic.

        Args:
            billed_slots: `sent_slots` at the last bill of a round of the cell.
            billed: sending time billed so far, to which these downlinks are added; only for overlapping rounds, whose
                downlinks do not begin together.
        """
        settings = self.air.settings
        airtimes_s, to_all_s = [span.airtime_s for span in downlinks], 0.0
        if self.broadcast is not None:
            # the broadcast lasts while any device listens, and then each missing part is sent
            to_all_s = min(self.broadcast.airtime_s, max(airtimes_s))
            airtimes_s = [max(0.0, airtime_s - to_all_s) for airtime_s in airtimes_s]
        if self.air.groups is not None:  # several servers send; each is billed for its part of the power
            sent_s = (self.sent_slots - billed_slots) * settings.slot_s
        elif settings.budget.power_over_share == "per_resource_block":
            sent_s = max(airtimes_s)
            if billed is not None or (not to_all_s and any(span.pieces for span in downlinks)):
                sent_s = self._served_s(downlinks, billed)
        elif self.air.dynamic:
            sent_s = (self.sent_slots - billed_slots) * settings.slot_s
        else:
            sent_s = total(airtimes_s)
        return dbm_to_watt(settings.budget.server_power_dbm) * (to_all_s + sent_s)

    def _served_s(self, downlinks: Sequence[Span], billed: SentTime | None) -> float:
        """Return how long sites sent these downlinks, s, including downlinks resumed in another cell after a failure.

        Where rounds overlap, time that is already billed is left out.
        """
        pieces = [piece for span in downlinks for piece in (span.pieces or ((self.cell, span),))]
        frame, sent_s = self.air.carriers["downlink"].frame, 0.0
        for site in {at for at, _ in pieces}:
            sent = [(span.start_s, span.end_s) for at, span in pieces if at == site]
            for start_s, end_s in in_turn(sent) if billed is None else billed.take(site, sent):
                on = OnTime(frame, self.air.slot_s, self.air.next_slot(start_s))
                sent_s += airtime_s(on, start_s, end_s)
        return sent_s
