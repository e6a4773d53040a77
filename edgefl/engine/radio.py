"""The radio: links of a round, and transfers as one event each."""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import simpy

from channel.carrier import Carrier
from channel.fading import LinkFading, slot_correlation
from channel.many import slots_of_many
from channel.schedulers import Flows, Scheduler
from channel.share import mean_snr
from channel.shared_band import SharedBand
from channel.tdd import Direction
from channel.transfer import Flow
from channel.units import FloatArray, db_to_linear, dbm_to_watt
from edgefl.engine.band import BandInUse
from edgefl.engine.efficiency import Efficiency
from edgefl.engine.gains import Gains, RoundKey, Survey
from edgefl.engine.parts import Cause, Span
from edgefl.engine.settings import RadioSettings
from edgefl.errors import refused
from edgefl.rng import Streams

# A stage that ended at a slot boundary may read the clock one rounding below it.
SLOT_TOLERANCE = 1e-6
# Links whose drawn slots are kept, some 50 KB each. Fading is a function of time: a dropped one comes back.
LINKS_KEPT = 4096
DIRECTIONS: tuple[Direction, Direction] = ("downlink", "uplink")


@dataclass(frozen=True)
class Link:
    """A device's large-scale SNR and its share of the band, both held for one round."""

    device: int
    cell: int
    fading: LinkFading
    snr: dict[Direction, float]  # with full power over the whole band
    share: dict[Direction, float]  # of the band; not used where the band is shared dynamically


@dataclass(frozen=True)
class Links:
    """The links of n devices, [n] each; iterating gives one `Link` after the other."""

    devices: Sequence[int]
    cells: Sequence[int]
    fading: Sequence[LinkFading]
    snr: dict[Direction, FloatArray]
    share: dict[Direction, FloatArray]

    def __len__(self) -> int:
        return len(self.devices)

    def __iter__(self) -> Iterator[Link]:
        for i, (device, cell, fading) in enumerate(zip(self.devices, self.cells, self.fading, strict=True)):
            snr = {d: float(self.snr[d][i]) for d in DIRECTIONS}
            share = {d: float(self.share[d][i]) for d in DIRECTIONS}
            yield Link(device, cell, fading, snr, share)


@dataclass(frozen=True)
class Transfers:
    """Transfers of n links that nothing cuts off, [n] each; clock_s: SimPy's time at their ends."""

    start_s: FloatArray
    end_s: FloatArray
    airtime_s: FloatArray
    clock_s: FloatArray


class Transfer(NamedTuple):
    """A transfer that has ended or was cut off: bits moved, and time for which the radio was on."""

    start_s: float
    end_s: float
    bits: int
    airtime_s: float
    cut: Cause | None = None

    def span(self, energy_j: float) -> Span:
        """Return the transfer as an activity of a device that cost this energy."""
        return Span(self.start_s, self.end_s, energy_j, self.bits, cut=self.cut)


class Radio:
    """The radio of all cells: how long transfers between base stations and devices take.

    The large-scale gain is held for a round, fading is a function of link and slot. A device's downlink and
    uplink follow one another (J's intervals), or take the slots that a TDD frame gives each direction; its
    radio is on in these, while its transfer lasts. Devices of a cell do not interfere with one another.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        settings: RadioSettings,
        device_power_w: float,
        speeds_m_s: np.ndarray,
        gains: Gains,
        streams: Streams,
    ) -> None:
        self.env = env
        server_power_w = dbm_to_watt(settings.server_power_dbm)
        self.server_draw_w = server_power_w / settings.server_pa_efficiency
        self._settings = settings
        self.dynamic = settings.sharing == "dynamic"
        self._scheduler: Scheduler = settings.scheduler
        self._power_w = {"downlink": server_power_w, "uplink": device_power_w}
        self._noise_psd_w_hz = dbm_to_watt(settings.noise_dbm_hz)
        self._gains = gains
        self._fading_key = streams.key("fading")
        self._correlations = [
            slot_correlation(float(speed), carrier_hz=settings.carrier_hz, slot_s=settings.slot_s)
            for speed in speeds_m_s
        ]
        pattern = settings.tdd.pattern_of() if settings.tdd else None
        self._carriers = {
            d: Carrier(
                settings.bandwidth_hz,
                settings.slot_s,
                weights=pattern.weights(d) if pattern else None,
                cap=settings.max_efficiency,
                power=settings.power_over_share,
            )
            for d in DIRECTIONS
        }
        self.efficiency = Efficiency(
            settings.bandwidth_hz, {d: self.on_share(d) for d in DIRECTIONS}, self.dynamic
        )
        self.fading = lru_cache(maxsize=LINKS_KEPT)(self._fading)
        self._bands: dict[tuple[int, Direction], BandInUse] = {}

    def on_share(self, direction: Direction) -> float:
        """Return the share of a transfer's time in which its radio is on: 1, or the TDD frame's share."""
        return self._carriers[direction].frame.mean

    def survey(self, positions_m: np.ndarray, ids: Sequence[int], cell: int, key: RoundKey) -> Survey:
        """Survey the links of these devices to the cell's site in the round named by key."""
        return self._gains.of_round(positions_m, ids, cell, key)

    def open_round(self, survey: Survey, cell: int, payload_bits: dict[Direction, Sequence[int]]) -> Links:
        """Make the links of a round's participants, who share the cell's band.

        Args:
            payload_bits: direction -> bits of each participant.
        """
        cells, snr = [cell] * len(survey.ids), self.snr(survey)
        fading = [self.fading(device, cell) for device in survey.ids]
        shares = dict.fromkeys(DIRECTIONS, np.ones(len(fading)))
        if not self.dynamic:
            static = np.array([link.static for link in fading])
            power = np.ones(len(fading))
            for i in np.flatnonzero(static).tolist():
                power[i] = fading[i].power(0, 1)[0]
            shares = {d: self._static_shares(d, snr[d] * power, static, payload_bits[d]) for d in DIRECTIONS}
        return Links(survey.ids, cells, fading, snr, shares)

    def snr(self, survey: Survey) -> dict[Direction, np.ndarray]:
        """Return [devices] the mean SNR in each direction, with full power over the whole band."""
        settings = self._settings
        floor_w = self._noise_psd_w_hz * settings.bandwidth_hz * db_to_linear(settings.noise_figure_db)
        # neighbours send at full power in neighbour_load of their slots: on average, noise rises by this factor
        rise = 1.0 + settings.neighbour_load * self._power_w["downlink"] * survey.others / floor_w
        rises_db = {"downlink": 10.0 * np.log10(rise), "uplink": np.zeros(len(rise))}
        return {
            d: mean_snr(
                self._power_w[d],
                db_to_linear(survey.gains_db),
                self._noise_psd_w_hz,
                settings.bandwidth_hz,
                noise_figure_db=settings.noise_figure_db,
                interference_margin_db=settings.interference_margin_db + rises_db[d],
            )
            for d in DIRECTIONS
        }

    def links(
        self,
        survey: Survey,
        cells: Sequence[int],
        snr: dict[Direction, FloatArray],
        shares: dict[Direction, FloatArray],
    ) -> Links:
        """Make links of devices to their cells' sites, with given SNR and shares of the band."""
        fading = [self.fading(device, cell) for device, cell in zip(survey.ids, cells, strict=True)]
        return Links(survey.ids, cells, fading, snr, shares)

    def transfer(
        self, link: Link, direction: Direction, payload_bits: int
    ) -> Generator[simpy.Event, None, Transfer]:
        """Move payload_bits from the next slot on; an interrupt with a Cause cuts the transfer off."""
        slot_s = self._settings.slot_s
        first_slot = self.next_slot(self.env.now)
        start_s = first_slot * slot_s
        joined = False
        try:
            yield self.env.timeout(max(0.0, start_s - self.env.now))
            joined = True
            if self.dynamic:
                with refused("radio"):
                    end_slot = yield from self._band(link.cell, direction).move(
                        link.device,
                        payload_bits,
                        snr_whole_band=link.snr[direction],
                        fading=link.fading,
                        slot=first_slot,
                    )
            else:
                end_slot = first_slot + self._static_slots(link, direction, payload_bits, first_slot)
                yield self.env.timeout(max(0.0, end_slot * slot_s - self.env.now))
        except simpy.Interrupt as interrupt:
            # only whole slots have moved bits; the power was spent until the very end
            end_s = max(self.env.now, start_s)
            slots = int((end_s - start_s) / slot_s + SLOT_TOLERANCE)
            bits = self._bits_until_now(link, direction, payload_bits, first_slot, slots) if joined else 0
            airtime_s = self._airtime_s(direction, first_slot, end_s - start_s)
            return Transfer(start_s, end_s, bits, airtime_s, interrupt.cause)
        end_s = end_slot * slot_s
        return Transfer(start_s, end_s, payload_bits, self._airtime_s(direction, first_slot, end_s - start_s))

    def transfers(
        self, links: Links, direction: Direction, payload_bits: Sequence[int], from_s: FloatArray
    ) -> Transfers:
        """Time transfers on static shares that nothing cuts off.

        Args:
            payload_bits: of each link.
            from_s: [links] when each may begin.
        """
        slot_s = self._settings.slot_s
        first_slots = np.ceil(from_s / slot_s - SLOT_TOLERANCE).astype(np.int64)
        start_s = first_slots * np.float64(slot_s)
        end_s = (first_slots + self._slots(links, direction, payload_bits, first_slots)) * np.float64(slot_s)
        # the clock reaches a time by waiting for it from where it stands, which may round
        begun_s = from_s + np.maximum(0.0, start_s - from_s)
        clock_s = begun_s + np.maximum(0.0, end_s - begun_s)
        airtime_s = end_s - start_s
        if not self._carriers[direction].frame.plain:
            slots_and_times = zip(first_slots.tolist(), airtime_s.tolist(), strict=True)
            airtime_s = np.array([self._airtime_s(direction, *each) for each in slots_and_times])
        return Transfers(start_s, end_s, airtime_s, clock_s)

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
        share, snr = links.share[direction][busy], links.snr[direction][busy]
        slots = np.zeros(len(links), np.int64)
        with refused("radio"):
            slots[busy] = slots_of_many(
                carrier,
                bits[busy],
                share=share,
                snr=carrier.share_snr(share, snr),
                fading=[links.fading[i] for i in busy.tolist()],
                first_slot=first_slots[busy],
                direction=direction,
                fidelity=self._settings.fidelity,
            )
        return slots

    def next_slot(self, time_s: float) -> int:
        """Return the first slot that begins no earlier than a time."""
        return math.ceil(time_s / self._settings.slot_s - SLOT_TOLERANCE)

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

    def _fading(self, device: int, cell: int) -> LinkFading:
        """Make the fading of the link between a device and a cell's site."""
        # any change of its key gives Philox an independent stream
        return LinkFading(self._fading_key ^ (device << 64 | cell), self._correlations[device])

    def _static_shares(
        self, direction: Direction, snr: np.ndarray, static: np.ndarray, payload_bits: Sequence[int]
    ) -> np.ndarray:
        bits = np.asarray(payload_bits, dtype=float)
        busy, shares = bits > 0, np.zeros(len(bits))
        if busy.any():  # who has nothing to move needs no share, and schedulers expect bits to move
            carrier = self._carriers[direction]
            with refused("radio"):
                shares[busy] = self._scheduler.shares(
                    Flows(carrier, snr=snr[busy], remaining_bits=bits[busy], static=static[busy])
                )
        return shares

    def _flow(self, link: Link, direction: Direction, first_slot: int) -> Flow:
        """Make the flow of a link, on its share of the band, from a slot on."""
        carrier, share = self._carriers[direction], link.share[direction]
        return Flow(
            carrier.part(share),
            float(carrier.share_snr(share, link.snr[direction])),
            link.fading,
            first_slot,
            direction,
            self._settings.fidelity,
        )

    def _static_slots(self, link: Link, direction: Direction, payload_bits: int, first_slot: int) -> int:
        if not payload_bits:
            return 0
        with refused("radio"):
            return self._flow(link, direction, first_slot).slots(payload_bits)

    def _band(self, cell: int, direction: Direction) -> BandInUse:
        if (cell, direction) not in self._bands:
            band = SharedBand(self._scheduler, self._carriers[direction])
            self._bands[cell, direction] = BandInUse(self.env, band, self._settings.slot_s)
        return self._bands[cell, direction]

    def _airtime_s(self, direction: Direction, first_slot: int, elapsed_s: float) -> float:
        """Return how long a transfer's radio is on: in a TDD frame, only in the slots of its direction."""
        frame = self._carriers[direction].frame
        if frame.plain:
            return elapsed_s
        slot_s = self._settings.slot_s
        whole = int(elapsed_s / slot_s + SLOT_TOLERANCE)
        rest_s = max(0.0, elapsed_s - whole * slot_s)
        return frame.airtime(first_slot, whole) * slot_s + rest_s * float(
            frame.weights_from(first_slot + whole, 1)[0]
        )
