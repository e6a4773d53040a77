"""Switch devices on during office hours."""

from collections.abc import Iterator
from itertools import count

from pydantic import Field

from edgefl.engine.churn import Churn
from edgefl.rng import Streams


class OfficeHours(Churn):
    """Switch each device on for the same hours every day, after a delay of its own that is drawn uniformly.

    The office opens at time 0. No device is on at night, so `rounds.max_wait_s` must exceed the length of a night.
    """

    open_s: float = Field(8 * 3600.0, gt=0, description="time from opening to closing")
    closed_s: float = Field(16 * 3600.0, gt=0, description="time from closing to the next opening")
    late: float = Field(0.1, ge=0, lt=1, description="maximum delay after opening, as a share of open_s")

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        late_s = self.open_s * streams("churn", device).uniform(0.0, self.late)
        for day in count():
            opens_s = day * (self.open_s + self.closed_s)
            yield opens_s + late_s
            yield opens_s + self.open_s
