"""Memoryless arrivals and lifetimes of devices."""

from collections.abc import Iterator

from pydantic import Field

from edgefl.engine.churn import Churn
from edgefl.rng import Streams


class Poisson(Churn):
    """Each device is on for an exponential lifetime, off for an exponential absence, and so on.

    Every device starts in the stationary distribution: on with probability lifetime / (lifetime + absence). In the
    limit of many devices, arrivals of N devices are Poisson with N / (lifetime + absence) per second (the
    machine-repair model); the number of devices that are on is binomial at every time.
    """

    on_s: float = Field(60.0, ge=1e-3, le=1e9, description="mean time for which a device stays on")
    off_s: float = Field(60.0, ge=1e-3, le=1e9, description="mean time for which a device stays off")

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        rng = streams("churn", device)
        on = rng.random() < self.on_s / (self.on_s + self.off_s)
        time_s = 0.0
        if on:
            yield time_s
        while True:
            time_s += rng.exponential(self.on_s if on else self.off_s)
            on = not on
            yield time_s
