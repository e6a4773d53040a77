"""Background traffic: other users of a cell whose files share the band with learning."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import simpy

from edgefl.channel.fading import LinkFading, slot_correlation
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.air.air import AirInterface
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.backgrounds import Background
from edgefl.errors import EdgeflError, refused
from edgefl.rng import Streams

# cell -> direction -> [users] mean SNR on the whole band with full power
UsersSnr = Callable[[int], dict[Direction, FloatArray]]


@dataclass(frozen=True)
class BackgroundTraffic:
    """Files of background users: they come as a Poisson process to each cell and direction, each of some user.

    The load is the share of time in which they would use the band alone: files come at load over the mean time that
    one takes alone in it. Where the load changes, the process' rate does: the time to the next file is what makes
    the integral of the rate an exponential of mean 1. Users stay where they are; those that the lowest rate does not
    reach have no traffic. Left out: control of congestion, sessions of a user, and that one has a file at a time.

    Args:
        cells: that have background traffic.
        users_snr: returns the users of a cell, as many as the settings ask for.
    """

    air: AirInterface
    cells: Sequence[int]
    users_snr: UsersSnr
    streams: Streams

    @property
    def _settings(self) -> Background:
        settings: Background = self.air.settings.background
        return settings

    def processes(self) -> Iterator[Generator[simpy.Event, None, None]]:
        """Yield all generators that the composition root must start."""
        self._settings.check(self.cells)
        for cell in self.cells:
            snr: dict[Direction, FloatArray] | None = None
            for direction in DIRECTIONS:
                if self._settings.load(direction, cell, self.air.env.now) != (0.0, math.inf):
                    snr = snr or self.users_snr(cell)
                    yield self._arrivals(cell, direction, snr[direction])

    def _arrivals(
        self, cell: int, direction: Direction, snr: FloatArray
    ) -> Generator[simpy.Event, None, None]:
        settings, env = self._settings, self.air.env
        taken_s = self.air.seconds_alone(direction, settings.file_bits, snr)
        reached = np.flatnonzero(np.isfinite(taken_s))
        if not len(reached):
            raise EdgeflError(
                f"no user of cell {cell} is within reach: give more users", ("radio", "background")
            )
        rng = self.streams("background", direction, cell)
        mean_s = float(taken_s[reached].mean())
        carrier_hz = self.air.settings.carrier_hz
        correlation = slot_correlation(settings.speed_m_s, carrier_hz=carrier_hz, slot_s=self.air.slot_s)
        key = self.streams.key("background", "fading", direction, cell)
        fading = {user: LinkFading(key ^ user << 64, correlation) for user in reached.tolist()}
        number = 0
        while (delay_s := self._delay_s(cell, direction, mean_s, rng.standard_exponential())) < math.inf:
            yield env.timeout(delay_s)
            user = int(rng.choice(reached))
            slot = self.air.next_slot(env.now)
            yield self.air.until(slot)
            number += 1
            with refused("radio"):
                self.air.band(cell, direction).begin(
                    -number,  # devices have ids from 0 on
                    settings.file_bits,
                    snr_whole_band=float(snr[user]),
                    fading=fading[user],
                    slot=slot,
                    background=True,
                )

    def _delay_s(self, cell: int, direction: Direction, mean_s: float, files: float) -> float:
        """Return the time until a number of files has come in the mean; inf: it never has."""
        now_s = time_s = self.air.env.now
        while True:
            load, until_s = self._settings.load(direction, cell, time_s)
            if load:
                delay_s = mean_s / load * files
                if time_s + delay_s <= until_s:
                    return time_s - now_s + delay_s
                files -= (until_s - time_s) * load / mean_s
            if until_s == math.inf:
                return math.inf
            time_s = until_s
