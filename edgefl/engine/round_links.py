"""What links are when a round opens: their SNR, shares, interference, and what is read while transfers last."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import simpy

from channel.diversity import DiverseFading
from channel.fading import Fading, LinkFading, slot_correlation, slot_turn
from channel.interference import Activity, Heard, Interfered
from channel.schedulers import Flows, Scheduler
from channel.tdd import Direction, rounding_s, roundings_s
from channel.units import FloatArray
from edgefl.engine.broadcast import Broadcast
from edgefl.engine.budget import Budget, carriers_of
from edgefl.engine.gains import Gains, RoundKey, Survey
from edgefl.engine.links import DIRECTIONS, Link, Links
from edgefl.engine.radio_settings import RadioSettings
from edgefl.engine.reader import Reader, RoundRead
from edgefl.engine.readings import Readings, Rules, Snr
from edgefl.errors import refused
from edgefl.rng import Streams

# Links whose drawn slots are kept, some 50 KB each. Fading is a function of time: a dropped one comes back.
LINKS_KEPT = 4096


class LinksOfRounds:
    """Makes the links of rounds in all cells.

    Args:
        device_power_w: [devices] what each radiates while it sends, or one for all.
        reading_s: time between two readings of a gain, where the settings ask for them.
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
        reading_s: float = 0.2,
    ) -> None:
        self.env = env
        self._budget = Budget(settings, np.broadcast_to(device_power_w, len(speeds_m_s)))
        self._settings = settings
        self.dynamic = settings.sharing == "dynamic"
        self.slot_s, self.carrier_hz = settings.slot_s, settings.carrier_hz
        self._scheduler: Scheduler = settings.scheduler
        self._gains = gains
        self._streams = streams
        self._activities: dict[Direction, Activity] = {}
        self._everywhere_m = np.empty((0, 2))
        self._everywhere_db: tuple[np.ndarray, np.ndarray] | None = None  # where, and the gains there
        self._fading_key = streams.key("fading")
        self._speeds_m_s = speeds_m_s
        for speed in speeds_m_s:  # too fast ones are refused
            slot_turn(float(speed), carrier_hz=settings.carrier_hz, slot_s=settings.slot_s)
        self._carriers = carriers_of(settings)
        self.fading = lru_cache(maxsize=LINKS_KEPT)(self._fading)
        self._rules = Rules(settings, reading_s if settings.gain_reading == "interval" else None)
        self._reader = Reader(env, self._rules, self._budget, self.survey, self._heard_by_devices)
        self._positions_m: Callable[[], np.ndarray] = lambda: self._everywhere_m
        self._moving_places = False
        self._broadcasts = settings.downlink == "broadcast"
        self._sent_to_all: dict[int, Broadcast] = {}  # of each cell, the last one

    def follow(self, positions_m: Callable[[], np.ndarray]) -> None:
        """Measure gains where the devices are, which move, also while transfers last, if the settings say so.

        Args:
            positions_m: returns [devices, 2] where they are now, nan: absent.
        """
        self._positions_m = positions_m
        self._moving_places = True

    def survey(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> Survey:
        """Survey the links of these devices to the site of a cell, or of one for each, in the round named by key."""
        self._everywhere_m = positions_m
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
        sent = 0 if counted else min(sent, 1) if self._broadcasts else sent
        cells, snr = [cell] * len(survey.ids), self._budget.snr(survey, sent)
        neighbours = self._budget.rise(survey) if counted else np.zeros(len(survey.ids))
        fading = [self.fading(device, cell) for device in survey.ids]
        shares = dict.fromkeys(DIRECTIONS, np.ones(len(fading)))
        if not self.dynamic:
            static = np.array([link.static for link in fading])
            power = np.ones(len(fading))
            for i in np.flatnonzero(static).tolist():
                power[i] = fading[i].power(0, 1)[0]
            unicast = DIRECTIONS[1:] if self._broadcasts else DIRECTIONS
            shares |= {d: self._static_shares(d, snr[d] * power, static, payload_bits[d]) for d in unicast}
        radiated = self._budget.uplink_power(survey, shares["uplink"])
        snr["uplink"] = snr["uplink"] * radiated
        interfered = self._interfered(survey, cell, fading) if self._settings.by_slot else None
        readings = self._readings(survey, cell, snr, sent, radiated, interfered)
        broadcast = None
        if self._broadcasts:
            broadcast = self._sent_to_all[cell] = Broadcast.of_round(
                self._carriers["downlink"],
                survey.ids,
                snr["downlink"],
                interfered["downlink"] if interfered else fading,
                payload_bits["downlink"],
                quantile=self._settings.broadcast_quantile,
                first_slot=self.next_slot(self.env.now),
                lowest_snr=self._rules.lowest_snr,
            )
        return Links(
            survey.ids,
            cells,
            fading,
            snr,
            shares,
            neighbours,
            readings,
            broadcast,
            radiated,
            interfered,
            partial(self._anew, survey.key, sent) if self._rules.t311 else None,
        )

    def _anew(self, key: RoundKey | None, sent: int, link: Link, cell: int) -> Link | None:
        """Return a device's link to a cell's site as it is now; None: the device is absent.

        It has as large a share of that cell's band as it had, where shares are held for a round: its new neighbours
        keep theirs. What a broadcast did not bring is sent to it alone.

        Args:
            key: of the round. sent: shares that each other site sends in it.
        """
        places_m = self._positions_m()
        if key is None or not np.isfinite(places_m[link.device, 0]):
            return None
        survey = self.survey(places_m, [link.device], cell, key)
        snr, fading = self._budget.snr(survey, sent), [self.fading(link.device, cell)]
        shares = {direction: np.array([link.share[direction]]) for direction in DIRECTIONS}
        if link.broadcast is not None:
            shares["downlink"] = np.array([link.broadcast.share])
        radiated = self._budget.uplink_power(survey, shares["uplink"])
        snr["uplink"] = snr["uplink"] * radiated
        interfered = self._interfered(survey, cell, fading) if self._settings.by_slot else None
        counted = self.dynamic and self._settings.power_over_share == "full"
        links = Links(
            survey.ids,
            [cell],
            fading,
            snr,
            shares,
            self._budget.rise(survey) if counted else np.zeros(1),
            self._readings(survey, cell, snr, sent, radiated, interfered),
            None,
            radiated,
            interfered,
            link.anew,
        )
        return next(iter(links))

    def _interfered(
        self, survey: Survey, cell: int, fading: Sequence[Fading]
    ) -> dict[Direction, list[Interfered]]:
        """Return the links' fading with the interference of the other cells, which send in a slot or do not."""
        down = self._heard_by_devices(survey)
        if self._everywhere_db is None or self._everywhere_db[0] is not self._everywhere_m:
            # of all devices, and the same for all cells whose rounds open at one time
            self._everywhere_db = self._everywhere_m, self._gains.power_db(self._everywhere_m)
        power_db = self._everywhere_db[1]
        at_site = Heard(
            self._activity("uplink", power_db.shape[1]), self._budget.uplink_levels(power_db, cell)
        )
        return {
            "downlink": [Interfered(link, heard) for link, heard in zip(fading, down, strict=True)],
            "uplink": [Interfered(link, at_site) for link in fading],
        }

    def _heard_by_devices(self, survey: Survey) -> list[Heard]:
        levels = self._budget.downlink_levels(survey)
        activity = self._activity("downlink", levels.shape[1])
        return Heard.each(activity, levels)

    def _activity(self, direction: Direction, cells: int) -> Activity:
        """Return when each cell's transmitter of a direction sends."""
        if direction not in self._activities:
            key = self._streams.key("interference", direction)
            self._activities[direction] = Activity(key, cells, self._settings.neighbour_load)
        return self._activities[direction]

    def _readings(
        self,
        survey: Survey,
        cell: int,
        snr: Snr,
        neighbours: int,
        radiated: FloatArray,
        interfered: dict[Direction, list[Interfered]] | None,
    ) -> Readings | None:
        """Return what the links of a round will measure; None: what they measure now."""
        key = survey.key
        if not self._moving_places or self._rules.interval is None or key is None:
            return None
        of = RoundRead(cell, key, neighbours, radiated, interfered)
        return self._reader.readings(list(survey.ids), snr, of, self._positions_m)

    def predictable(self, links: Links) -> bool:
        """Whether the lengths of transfers on these links are known when their round opens."""
        if self.dynamic or any((links.readings, links.broadcast, links.interfered)):
            return False
        return len(self.in_sync(links)) == len(links)

    def in_sync(self, links: Links) -> list[int]:
        """Return the rows of the links that carry something in both directions."""
        if self._rules.t310 is None:
            return list(range(len(links)))
        return [
            i for i, link in enumerate(links) if all(self._in_sync(link, d, link.snr[d]) for d in DIRECTIONS)
        ]

    @property
    def rules(self) -> Rules:
        """When gains are read, and when links are given up."""
        return self._rules

    @property
    def may_fail(self) -> bool:
        """Whether a link can be too weak to carry anything."""
        return self._rules.t310 is not None

    def carries(self, link: Link, direction: Direction, alone: bool = False) -> bool:
        """Whether a link that was just measured carries anything in a direction.

        Args:
            alone: with no interference by slot, which comes and goes as others do.
        """
        link = replace(link, interfered=None) if alone else link
        return self._in_sync(link, direction, link.snr[direction])

    def _sync_snr(self, link: Link, direction: Direction, snr: float) -> float:
        """Return the mean SNR over fading on a link's share of the band, of that on the whole band."""
        share = 1.0 if self.dynamic else link.share[direction]
        return float(self._carriers[direction].share_snr(share, snr)) * link.power(direction).mean_power

    def _in_sync(self, link: Link, direction: Direction, snr: float) -> bool:
        # who has nothing to move may have no share
        nothing = not self.dynamic and not link.share[direction]
        if self._rules.t310 is None or nothing:
            return True
        return self._sync_snr(link, direction, snr) >= self._rules.lowest_snr

    def snr(self, survey: Survey) -> Snr:
        """Return [devices] the mean SNR in each direction, with full power over the whole band."""
        return self._budget.snr(survey)

    def mean_sinr(self, survey: Survey) -> FloatArray:
        """Return [devices] the mean SINR of downlinks with full power over the whole band, for maps."""
        return self._budget.mean_snr(survey, 1)["downlink"]

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

    def next_slot(self, time_s: float) -> int:
        """Return the first slot that begins no earlier than a time."""
        return math.ceil((time_s - rounding_s(time_s)) / self._settings.slot_s)

    def next_slots(self, times_s: FloatArray) -> npt.NDArray[np.int64]:
        """Return [n] `next_slot` of each time, to the last bit."""
        return np.ceil((times_s - roundings_s(times_s)) / self._settings.slot_s).astype(np.int64)

    def _fading(self, device: int, cell: int) -> Fading:
        """Make the fading of the link between a device and a cell's site."""
        # any change of its key gives Philox an independent stream
        key, speed_m_s = self._fading_key ^ (device << 64 | cell), float(self._speeds_m_s[device])
        correlation = slot_correlation(speed_m_s, carrier_hz=self.carrier_hz, slot_s=self.slot_s)
        taps = [LinkFading(key ^ tap << 120, correlation) for tap in range(self._settings.frequency_taps)]
        return taps[0] if len(taps) == 1 else DiverseFading(taps)

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
