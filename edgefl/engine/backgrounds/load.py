"""The same load all the time, in all cells."""

import math

from pydantic import Field

from edgefl.channel.tdd import Direction
from edgefl.engine.backgrounds import Background


class Load(Background):
    """A load that never changes: files come as a Poisson process, each of a user at random.

    An M/G/1 queue, so that with round robin, which shares time as processor sharing does, a transfer that takes x
    alone takes x / (1 - load) in the mean (Kleinrock 1976, 4.4), and x with `learning_first`.
    """

    uplink_load: float = Field(
        0.0, ge=0, le=0.95, description="share of time in which it would use the uplink alone, 0 to 0.95"
    )
    downlink_load: float = Field(0.0, ge=0, le=0.95, description="the same of the downlink")

    def load(self, direction: Direction, cell: int, time_s: float) -> tuple[float, float]:
        return (self.uplink_load if direction == "uplink" else self.downlink_load), math.inf
