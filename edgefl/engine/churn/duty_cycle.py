"""Devices that sleep and wake periodically."""

from collections.abc import Iterator

from pydantic import Field

from edgefl.engine.churn import Churn
from edgefl.rng import Streams


class DutyCycle(Churn):
    """Devices are on for on_s, then off for off_s, and start at a random point of their cycle."""

    on_s: float = Field(30.0, ge=1e-3, le=1e9, description="time switched on in each cycle")
    off_s: float = Field(30.0, ge=1e-3, le=1e9, description="time switched off in each cycle")

    @property
    def period_s(self) -> float:
        return self.on_s + self.off_s

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        period_s = self.period_s
        phase_s = streams("churn", device).uniform(0.0, period_s)
        if phase_s < self.on_s:
            yield 0.0
            yield self.on_s - phase_s
        start_s = period_s - phase_s
        while True:
            yield start_s
            yield start_s + self.on_s
            start_s += period_s
