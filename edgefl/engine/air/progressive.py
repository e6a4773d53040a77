"""Transfers that progress as time passes, on a fixed share or in a shared band, with or without monitoring."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import simpy

from edgefl.channel.changing_flow import ChangingFlow
from edgefl.channel.fading import Fading
from edgefl.channel.tdd import Direction
from edgefl.channel.transfer import Flow
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.band import BandInUse
from edgefl.engine.parts import Cause
from edgefl.errors import refused


class ProgressiveTransfer(Protocol):
    """Progress of one transfer while its link is in sync."""

    def go(self, slot: int, snr: float, until: int | None) -> Generator[simpy.Event, Any, int | None]:
        """Transfer bits at a mean SNR, beginning at a slot; return the end slot, or None if it is after `until`."""

    def pause(self, slot: int) -> None:
        """Stop the transfer of bits at a slot."""

    def bits(self, slot: int) -> int:
        """Return the bits transferred up to the slot at which the transfer ends."""


class HeldShareTransfer:
    """A transfer on a fixed share at a constant mean SNR, so that its end is known from the start.

    Args:
        first_slot: first slot of the transfer.
    """

    def __init__(
        self,
        air: AirInterface,
        direction: Direction,
        share: float,
        snr: float,
        fading: Fading,
        bits: int,
        first_slot: int,
    ) -> None:
        carrier = air.carriers[direction]
        self._air = air
        self._payload_bits = bits
        self._first_slot = first_slot
        self._flow: Flow | None = None  # a transfer without bits may have no share
        if bits:
            share_snr = float(carrier.share_snr(share, snr))
            self._flow = Flow(
                carrier.part(share), share_snr, fading, first_slot, direction, air.settings.fidelity
            )

    def go(self, slot: int, snr: float, until: int | None = None) -> Generator[simpy.Event, Any, int]:
        flow, slots = self._flow, 0
        if flow is not None:
            with refused("radio"):
                slots = flow.slots(self._payload_bits)
            if self._air.settings.fidelity == "renewal":
                self._air.regime.count(flow.expected_slots(self._payload_bits), flow.fading.correlation)
        yield self._air.until(slot + slots)
        return slot + slots

    def pause(self, slot: int) -> None:
        raise NotImplementedError("a link of constant SNR does not pause")

    def bits(self, slot: int) -> int:
        return 0 if self._flow is None else int(self._flow.bits(slot - self._first_slot, self._payload_bits))


class FixedShareTransfer:
    """A transfer on a fixed share with changing SNR."""

    def __init__(
        self, air: AirInterface, direction: Direction, share: float, fading: Fading, bits: int, slot: int
    ) -> None:
        self._air = air
        self._carrier = air.carriers[direction]
        self._share = share
        self._flow = ChangingFlow(self._carrier.part(share), fading, bits, slot)

    def go(self, slot: int, snr: float, until: int | None) -> Generator[simpy.Event, Any, int | None]:
        assert until is not None  # without measurements, a HeldShareTransfer is used
        end = self._flow.end(slot, self.piece(snr)[1], until)
        yield self._air.until(until if end is None else end)
        return end

    def pause(self, slot: int) -> None:
        self._flow.settle(slot)

    def bits(self, slot: int) -> int:
        self._flow.settle(slot)
        return int(self._flow.bits)

    def piece(self, snr: float) -> tuple[ChangingFlow, float]:
        """Return the transfer's flow and the mean SNR on its share, given the SNR on the whole band."""
        return self._flow, float(self._carrier.share_snr(self._share, snr))


@dataclass(eq=False)
class SharedBandTransfer:
    """A transfer in a dynamically shared band; it is not scheduled while its link is out of sync.

    Args:
        flow: arguments of `SharedBand.add`, with the SNR at the round's opening, see `Link.flow`.
        until: returns an event at the start of a slot.
        on_block: converts an SNR on the whole band to the SNR at full power and to the highest SNR on one block.
    """

    band: BandInUse
    flow: dict[str, Any]
    until: Callable[[int], simpy.Event]
    on_block: Callable[[float], tuple[float, float]]
    _moved_bits: float = 0.0
    _end: simpy.Event | None = None
    _on: list[tuple[float, float]] = field(default_factory=list)

    @property
    def _left_bits(self) -> float:
        left_bits: float = self.flow["payload_bits"] - self._moved_bits
        return left_bits

    def go(self, slot: int, snr: float, until: int | None) -> Generator[simpy.Event, Any, int | None]:
        full_snr, most_snr = self.on_block(snr)
        with refused("radio"):
            if self._end is None:
                now = {"payload_bits": self._left_bits, "snr_whole_band": full_snr, "most_snr": most_snr}
                self._end = self.band.begin(**self.flow | now, slot=slot)
            else:
                self.band.change(self.flow["id_"], full_snr, slot, most_snr)
        if until is None:
            return cast(int, (yield self._end))
        if not self._end.triggered:
            yield self._end | self.until(until)
        if not self._end.triggered:
            # the band's event at this time may still be pending
            self.band.catch_up(until)
        return cast(int, self._end.value) if self._end.triggered else None

    def pause(self, slot: int) -> None:
        if self._end is not None:
            self._moved_bits += self.band.cut_off(self.flow["id_"], self._left_bits, slot)
            self._end = None
            self._on.append(self.band.band.sent_by(self.flow["id_"]))

    def bits(self, slot: int) -> int:
        self.pause(slot)
        return int(self._moved_bits)

    def sent(self) -> tuple[float, float]:
        """Return the number of slots in which a transfer had blocks, and its mean share of full power in them."""
        if self._end is not None:  # the transfer ended without a pause
            self._on.append(self.band.band.sent_by(self.flow["id_"]))
        on, at_power = (math.fsum(of) for of in zip(*self._on, strict=True)) if self._on else (0.0, 0.0)
        return on, at_power / on if on else 0.0


@dataclass(eq=False)
class MonitoredTransfer:
    """A transfer on a monitored link; it proceeds between measurements, stalls while out of sync, and may fail.

    Args:
        snr: returns the link's mean SNR now, on the whole band with full power.
        known_snr: returns the same value as `snr`, or None if the link has not yet been measured at this time.
        sync_snr: converts the SNR on the whole band to the mean SNR over fading on the link's share.
        lowest_snr: SNR below which the link is out of sync.
    """

    air: AirInterface
    transfer: ProgressiveTransfer
    snr: Callable[[], float]
    known_snr: Callable[[], float | None]
    sync_snr: Callable[[float], float]
    lowest_snr: float
    _over: bool = False
    # first and last slot boundary of each period out of sync; the last boundary is None until the period ends
    _stalls: list[tuple[int, int | None]] = field(default_factory=list)
    _seen: tuple[int, float, bool] = -1, 0.0, False  # slot, SNR, whether in sync

    def stalls_s(self, end_s: float) -> list[tuple[float, float]]:
        """Return the start and end times of each stall of a transfer that ended at end_s."""
        slot_s = self.air.slot_s
        return [
            (since * slot_s, end_s if until is None else min(end_s, until * slot_s))
            for since, until in self._stalls
        ]

    def expect(self, slot: int) -> None:
        """Register the piece of the transfer that begins at a slot boundary, for the batch of such pieces."""
        if isinstance(self.transfer, FixedShareTransfer):
            self.air.pieces.expect(slot, self)

    def give_up(self) -> None:
        """Announce that the transfer will not continue at a later slot."""
        self._over = True

    def next_piece(self, slot: int) -> tuple[ChangingFlow, float] | None:
        if self._over or not isinstance(self.transfer, FixedShareTransfer):
            return None
        snr = self.known_snr()
        return None if snr is None or not self._see(slot, snr) else self.transfer.piece(snr)

    def _see(self, slot: int, snr: float) -> bool:
        """Return whether the link is in sync now, at a slot boundary, and cache its SNR."""
        in_sync = self.air.monitoring.t310 is None or self.sync_snr(snr) >= self.lowest_snr
        self._seen = slot, snr, in_sync
        return in_sync

    def run(self, slot: int) -> Generator[simpy.Event, Any, tuple[int, Cause | None]]:
        """Transfer the payload from the current slot on; return the end slot, and the cause if it was cut off."""
        try:
            return (yield from self._run(slot))
        finally:
            self.give_up()

    def _run(self, slot: int) -> Generator[simpy.Event, Any, tuple[int, Cause | None]]:
        rules, lost = self.air.monitoring, None
        while True:
            measurement = rules.next_measurement(slot)
            if self._seen[0] != slot:
                self._see(slot, self.snr())
            _, snr, in_sync = self._seen
            if in_sync:
                if lost is not None:
                    self._stalls[-1] = lost, slot
                lost = None
                assert measurement is not None  # a link that is never measured stays in or out of sync
                self.air.pieces.begin(slot, measurement)
                self.expect(measurement)
                end = yield from self.transfer.go(slot, snr, measurement)
                if end is not None:
                    return end, None
                slot = measurement
                continue
            if lost is None:
                lost = slot
                self._stalls.append((slot, None))
                self.transfer.pause(slot)
            assert rules.t310 is not None  # without T310, every link counts as in sync
            fails = lost + rules.t310
            slot = fails if measurement is None else min(fails, measurement)
            yield self.air.until(slot)
            if slot == fails:
                return slot, Cause.RADIO_LINK_FAILURE
