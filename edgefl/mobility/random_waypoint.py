"""Random waypoint on a disc around the base station."""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from channel.geometry import sample_ring
from edgefl.mobility import Mobility, Movement
from edgefl.rng import Streams


class RandomWaypoint(Mobility):
    """Each device walks to a uniform point of a disc, rests there, and walks to the next.

    The disc may be larger than the cell: a device outside the cell is absent, crossing the edge is a
    departure or an arrival. A device draws its speed once and keeps it, so that the mean speed does not
    decay with time as it does when every leg draws anew (Yoon, Liu and Noble, INFOCOM 2003) and a link
    has one Doppler. Left out: a start in the stationary law; devices begin uniform in area at a new leg.
    """

    area_factor: float = Field(
        1.3, ge=1, le=10, description="radius of the disc over the cell radius, 1 to 10"
    )
    speed_min_m_s: float = Field(1.0, gt=0, le=60, description="lowest speed of a device, m/s")
    speed_max_m_s: float = Field(15.0, gt=0, le=60, description="highest speed of a device, m/s")
    pause_s: float = Field(0.0, ge=0, description="rest at each waypoint, s")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.speed_min_m_s > self.speed_max_m_s:
            raise ValueError("speed_min_m_s must not exceed speed_max_m_s")
        return self

    def area_radius_m(self, cell_radius_m: float) -> float:
        return self.area_factor * cell_radius_m

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        speeds = streams("mobility", "speed").uniform(
            self.speed_min_m_s, self.speed_max_m_s, size=len(positions_m)
        )
        radius = self.area_radius_m(cell_radius_m)
        return _Walks(positions_m, speeds, radius, self.pause_s, streams)


class _Walks:
    """Legs of every device, drawn as far as they are needed and kept, so that any time can be asked."""

    moves = True

    def __init__(
        self, positions_m: np.ndarray, speeds: np.ndarray, radius_m: float, pause_s: float, streams: Streams
    ) -> None:
        self._speeds = speeds
        self._radius_m = radius_m
        self._pause_s = pause_s
        self._generators = [streams("mobility", "path", device) for device in range(len(positions_m))]
        # per device: time of departure from each waypoint, and the waypoints
        self._leave_s: list[list[float]] = [[0.0] for _ in positions_m]
        self._points_m: list[list[np.ndarray]] = [[point] for point in positions_m]
        # the leg each device was on when last asked
        self._from_m = positions_m.copy()
        self._velocity = np.zeros_like(positions_m)
        self._start_s = np.zeros(len(positions_m))
        self._arrive_s = np.full(len(positions_m), -1.0)
        self._until_s = np.full(len(positions_m), -1.0)

    def positions_m(self, time_s: float) -> np.ndarray:
        for device in np.flatnonzero((time_s >= self._until_s) | (time_s < self._start_s)):
            self._enter_leg(int(device), time_s)
        walked_s = np.minimum(time_s, self._arrive_s) - self._start_s
        return self._from_m + self._velocity * walked_s[:, None]

    def doppler_speeds_m_s(self) -> np.ndarray:
        return self._speeds

    def _enter_leg(self, device: int, time_s: float) -> None:
        leave_s, points = self._leave_s[device], self._points_m[device]
        while leave_s[-1] <= time_s:
            target = sample_ring(
                self._generators[device], 1, inner_radius_m=0.0, outer_radius_m=self._radius_m
            )[0]
            walk_s = float(np.linalg.norm(target - points[-1]) / self._speeds[device])
            leave_s.append(leave_s[-1] + walk_s + self._pause_s)
            points.append(target)
        leg = int(np.searchsorted(leave_s, time_s, side="right")) - 1
        start, until = leave_s[leg], leave_s[leg + 1]
        walk_s = until - self._pause_s - start
        self._from_m[device] = points[leg]
        self._velocity[device] = (points[leg + 1] - points[leg]) / walk_s if walk_s > 0 else 0.0
        self._start_s[device], self._arrive_s[device], self._until_s[device] = start, start + walk_s, until
