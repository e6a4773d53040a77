"""Compute the earliest start of a cell's next round, which follows at once, after a pause, or on a grid of times."""

import math
from collections.abc import Generator
from dataclasses import dataclass

import simpy

# A time this close to the grid, as a share of the step, counts as on the grid, since multiples are rounded.
ON_GRID = 1e-9


@dataclass
class Timetable:
    """The times of one cell's rounds.

    A round begins when the pause after the previous round ends. With `every_s` it begins at the first multiple of
    `every_s` after the previous round's start, or at once if that round and its pause took longer. Probes and the
    check before a session's training do not wait for the grid, so the first round of training follows at once.

    Attributes:
        next_s: no round begins before this time.
    """

    every_s: float | None = None
    pause_s: float = 0.0
    next_s: float = 0.0

    def begun(self, time_s: float) -> None:
        """Record the start of a round; with `every_s`, no round begins before the next multiple of `every_s`."""
        if self.every_s is not None:
            self.next_s = (math.floor(time_s / self.every_s + ON_GRID) + 1) * self.every_s

    def ended(self, time_s: float) -> None:
        """Record the end of the round."""
        self.next_s = max(self.next_s, time_s + self.pause_s)

    def resumed(self, time_s: float) -> None:
        """Record that a device has entered the empty cell; the next round begins at a multiple of `every_s`."""
        if self.every_s is not None:
            self.next_s = max(self.next_s, math.ceil(time_s / self.every_s - ON_GRID) * self.every_s)


def wait_until(env: simpy.Environment, time_s: float) -> Generator[simpy.Event, None, None]:
    """Wait until exactly time_s, although the clock adds the delay to its current time and may round the sum."""
    if env.now + (time_s - env.now) != time_s:
        yield env.timeout(0.75 * (time_s - env.now))  # for a clock past time_s / 2, the difference is exact
    yield env.timeout(max(0.0, time_s - env.now))
