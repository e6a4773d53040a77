"""The earliest start of a cell's next round: back to back, after a pause, or on a grid of times."""

import math
from collections.abc import Generator
from dataclasses import dataclass

import simpy

# A time within this share of the grid's step is on the grid, since multiples of the step are rounded.
ON_GRID = 1e-9


@dataclass
class Timetable:
    """The times of one cell's rounds.

    A round begins when the one before has ended and the pause after it is over; with `every_s` at the first
    multiple of it after the start of the round before, or at once if that round and its pause took longer. The probes
    and the check before a session's training take no time of the grid: its first round of training follows at once.

    Attributes:
        next_s: no round begins before this time.
    """

    every_s: float | None = None
    pause_s: float = 0.0
    next_s: float = 0.0

    def begun(self, time_s: float) -> None:
        """Record the start of a round, after which the next one waits for its time."""
        if self.every_s is not None:
            self.next_s = (math.floor(time_s / self.every_s + ON_GRID) + 1) * self.every_s

    def ended(self, time_s: float) -> None:
        """Record the end of the round."""
        self.next_s = max(self.next_s, time_s + self.pause_s)

    def resumed(self, time_s: float) -> None:
        """Record that a device has come into a cell that was empty and had to skip its times."""
        if self.every_s is not None:
            self.next_s = max(self.next_s, math.ceil(time_s / self.every_s - ON_GRID) * self.every_s)


def wait_until(env: simpy.Environment, time_s: float) -> Generator[simpy.Event, None, None]:
    """Wait until a time, exactly: the clock adds each delay to its time, which may round."""
    if env.now + (time_s - env.now) != time_s:
        yield env.timeout(0.75 * (time_s - env.now))  # from more than halfway on, differences are exact
    yield env.timeout(max(0.0, time_s - env.now))
