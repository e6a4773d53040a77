"""Vary the load of other users sinusoidally over the day."""

import math

from pydantic import Field

from edgefl.channel.tdd import Direction
from edgefl.engine.backgrounds import Background

STEP_S = 900.0  # base stations report their load every quarter of an hour


class Daily(Background):
    """A load that rises and falls once a day around its mean, in steps of 15 minutes, the same in all cells."""

    mean_load: float = Field(0.4, ge=0, le=0.9, description="mean load over the day")
    swing: float = Field(0.8, ge=0, le=1, description="largest deviation, as a share of the mean")
    busiest_hour: float = Field(20.0, ge=0, lt=24, description="hour of the highest load")
    uplink_part: float = Field(
        0.2, ge=0, le=1, description="load of the uplink, as a share of the downlink's load"
    )

    def load(self, direction: Direction, cell: int, time_s: float) -> tuple[float, float]:
        step = math.floor(time_s / STEP_S)
        hour = (step + 0.5) * STEP_S / 3600
        wave = math.cos(2 * math.pi * (hour - self.busiest_hour) / 24)
        load = min(1.0, self.mean_load * (1 + self.swing * wave))
        return load * (self.uplink_part if direction == "uplink" else 1.0), (step + 1) * STEP_S
