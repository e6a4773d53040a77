"""Transfers whose gain is read anew while they last, and that are given up below the lowest rate."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import simpy

from channel.carrier import Carrier
from channel.changing_flow import ChangingFlow
from channel.fading import Fading
from channel.modulation import EFFICIENCIES, snr_needed
from channel.tdd import Direction, rounding_s
from channel.units import FloatArray, Values
from edgefl.engine.band import BandInUse
from edgefl.engine.parts import Cause
from edgefl.engine.radio_settings import RadioSettings
from edgefl.errors import refused

Snr = dict[Direction, FloatArray]


class Readings:
    """The mean SNR of a round's links, read anew for those with a transfer under way.

    All of them are read when the first asks at a time. A device that is absent keeps what was read last.

    Args:
        ids: of the round's devices, ascending.
        snr: [devices] of the round's start.
        read: called with this, to read those that are due and hand over what they have.
        under_way: called with this, and whether any transfer is under way, when that changes.
    """

    def __init__(
        self,
        env: simpy.Environment,
        ids: Sequence[int],
        snr: Snr,
        read: Callable[["Readings"], None],
        under_way: Callable[["Readings", bool], None],
    ) -> None:
        self._env = env
        self.ids = np.asarray(ids)
        self._snr = {direction: values.copy() for direction, values in snr.items()}
        self._read = read
        self._under_way = under_way
        self._read_s = np.full(len(self.ids), float(env.now))
        self._active: set[int] = set()

    def begin(self, device: int) -> None:
        """Note that a transfer of a device is under way."""
        self._active.add(device)
        self._under_way(self, True)

    def end(self, device: int) -> None:
        """Note that a transfer of a device is over."""
        self._active.discard(device)
        if not self._active:
            self._under_way(self, False)

    def snr(self, device: int, direction: Direction) -> float:
        """Return the mean SNR of a device's link now, with full power over the whole band."""
        row = int(np.searchsorted(self.ids, device))
        if not self._read_now(self._read_s[row]):
            self._read(self)
        return float(self._snr[direction][row])

    def due(self, positions_m: FloatArray) -> npt.NDArray[np.intp]:
        """Return the rows of the links to be read now: with a transfer under way, not read yet at this time.

        From now on they count as read. Those of absent devices are left out: they have what was read last.

        Args:
            positions_m: [all devices, 2] now, nan: absent.
        """
        rows = np.searchsorted(self.ids, sorted(self._active))
        rows = rows[~self._read_now(self._read_s[rows])]
        self._read_s[rows] = self._env.now
        return rows[np.isfinite(positions_m[self.ids[rows], 0])]

    def take(self, rows: npt.NDArray[np.intp], snr: Snr) -> None:
        """Take what was read just now."""
        for direction, values in snr.items():
            self._snr[direction][rows] = values

    def _read_now(self, read_s: Values) -> Any:
        # a clock that adds up waits may come to one time in two ways
        return self._env.now - read_s <= rounding_s(self._env.now)


class Rules:
    """When gains are read, and when a link is given up, in slots.

    A link is out of sync while its mean SNR, over fading, is below what CQI 1 needs: nothing is sent on it. It
    fails when that has lasted for T310; before, it goes on as if nothing had been. What then happens is in
    `edgefl.engine.reestablishment`. 3GPP counts N310 indications of
    a hypothetical control channel's block errors in the downlink first; here both directions are measured, and the
    uplink's failure stands for the last retransmission of its link layer. Leaving this out, a device at -20 dB
    "transfers" for minutes and a round waits for it.

    Source: 3GPP TS 38.331, 5.3.10; TS 38.133, 8.1. Left out: N310, N311, Qin above Qout.

    Args:
        interval_s: between two readings of a gain; None: never.
    """

    def __init__(self, settings: RadioSettings, interval_s: float | None) -> None:
        self.slot_s = settings.slot_s
        self.interval = None if interval_s is None else max(1, round(interval_s / settings.slot_s))
        self.t310: int | None = None
        self.t311 = round(settings.t311_s / settings.slot_s)
        self.reestablishment = max(1, round(settings.reestablishment_s / settings.slot_s))
        self.lowest_snr = 0.0
        if settings.t310_s is not None:
            self.t310 = max(1, round(settings.t310_s / settings.slot_s))
            self.lowest_snr = float(snr_needed(EFFICIENCIES[0], settings.snr_gap_db))

    def reads_at(self, time_s: float) -> bool:
        """Whether all gains are read at this time."""
        slot = round(time_s / self.slot_s)
        if self.interval is None or slot % self.interval:
            return False
        return abs(slot * self.slot_s - time_s) <= rounding_s(time_s)

    def next_reading(self, slot: int) -> int | None:
        """Return the first slot after one before which gains are read; None: they never are."""
        return None if self.interval is None else slot - slot % self.interval + self.interval


class Track(Protocol):
    """The bits of one transfer, while the link is in sync."""

    def go(self, slot: int, snr: float, until: int) -> Generator[simpy.Event, Any, int | None]:
        """Move bits from a slot on, at a mean SNR; return the boundary at which all have arrived, if by `until`."""

    def pause(self, slot: int) -> None:
        """Move nothing from a slot on."""

    def bits(self, slot: int) -> int:
        """Return the bits moved up to a slot, at which the transfer is over."""


class OwnShare:
    """A transfer on a share of the band of its own."""

    def __init__(
        self, env: simpy.Environment, carrier: Carrier, share: float, fading: Fading, bits: int, slot: int
    ) -> None:
        self._env = env
        self._carrier = carrier
        self._share = share
        self._slot_s = carrier.slot_s
        self._flow = ChangingFlow(carrier.part(share), fading, bits, slot)

    def go(self, slot: int, snr: float, until: int) -> Generator[simpy.Event, Any, int | None]:
        end = self._flow.end(slot, float(self._carrier.share_snr(self._share, snr)), until)
        yield self._env.timeout(max(0.0, (until if end is None else end) * self._slot_s - self._env.now))
        return end

    def pause(self, slot: int) -> None:
        self._flow.settle(slot)

    def bits(self, slot: int) -> int:
        self._flow.settle(slot)
        return int(self._flow.bits)


class InTheBand:
    """A transfer in a band that is shared dynamically; while it is out of sync, it is not scheduled."""

    def __init__(
        self, band: BandInUse, device: int, fading: Fading, bits: int, neighbours: float, slot_s: float
    ) -> None:
        self._band = band
        self._device = device
        self._fading = fading
        self._payload_bits = bits
        self._moved_bits = 0.0
        self._neighbours = neighbours
        self._slot_s = slot_s
        self._end: simpy.Event | None = None

    def go(self, slot: int, snr: float, until: int) -> Generator[simpy.Event, Any, int | None]:
        with refused("radio"):
            if self._end is None:
                self._end = self._band.begin(
                    self._device,
                    self._payload_bits - self._moved_bits,
                    snr_whole_band=snr,
                    fading=self._fading,
                    slot=slot,
                    neighbours=self._neighbours,
                )
            else:
                self._band.change(self._device, snr, slot)
        env = self._band.env
        if not self._end.triggered:
            yield self._end | env.timeout(max(0.0, until * self._slot_s - env.now))
        if not self._end.triggered:
            # of the events at this time the band's may come later
            self._band.catch_up(until)
        return cast(int, self._end.value) if self._end.triggered else None

    def pause(self, slot: int) -> None:
        if self._end is not None:
            left_bits = self._payload_bits - self._moved_bits
            self._moved_bits += self._band.cut_off(self._device, left_bits, slot)
            self._end = None

    def bits(self, slot: int) -> int:
        self.pause(slot)
        return int(self._moved_bits)


class Moving:
    """One transfer: it goes on from reading to reading, stalls out of sync, and fails after T310."""

    def __init__(
        self,
        env: simpy.Environment,
        rules: Rules,
        track: Track,
        snr: Callable[[], float],
        sync_snr: Callable[[float], float],
    ) -> None:
        """
        Args:
            snr: the link's mean SNR now, on the whole band with full power.
            sync_snr: that SNR -> the mean over fading on the link's share.
        """
        self._env = env
        self._rules = rules
        self._snr = snr
        self._sync_snr = sync_snr
        self.bits = track.bits
        self._track = track
        self._stalls: list[tuple[int, int | None]] = []  # slots without a link, None: still

    def stalls_s(self, end_s: float) -> list[tuple[float, float]]:
        """Return from when until when the link carried nothing, in a transfer that is over at a time."""
        slot_s = self._rules.slot_s
        return [
            (since * slot_s, end_s if until is None else min(end_s, until * slot_s))
            for since, until in self._stalls
        ]

    def run(self, slot: int) -> Generator[simpy.Event, Any, tuple[int, Cause | None]]:
        """Move the payload from a slot on, which is now; return where it ended, and why if not with the last bit."""
        rules, lost = self._rules, None
        while True:
            snr, reading = self._snr(), rules.next_reading(slot)
            if rules.t310 is None or self._sync_snr(snr) >= rules.lowest_snr:
                if lost is not None:
                    self._stalls[-1] = lost, slot
                lost = None
                assert reading is not None  # a link that nobody reads is in sync throughout, or never
                end = yield from self._track.go(slot, snr, reading)
                if end is not None:
                    return end, None
                slot = reading
                continue
            if lost is None:
                lost = slot
                self._stalls.append((slot, None))
                self._track.pause(slot)
            fails = lost + rules.t310
            slot = fails if reading is None else min(fails, reading)
            yield self._env.timeout(max(0.0, slot * rules.slot_s - self._env.now))
            if slot == fails:
                return slot, Cause.RADIO_LINK_FAILURE
