"""Send the files of background users, which share a cell's band with learning."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import numpy.typing as npt
import simpy

from edgefl.channel.diversity import fading_in_parts
from edgefl.channel.fading import slot_correlation
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.config.answers import wrong
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.background_users import UserLinks
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.backgrounds import Background
from edgefl.errors import EdgeflError, refused
from edgefl.rng import Streams

MOST_LOAD = 0.95  # maximum load of traffic given in bit/s; queues grow without bound as load approaches 1


@dataclass(frozen=True)
class BackgroundTraffic:
    """Poisson arrivals of background files, each for a random user, in each cell and direction.

    The load is the fraction of time for which the files alone would occupy the band, so the arrival rate is the load
    divided by the mean duration of a file that has the band to itself, in whole slots. For traffic in bit/s, the
    arrival rate is the traffic divided by a file's bits. If the load changes, so does the arrival rate, whose
    integral up to the next arrival is exponentially distributed with mean 1. Users do not move, and users whose SNR
    is too low for any rate have no traffic. In the uplink, users with little power send at once on different resource
    blocks, each with its full power, so a high load takes less time together than one file after the other. Left
    out: congestion control, sessions of users, a limit of one file at a time per user, and interference by slot.

    Args:
        cells: cells with background traffic.
        users_links: returns the links of a cell's users; the settings contain the number of users.
    """

    air: AirInterface
    cells: Sequence[int]
    users_links: Callable[[int], UserLinks]
    streams: Streams

    @property
    def _settings(self) -> Background:
        settings: Background = self.air.settings.background
        return settings

    def processes(self) -> Iterator[Generator[simpy.Event, None, None]]:
        """Yield the generators that send background files; the caller starts them as processes.

        Raises:
            EdgeflError: no user of a cell has a link, or the traffic exceeds the band's capacity.
        """
        self._settings.check(self.cells)
        for cell in self.cells:
            links: UserLinks | None = None
            for direction in DIRECTIONS:
                load = self._load(direction, cell, self.air.env.now)
                if load != (0.0, math.inf) or self._settings.bps(direction) is not None:
                    links = links or self.users_links(cell)
                    yield self._arrivals(cell, direction, links.snr[direction], links.most[direction])

    def _arrivals(
        self, cell: int, direction: Direction, snr: FloatArray, most: FloatArray
    ) -> Generator[simpy.Event, None, None]:
        """Check the users' links, so that bad settings are refused before a run begins; return the generator."""
        settings = self._settings
        taken_s = self.air.seconds_alone(direction, settings.file_bits, snr, most)
        reached = np.flatnonzero(np.isfinite(taken_s))
        if not len(reached):
            raise EdgeflError(f"no user of cell {cell} has a link: raise users", ("radio", "background"))
        mean_s = float(taken_s[reached].mean())
        self._check_room(direction, mean_s)
        return self._files(cell, direction, snr, most, reached, mean_s)

    def _files(
        self,
        cell: int,
        direction: Direction,
        snr: FloatArray,
        most: FloatArray,
        reached: npt.NDArray[np.intp],
        mean_s: float,
    ) -> Generator[simpy.Event, None, None]:
        settings, env, rng = self._settings, self.air.env, self.streams("background", direction, cell)
        carrier_hz = self.air.settings.carrier_hz
        correlation = slot_correlation(settings.speed_m_s, carrier_hz=carrier_hz, slot_s=self.air.slot_s)
        key = self.streams.key("background", "fading", direction, cell)
        parts = self.air.settings.link.frequency_taps
        fading = {user: fading_in_parts(key ^ user << 64, correlation, parts) for user in reached.tolist()}
        number, come_s = 0, env.now
        while (
            come_s := self._next_s(cell, direction, mean_s, come_s, rng.standard_exponential())
        ) < math.inf:
            yield env.timeout(max(0.0, come_s - env.now))
            user = int(rng.choice(reached))
            slot = self.air.next_slot(come_s)
            yield self.air.until(slot)  # the next file may come in the meantime
            number += 1
            with refused("radio"):
                self.air.band(cell, direction).begin(
                    -number,  # below 0, unlike the ids of devices
                    settings.file_bits,
                    snr_whole_band=float(snr[user]),
                    most_snr=float(most[user]),
                    fading=fading[user],
                    slot=slot,
                    background=True,
                )

    def _check_room(self, direction: Direction, mean_s: float) -> None:
        """Raise an error if the traffic in bit/s exceeds the band's capacity, given the files' mean duration."""
        bps, most_bps = self._settings.bps(direction), MOST_LOAD * self._settings.file_bits / mean_s
        if bps is not None and bps > most_bps:
            raise EdgeflError(
                f"{bps:.3g} bit/s is too much: alone in the band, users can only send {most_bps / MOST_LOAD:.3g}"
                f" bit/s, so files would pile up; lower it to {most_bps:.3g} or less, or move the users closer",
                ("radio", "background", f"{direction}_bps"),
            )

    def _load(self, direction: Direction, cell: int, time_s: float) -> tuple[float, float]:
        answer = self._settings.load(direction, cell, time_s)
        right = (
            isinstance(answer, tuple) and len(answer) == 2 and all(isinstance(one, Real) for one in answer)
        )
        if not (right and 0 <= answer[0] <= 1 and answer[1] > time_s):
            wanted = (
                "two numbers, the load from 0 to 1, and a time in s, later than time_s, until which it holds"
            )
            raise wrong(self._settings.load, answer, wanted, "radio", "background")
        return answer

    def _next_s(self, cell: int, direction: Direction, mean_s: float, time_s: float, files: float) -> float:
        """Return when, from time_s on, `files` files will have arrived on average; inf if that never happens."""
        if (bps := self._settings.bps(direction)) is not None:
            return time_s + self._settings.file_bits / bps * files
        while True:
            load, until_s = self._load(direction, cell, time_s)
            if load:
                next_s = time_s + mean_s / load * files
                if next_s <= until_s:
                    return next_s
                files -= (until_s - time_s) * load / mean_s
            if until_s == math.inf:
                return math.inf
            time_s = until_s
