"""A straight highway past the base station."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.errors import EdgeflError
from edgefl.mobility import Movement
from edgefl.mobility._draws import UniformDraws
from edgefl.mobility._walkers import LargerArea
from edgefl.rng import Streams


class Highway(LargerArea):
    """Vehicles drive in parallel lanes, in both directions, each at the constant speed of its lane.

    The road is straight, area_factor times as long as the cell is wide, and passes the base station at a distance of
    offset_m. A vehicle that reaches the road's end is absent for away_s, and then re-enters its lane at the other
    end: the same vehicles come back after a time that depends on the lane. Device i drives in lane i modulo the
    number of lanes; in each direction, lanes are numbered from the outermost lane, which is the slowest.

    A lane and the absence at its end form a loop with independently and uniformly placed vehicles (on the road this
    is a Poisson process, given their number). Each vehicle's place along the road is therefore uniform at every time,
    and the vehicle is present with probability road / (road + speed x away_s). Initial positions are ignored.

    Defaults resemble the freeway case of 3GPP TR 36.885, annex A: three lanes of 4 m each way, base stations 35 m
    from the road, one speed per lane. Left out: overtaking, acceleration, curves.
    """

    own_numbers: ClassVar[bool] = True

    area_factor: float = Field(
        1.3, ge=1, le=10, description="length of the road relative to the cell's diameter"
    )
    lanes: int = Field(3, ge=1, le=10, description="lanes in each direction")
    lane_width_m: ClassVar[float] = 4.0  # m, between neighbouring lanes: TR 36.885, annex A
    offset_m: ClassVar[float] = 35.0  # m, from the base station to the nearest lane: TR 36.885, annex A
    speed_min_m_s: float = Field(22.0, ge=1e-3, le=60, description="speed of the outermost lanes")
    speed_max_m_s: float = Field(
        36.0, gt=0, le=60, description="speed of the innermost lanes; speeds in between are evenly spaced"
    )
    away_s: float = Field(10.0, ge=1, le=1e9, description="time between leaving and re-entering the road")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.speed_min_m_s > self.speed_max_m_s:
            raise ValueError(
                f"speed_min_m_s {self.speed_min_m_s} must not exceed speed_max_m_s {self.speed_max_m_s}"
            )
        return self

    def reach_m(self, cell_radius_m: float) -> float:
        across_m = self.offset_m + (2 * self.lanes - 1) * self.lane_width_m
        return math.hypot(self.area_radius_m(cell_radius_m), across_m)  # the road's ends

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        if self.offset_m >= cell_radius_m:
            raise EdgeflError(
                f"the road, {self.offset_m:g} m from the base station, lies outside the cell of {cell_radius_m:g} m:"
                " make the cell larger",
                ("devices", "mobility"),
            )
        devices = np.arange(len(positions_m))
        lane = devices % (2 * self.lanes)
        eastbound = lane < self.lanes
        # rank 0 is a direction's outermost and slowest lane; eastbound lanes are nearer to the base station
        rank = lane % self.lanes
        steps = np.where(eastbound, rank, 2 * self.lanes - 1 - rank)
        inner = rank / max(self.lanes - 1, 1)
        speeds_m_s = self.speed_min_m_s + inner * (self.speed_max_m_s - self.speed_min_m_s)
        road_m = 2.0 * self.area_radius_m(cell_radius_m)
        loop_s = road_m / speeds_m_s + self.away_s
        return _Vehicles(
            offset_s=UniformDraws(streams, len(devices)).uniform(devices, 0, 1)[0] * loop_s,
            loop_s=loop_s,
            velocities_m_s=np.where(eastbound, speeds_m_s, -speeds_m_s),
            across_m=self.offset_m + steps * self.lane_width_m,
            road_m=road_m,
        )


@dataclass(frozen=True, eq=False)
class _Vehicles:
    offset_s: np.ndarray
    loop_s: np.ndarray
    velocities_m_s: np.ndarray
    across_m: np.ndarray
    road_m: float
    moves = True

    def positions_m(self, time_s: float) -> np.ndarray:
        if not 0 <= time_s < np.inf:
            raise ValueError(f"time_s must be >= 0 and finite, got {time_s}")
        half_m = self.road_m / 2
        entered_s = (self.offset_s + time_s) % self.loop_s
        along_m = entered_s * self.velocities_m_s - np.copysign(half_m, self.velocities_m_s)
        return np.where(np.abs(along_m) <= half_m, np.stack([along_m, self.across_m]), np.nan).T

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.abs(self.velocities_m_s)
