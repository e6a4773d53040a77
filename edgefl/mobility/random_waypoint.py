"""Random waypoint on a disc around the base station."""

import numpy as np
from pydantic import Field

from edgefl.channel.geometry import on_disc
from edgefl.mobility import Leg, Legs, Movement
from edgefl.mobility._draws import UniformDraws
from edgefl.mobility._walkers import Walkers
from edgefl.rng import Streams

# Mean distance of two uniform points of a disc over its radius: 128 / (45 pi)
MEAN_LEG = 128 / (45 * np.pi)
# A device's random numbers: from index 0 on, two for each waypoint; from this index on, the numbers for its start
_OPENING = 2**40


class RandomWaypoint(Walkers):
    """Each device walks to a uniformly random point of a disc, rests there, and walks to the next point.

    Devices gather in the middle: in the long run walking devices have the density 45 (1 - r^2) E(r) / (32 pi R^2) per
    area at distance r R from the centre, with E the complete elliptic integral of the second kind of modulus r.
    Resting devices are uniformly distributed, and a device of speed v and pause p rests for a share p / (p + 128 R /
    (45 pi v)) of its time (Hyytia, Lassila and Virtamo, IEEE Trans. Mobile Computing 2006).

    Devices start in this stationary distribution, not at their initial positions: a walking device starts within a
    leg drawn with a density proportional to the leg's length, and a resting device starts with a uniform remaining
    rest (perfect simulation, Navidi and Camp, IEEE Trans. Mobile Computing 2004; Le Boudec and Vojnovic, INFOCOM
    2005). The distribution of their positions therefore never changes. Without `steady_state` devices start a new leg
    at their initial positions, uniformly over the disc, and approach the stationary distribution within a few legs:
    the mean distance from the centre falls from 0.67 R to 0.52 R, so a run's first sessions differ from later ones.
    Left out: speeds and rests that vary by leg.
    """

    pause_s: float = Field(0.0, ge=0, le=1e9, description="time at rest at each waypoint")
    steady_state: bool = Field(True, description="start in the stationary distribution instead of uniformly")

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        speeds_m_s = self.speeds_m_s(len(positions_m), streams)
        return _Walks(positions_m, self, self.area_radius_m(cell_radius_m), speeds_m_s, streams)


class _Walks(Legs):
    leads_to_places = True

    def __init__(
        self,
        positions_m: np.ndarray,
        model: RandomWaypoint,
        radius_m: float,
        speeds_m_s: np.ndarray,
        streams: Streams,
    ) -> None:
        super().__init__(speeds_m_s)
        self._radius_m = radius_m
        self._pause_s = model.pause_s
        self._draws = UniformDraws(streams, len(positions_m))
        # the first waypoint is the device's initial position, reached at time 0 and left at once
        self._places_m = positions_m.T.copy()
        self._opening = Leg(self._places_m, np.zeros(len(positions_m)), np.zeros(len(positions_m)))
        if model.steady_state:
            self._places_m, self._opening = self._amid_a_leg()

    def begin(self, ids: np.ndarray) -> np.ndarray:
        return self._places_m[:, ids]

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        to_m = on_disc(self._draws.uniform(ids, 2 * number, 2), self._radius_m)
        walk_s = np.hypot(*(to_m - here_m)) / self._speeds_m_s[ids]
        rest_s = np.full(len(ids), self._pause_s)
        first = np.flatnonzero(number == 0)
        to_m[:, first] = self._opening.to_m[:, ids[first]]
        walk_s[first], rest_s[first] = self._opening.walk_s[ids[first]], self._opening.rest_s[ids[first]]
        return Leg(to_m, walk_s, rest_s)

    def _amid_a_leg(self) -> tuple[np.ndarray, Leg]:
        """Draw places [2, devices] from the stationary distribution, and the remaining leg from each place."""
        everyone = np.arange(len(self._speeds_m_s))
        uniform = self._draws.uniform(everyone, _OPENING, 5)
        to_m, place_m = self._long_leg(everyone, _OPENING + 5)
        place_m += uniform[0] * (to_m - place_m)
        # at a random time a device rests with probability pause / (pause + walk), uniformly within the pause
        walk_s = MEAN_LEG * self._radius_m / self._speeds_m_s
        resting = uniform[1] * (self._pause_s + walk_s) < self._pause_s
        place_m = np.where(resting, on_disc(uniform[2:4], self._radius_m), place_m)
        to_m = np.where(resting, place_m, to_m)
        left_s = np.hypot(*(to_m - place_m)) / self._speeds_m_s
        return place_m, Leg(to_m, left_s, np.where(resting, uniform[4], 1.0) * self._pause_s)

    def _long_leg(self, ids: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw two points [2, ids] with a joint density proportional to their distance, by rejection."""
        uniform = self._draws.uniform(ids, number, 5)
        ends_m = np.stack([on_disc(uniform[0:2], self._radius_m), on_disc(uniform[2:4], self._radius_m)])
        kept = 2.0 * self._radius_m * uniform[4] < np.hypot(*(ends_m[1] - ends_m[0]))
        if not kept.all():
            ends_m[:, :, ~kept] = self._long_leg(ids[~kept], number + 5)
        return ends_m[0], ends_m[1]
