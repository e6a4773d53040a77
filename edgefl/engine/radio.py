"""The radio: links of a round, and transfers as one event each."""

import math
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import simpy

from channel.carrier import Carrier
from channel.fading import LinkFading, slot_correlation
from channel.many import slots_of_many
from channel.schedulers import Flows, Scheduler
from channel.share import mean_snr
from channel.shared_band import SharedBand
from channel.tdd import Direction, OnTime, rounding_s
from channel.transfer import Flow
from channel.units import FloatArray, db_to_linear, dbm_to_watt
from edgefl.engine.band import BandInUse
from edgefl.engine.efficiency import Efficiency
from edgefl.engine.gains import Gains, RoundKey, Survey
from edgefl.engine.links import DIRECTIONS, Link, Links, Transfer, Transfers
from edgefl.engine.parts import Span
from edgefl.engine.records import total
from edgefl.engine.regime import RenewalRegime
from edgefl.engine.settings import RadioSettings
from edgefl.errors import refused
from edgefl.rng import Streams

# Links whose drawn slots are kept, some 50 KB each. Fading is a function of time: a dropped one comes back.
LINKS_KEPT = 4096


class Radio:
    """The radio of all cells: how long transfers between base stations and devices take.

    The large-scale gain is held for a round, fading is a function of link and slot. A device's downlink and
    uplink follow one another (J's intervals), or take the slots that a TDD frame gives each direction; its
    radio is on in these, while its transfer lasts. Devices of a cell do not interfere with one another.

    What the server sends follows `power_over_share`: with `full` every downlink's share is sent with its full
    power, K shares with K times as much; `per_resource_block` is one full power over the whole band, for as
    long as any downlink lasts. The other sites do as this cell does: in `neighbour_load` of their slots they
    send as many shares as this cell's round has downlinks, or as the dynamically shared band has just then.

    Args:
        device_power_w: [devices] what each radiates while it sends, or one for all.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        settings: RadioSettings,
        device_power_w: float | FloatArray,
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
        self._server_power_w = server_power_w
        self._device_power_w = np.broadcast_to(device_power_w, len(speeds_m_s))
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
        on_shares = {direction: carrier.frame.mean for direction, carrier in self._carriers.items()}
        self.efficiency = Efficiency(settings.bandwidth_hz, on_shares, self.dynamic)
        self.fading = lru_cache(maxsize=LINKS_KEPT)(self._fading)
        self.regime = RenewalRegime()
        self._bands: dict[tuple[int, Direction], BandInUse] = {}

    def survey(self, positions_m: np.ndarray, ids: Sequence[int], cell: int, key: RoundKey) -> Survey:
        """Survey the links of these devices to the cell's site in the round named by key."""
        return self._gains.of_round(positions_m, ids, cell, key)

    def open_round(self, survey: Survey, cell: int, payload_bits: dict[Direction, Sequence[int]]) -> Links:
        """Make the links of a round's participants, who share the cell's band.

        Args:
            payload_bits: direction -> bits of each participant.
        """
        full = self._settings.power_over_share == "full"
        # in a dynamic band the neighbours' shares come and go as this cell's do, and the band counts them
        counted = full and self.dynamic
        sent = int(np.count_nonzero(payload_bits["downlink"])) if full else 1
        cells, snr = [cell] * len(survey.ids), self.snr(survey, 0 if counted else sent)
        neighbours = self._rise(survey) if counted else np.zeros(len(survey.ids))
        fading = [self.fading(device, cell) for device in survey.ids]
        shares = dict.fromkeys(DIRECTIONS, np.ones(len(fading)))
        if not self.dynamic:
            static = np.array([link.static for link in fading])
            power = np.ones(len(fading))
            for i in np.flatnonzero(static).tolist():
                power[i] = fading[i].power(0, 1)[0]
            shares = {d: self._static_shares(d, snr[d] * power, static, payload_bits[d]) for d in DIRECTIONS}
        return Links(survey.ids, cells, fading, snr, shares, neighbours)

    def snr(self, survey: Survey, neighbours: int = 1) -> dict[Direction, np.ndarray]:
        """Return [devices] the mean SNR in each direction, with full power over the whole band.

        Args:
            neighbours: shares that each of the other sites sends at once, with full power each.
        """
        settings = self._settings
        # on average, noise rises by this factor
        rise = 1.0 + neighbours * self._rise(survey)
        uplink_w = self._device_power_w[np.asarray(survey.ids, dtype=np.intp)]
        power_w = {"downlink": np.full(len(rise), self._server_power_w), "uplink": uplink_w}
        rises_db = {"downlink": 10.0 * np.log10(rise), "uplink": np.zeros(len(rise))}
        return {
            d: mean_snr(
                power_w[d],
                db_to_linear(survey.gains_db),
                self._noise_psd_w_hz,
                settings.bandwidth_hz,
                noise_figure_db=settings.noise_figure_db,
                interference_margin_db=settings.interference_margin_db + rises_db[d],
            )
            for d in DIRECTIONS
        }

    def mean_sinr(self, survey: Survey) -> FloatArray:
        """Return [devices] the mean SINR of downlinks with full power over the whole band, for maps."""
        return self.snr(survey)["downlink"]

    def links(
        self,
        survey: Survey,
        cells: Sequence[int],
        snr: dict[Direction, FloatArray],
        shares: dict[Direction, FloatArray],
    ) -> Links:
        """Make links of devices to their cells' sites, with given SNR and shares of the band."""
        fading = [self.fading(device, cell) for device, cell in zip(survey.ids, cells, strict=True)]
        return Links(survey.ids, cells, fading, snr, shares, np.zeros(len(fading)))

    def server_energy_j(self, cell: int, downlinks: Sequence[Span]) -> float:
        """Return what the server of a cell drew for the downlinks of a round that is over.

        They begin together. In a dynamic band it is the shares in use, in whole slots.
        """
        airtimes_s = [span.airtime_s for span in downlinks]
        if self._settings.power_over_share == "per_resource_block":
            sent_s = max(airtimes_s)
        elif self.dynamic:
            sent_s = self._band(cell, "downlink").take_sent_slots() * self._settings.slot_s
        else:
            sent_s = total(airtimes_s)
        return self.server_draw_w * sent_s

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
        try:
            if self.dynamic:
                with refused("radio"):
                    end_slot = yield from self._band(link.cell, direction).move(
                        link.device,
                        payload_bits,
                        snr_whole_band=link.snr[direction],
                        neighbours=link.neighbours if direction == "downlink" else 0.0,
                        fading=link.fading,
                        slot=first_slot,
                    )
            else:
                end_slot = first_slot + self._static_slots(link, direction, payload_bits, first_slot)
                yield self.env.timeout(max(0.0, end_slot * slot_s - self.env.now))
        except simpy.Interrupt as interrupt:
            # only whole slots have moved bits; the power was spent until the very end
            end_s = max(self.env.now, start_s)
            slots = on.place(end_s)[0] - first_slot
            bits = self._bits_until_now(link, direction, payload_bits, first_slot, slots)
            return Transfer(start_s, end_s, bits, _airtime_s(on, start_s, end_s), interrupt.cause)
        end_s = end_slot * slot_s
        return Transfer(start_s, end_s, payload_bits, _airtime_s(on, start_s, end_s))

    def transfers(
        self, links: Links, direction: Direction, payload_bits: Sequence[int], from_s: FloatArray
    ) -> Transfers:
        """Time transfers on static shares that nothing cuts off.

        Args:
            payload_bits: of each link.
            from_s: [links] when each may begin.
        """
        slot_s = self._settings.slot_s
        first_slots = np.array([self.next_slot(time_s) for time_s in from_s.tolist()], np.int64)
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

    def next_slot(self, time_s: float) -> int:
        """Return the first slot that begins no earlier than a time."""
        return math.ceil((time_s - rounding_s(time_s)) / self._settings.slot_s)

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

    def _rise(self, survey: Survey) -> np.ndarray:
        """Return [devices] how much one share of full power at all other sites adds to the downlink's noise."""
        settings = self._settings
        floor_w = self._noise_psd_w_hz * settings.bandwidth_hz * db_to_linear(settings.noise_figure_db)
        rise: np.ndarray = settings.neighbour_load * self._server_power_w * survey.others / floor_w
        return rise

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
