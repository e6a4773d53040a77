"""A constant load in all cells."""

import math
from typing import Self

from pydantic import Field, model_validator

from edgefl.channel.tdd import Direction
from edgefl.engine.backgrounds import Background


class Load(Background):
    """A constant load: files arrive as a Poisson process, each for a random user.

    Each band is an M/G/1 queue. With round robin (processor sharing), a transfer that would take x alone takes x / (1
    - load) on average (Kleinrock 1976, 4.4); with `learning_first` it takes x.
    """

    uplink_load: float = Field(
        0.0, ge=0, le=0.95, description="share of the uplink's time that background traffic alone would use"
    )
    downlink_load: float = Field(0.0, ge=0, le=0.95, description="like uplink_load, for the downlink")

    uplink_bps: float | None = Field(
        None, gt=0, le=1e11, description="uplink traffic of a cell's users, bit/s, instead of uplink_load"
    )
    downlink_bps: float | None = Field(
        None, gt=0, le=1e11, description="downlink traffic of a cell's users, bit/s, instead of downlink_load"
    )

    @model_validator(mode="after")
    def _load_or_rate(self) -> Self:
        for direction in ("uplink", "downlink"):
            if getattr(self, f"{direction}_load") and getattr(self, f"{direction}_bps") is not None:
                raise ValueError(f"set either {direction}_load or {direction}_bps")
        return self

    def bps(self, direction: Direction) -> float | None:
        return self.uplink_bps if direction == "uplink" else self.downlink_bps

    def load(self, direction: Direction, cell: int, time_s: float) -> tuple[float, float]:
        return (self.uplink_load if direction == "uplink" else self.downlink_load), math.inf
