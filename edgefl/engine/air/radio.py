"""The radio of all cells, which opens rounds with links to the participants."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial

import numpy as np
import simpy

from edgefl.channel.band_slots import Groups
from edgefl.channel.diversity import fading_in_parts
from edgefl.channel.fading import Fading, slot_correlation, slot_turn
from edgefl.channel.many_links import static_power
from edgefl.channel.schedulers import BoolArray, Flows
from edgefl.channel.share import limited_shares
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.config.answers import must_be_shaped
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.broadcast import Broadcast
from edgefl.engine.air.budget import Budget, carriers_of
from edgefl.engine.air.channel_reports import ChannelReports, GainReader, Snr
from edgefl.engine.air.coverage import Coverage
from edgefl.engine.air.efficiency import Efficiency
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState
from edgefl.engine.air.links import DIRECTIONS, Links, Prospect
from edgefl.engine.air.measurements import Survey
from edgefl.engine.air.radio_link_monitoring import RadioLinkMonitoring
from edgefl.engine.air.radio_round import Link, RadioRound
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.air.slot_interference import SlotInterference
from edgefl.errors import refused
from edgefl.rng import Streams

# number of links with cached fading, some 50 KB each; fading is a function of time, so an evicted link can be redrawn
LINKS_KEPT = 4096


class Radio:
    """The radio of all cells, with the links between base stations and devices.

    The large-scale gain is fixed for a round, or measured during transfers; fading is a function of link and slot. A
    device's downlink and uplink alternate in the journal's intervals, or use different slots of a TDD frame; during a
    transfer the radio is on in slots of the transfer's direction. Devices of a cell do not interfere with each other.

    The server's power follows `power_over_share`: with `full`, it sends the share of every downlink at full power, so
    K shares take K times the power; with `per_resource_block`, it spreads full power over the whole band while any
    downlink lasts. Other sites behave like a round's own cell: in a fraction `neighbour_load` of their slots, they
    send as many shares as the round has downlinks, or as the cell's dynamically shared band has at that time.

    Args:
        device_power_w, device_gain_db, device_bandwidth_hz: [devices] radiated power, antenna gain, and largest
            usable part of the band of each device, or one value for all.
        speeds_m_s: [devices] speeds that set the Doppler shift.
        reading_s: time between two measurements of a gain, if the settings enable them.
        groups: device groups that divide a dynamic band by weight; if None, the scheduler shares the whole band.

    Attributes:
        fading: (device, cell) -> fading of the link between the device and the cell's site.
        packet_errors: model of lost uploads, or None if all uploads arrive.
        gains: large-scale gains of the links. budget: link budget, which computes the SNR.
        at_work: returns the devices of a cell that are taking part in a round; by default none.
    """

    def __init__(
        self,
        env: simpy.Environment,
        *,
        settings: RadioSettings,
        device_power_w: float | FloatArray,
        device_gain_db: float | FloatArray = 0.0,
        device_bandwidth_hz: float | FloatArray = math.inf,
        speeds_m_s: np.ndarray,
        gains: LargeScaleGains,
        streams: Streams,
        reading_s: float = 0.2,
        groups: Groups | None = None,
    ) -> None:
        for speed in (speeds_m_s.min(), speeds_m_s.max()):  # raise an error if a device is too fast
            slot_turn(float(speed), carrier_hz=settings.carrier_hz, slot_s=settings.slot_s)
        self._settings = settings
        monitoring = RadioLinkMonitoring(
            settings, reading_s if settings.monitoring.gain_reading == "interval" else None
        )
        self.air = AirInterface(env, settings, carriers_of(settings), monitoring, groups=groups)
        on_shares = {direction: carrier.frame.mean for direction, carrier in self.air.carriers.items()}
        self.efficiency = Efficiency(settings.bandwidth_hz, on_shares, self.air.dynamic)
        fading = partial(_fading, settings, speeds_m_s, streams.key("fading"))
        self.fading = lru_cache(maxsize=LINKS_KEPT)(fading)
        self.packet_errors = settings.link.packet_errors
        self.gains = gains
        powers_w = np.broadcast_to(device_power_w, len(speeds_m_s))
        widths_hz = np.broadcast_to(device_bandwidth_hz, len(speeds_m_s))
        self._widest = np.minimum(1.0, widths_hz / settings.bandwidth_hz)  # share of the band
        self.budget = Budget(settings, powers_w, device_gain_db)
        self._interference = SlotInterference(settings.neighbour_load, self.budget, gains, streams)
        heard = self._interference.heard_by_devices
        self._reader = GainReader(env, monitoring, self.budget, gains, heard, self.air.dynamic)
        self.at_work: Callable[[int], Sequence[int]] = lambda _: ()

    @property
    def env(self) -> simpy.Environment:
        """The simulation clock."""
        return self.air.env

    @property
    def may_fail(self) -> bool:
        """Whether a link can fail."""
        return self.air.monitoring.t310 is not None

    def follow(
        self, positions_m: Callable[[], np.ndarray], survey: Callable[[bool], Survey | None] = lambda _: None
    ) -> None:
        """Set the source of device positions, and of measurements during transfers if the settings enable them.

        Args:
            positions_m: returns the current positions [devices, 2], nan for absent devices.
            survey: returns a survey of all cells, made now if its argument is True and otherwise at the last tick;
                None without measurements.
        """
        self._reader.positions_m, self._reader.survey = positions_m, survey

    def fading_now(self, ids: Sequence[int], cell: int, *, all_: bool) -> tuple[BoolArray, FloatArray]:
        """Return [ids] whether links to a cell's site are static, and their fading power (mean 1) in the next slot.

        Args:
            all_: whether to compute the power of links that are not static; if False, their power is returned as 1.
        """
        links, slot = [self.fading(device, cell) for device in ids], self.air.next_slot(self.env.now)
        static, held = static_power(links)
        return static, np.array([link.power(slot, 1)[0] for link in links]) if all_ else held

    def prospect(self, state: LargeScaleState, cell: int, sharing: int) -> Prospect:
        """Return what the links of a cell's next round are expected to be like.

        Args:
            sharing: number of devices that share the band equally, unless their radios are narrower.
        """
        settings = self._settings
        share = np.minimum(1.0 / sharing, self._widest[np.asarray(state.ids, dtype=np.intp)])
        # with full power on each share, other cells are assumed to send as many shares
        full = settings.budget.power_over_share == "full" and settings.downlink == "unicast"
        snr = self.budget.mean_snr(state, sharing if full else 1)
        if settings.by_slot:
            assert state.everywhere_m is not None  # the uplink's interference comes from devices of all cells
            heard = self._heard_share(1.0 / sharing)
            at_site = self._interference.mean_at_site(state.everywhere_m, cell, heard)
            snr = snr | {"uplink": snr["uplink"] / (1.0 + at_site)}
        return Prospect(snr, share, self.budget.uplink_power(state, share))

    def readings(
        self, places_m: np.ndarray, ids: np.ndarray, cells: np.ndarray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the current gain [n] in dB and mean downlink SINR [n] between places and cells' sites, for maps."""
        state = self.gains.of_links(places_m, ids, cells)
        return state.gains_db, self.budget.mean_snr(state, 1)["downlink"]

    @cached_property
    def coverage(self) -> Coverage | None:
        """The coverage check, or None if all devices always count as connected."""
        margin_db = self._settings.monitoring.coverage_margin_db
        if margin_db is None:
            return None
        at_sites = self._interference.mean_at_site if self._settings.by_slot else lambda *_: 0.0
        return Coverage(margin_db, self.budget, self.air.monitoring, self.gains, at_sites)

    def open_round(
        self,
        state: LargeScaleState,
        cell: int,
        payload_bits: dict[Direction, Sequence[int]],
        *,
        decided: Mapping[Direction, FloatArray] | None = None,
        power: FloatArray | None = None,
        lead_slots: int = 0,
    ) -> RadioRound:
        """Open a round of participants that share the cell's band.

        Args:
            payload_bits: direction -> bits that each participant transfers.
            lead_slots: number of slots to wait before a broadcast until all receivers listen.
            decided: direction -> shares of the band set by a decider; the scheduler sets the remaining shares.
            power: fraction of its maximum power that each device radiates; by default as set by power control, or 1
                without power control.
        """
        broadcasts = self._settings.downlink == "broadcast"
        full = self._settings.budget.power_over_share == "full"
        sent = int(np.count_nonzero(payload_bits["downlink"])) if full else 1
        sent = 0 if self._band_counts_neighbours else min(sent, 1) if broadcasts else sent
        fading = [self.fading(device, cell) for device in state.ids]
        widest = self._widest[np.asarray(state.ids, dtype=np.intp)]
        snr, shares = self.budget.snr(state, sent), dict.fromkeys(DIRECTIONS, widest)
        if not self.air.dynamic:
            static, held = self.fading_now(state.ids, cell, all_=False)
            unicast = DIRECTIONS[1:] if broadcasts else DIRECTIONS
            given = decided or {}
            shares |= {
                d: given[d] if d in given else self._shares(d, snr[d] * held, static, payload_bits[d])
                for d in unicast
            }
            if (widest < 1.0).any():
                shares |= {d: limited_shares(shares[d], widest) for d in unicast}
        opened = self._round(state, cell, sent, fading, snr, shares, power)
        if not broadcasts:
            return opened
        carrier = self.air.carriers["downlink"]
        broadcast = Broadcast.of_round(
            # a broadcast has no beamforming and a single layer
            replace(carrier, steps=carrier.steps and replace(carrier.steps, layers=1)),
            state.ids,
            opened.links.snr["downlink"] / self.budget.array_gain(state),
            opened.interfered("downlink") if opened.interfered else fading,
            payload_bits["downlink"],
            quantile=self._settings.broadcast_quantile,
            first_slot=self.air.next_slot(self.env.now) + lead_slots,
            lowest_snr=self.air.monitoring.lowest_snr["downlink"],
        )
        return replace(opened, broadcast=broadcast)

    def given(
        self, state: LargeScaleState, cells: Sequence[int], snr: Snr, shares: dict[Direction, FloatArray]
    ) -> RadioRound:
        """Return a round of links to the devices' cells, with the given SNR and shares of the band."""
        fading = [self.fading(device, cell) for device, cell in zip(state.ids, cells, strict=True)]
        none, full = np.zeros(len(fading)), np.ones(len(fading))
        return RadioRound(self.air, Links(state.ids, cells, fading, snr, shares, none, full, full), cells[0])

    def _round(
        self,
        state: LargeScaleState,
        cell: int,
        sent: int,
        fading: Sequence[Fading],
        snr: Snr,
        shares: dict[Direction, FloatArray],
        power: FloatArray | None = None,
    ) -> RadioRound:
        """Return a round of unicast links.

        Args:
            sent: number of shares that every other site sends at once. snr: mean SNR of each link with full power
                over the whole band.
            power: fraction of its power that each device radiates; if None, power control sets it.
        """
        if power is None:
            whole = np.ones(len(fading))
            power = self.budget.uplink_power(state, whole if self.air.dynamic else shares["uplink"])
        snr = snr | {"uplink": snr["uplink"] * power}
        neighbours = (
            self.budget.interference_over_noise(state)
            if self._band_counts_neighbours
            else np.zeros(len(fading))
        )
        control = self.budget.control(state)
        links = Links(state.ids, [cell] * len(fading), fading, snr, shares, neighbours, power, control)
        interfered, reports = None, None
        if self._settings.by_slot:
            heard = shares["uplink"]
            if self.air.dynamic:  # other rounds may be open in this cell
                sharing = len({*state.ids, *self.at_work(cell)})
                heard = np.full(len(fading), self._heard_share(1.0 / sharing))
            interfered = self._interference.of_links(state, cell, fading, heard)
        if self._reader.positions_m and self.air.monitoring.interval is not None and state.key is not None:
            reports = ChannelReports(self._reader, cell, state.key, links, sent, interfered)
        elsewhere = partial(self._elsewhere, state, sent) if self.air.monitoring.t311 else None
        return RadioRound(
            self.air, links, cell, reports, interfered, elsewhere=elsewhere, packet_errors=self.packet_errors
        )

    def _elsewhere(self, state: LargeScaleState, sent: int, link: Link, cell: int) -> RadioRound | None:
        """Return a round with only a device's current link to a cell's site, or None if the device is absent.

        If shares are fixed for a round, the device keeps the size of its share in the new cell's band, and the
        devices of that cell also keep their shares. The part of a broadcast that has not arrived is sent by unicast.

        Args:
            state: large-scale state of the round that opened the link.
            sent: number of shares that every other site sends at once.
        """
        places_m = self._reader.positions_m() if self._reader.positions_m else state.everywhere_m
        if state.key is None or places_m is None or not np.isfinite(places_m[link.device, 0]):
            return None
        here = self.gains.of_round(places_m, [link.device], cell, state.key)
        shares = {direction: np.array([link.share(direction)]) for direction in DIRECTIONS}
        if link.round.broadcast is not None and not self.air.dynamic:
            shares["downlink"] = np.array([link.round.broadcast.share])
        fading, snr = [self.fading(link.device, cell)], self.budget.snr(here, sent)
        return self._round(here, cell, sent, fading, snr, shares)

    def _heard_share(self, share: float) -> float:
        """Return the part of the band that a device of another cell uses, if devices of this cell use `share`."""
        # in a dynamic band without resource blocks, such a device is assumed to use the whole band
        return share if not self.air.dynamic or self._settings.in_blocks("uplink") else 1.0

    @property
    def _band_counts_neighbours(self) -> bool:
        # in a dynamic band, neighbours send as many shares as this cell does
        return self.air.dynamic and self._settings.budget.power_over_share == "full"

    def _shares(
        self, direction: Direction, snr: np.ndarray, static: np.ndarray, payload_bits: Sequence[int]
    ) -> np.ndarray:
        """Return the shares [devices] of the band that the scheduler sets for the round."""
        bits = np.asarray(payload_bits, dtype=float)
        busy, shares = bits > 0, np.zeros(len(bits))
        if busy.any():  # schedulers accept only flows with bits to send
            flows = Flows(
                self.air.carriers[direction], snr=snr[busy], remaining_bits=bits[busy], static=static[busy]
            )
            with refused("radio"):
                scheduler = self._settings.scheduler
                answer = scheduler.shares(flows)
                wanted = "a share for each flow, an array"
                must_be_shaped(scheduler.shares, answer, ((len(flows),),), wanted, "radio", "scheduler")
                shares[busy] = scheduler.checked(answer, len(flows))
        return shares


def _fading(settings: RadioSettings, speeds_m_s: np.ndarray, key: int, device: int, cell: int) -> Fading:
    """Return the fading of the link between a device and a cell's site."""
    # Philox generates independent streams for different keys
    key, speed_m_s = key ^ (device << 64 | cell), float(speeds_m_s[device])
    correlation = slot_correlation(speed_m_s, carrier_hz=settings.carrier_hz, slot_s=settings.slot_s)
    return fading_in_parts(key, correlation, settings.link.frequency_taps, settings.fading_block)
