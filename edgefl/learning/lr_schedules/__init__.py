"""Learning rate schedules, which change the rate of local training from round to round."""

from abc import abstractmethod
from numbers import Real
from typing import ClassVar

from pydantic import Field

from edgefl.config.answers import wrong
from edgefl.config.component import Component

__all__ = ["LrSchedule"]


class LrSchedule(Component):
    """Base class of all schedules. Each schedule defines a shape that starts at 1 and decreases.

    A round's rate is lr (floor + (1 - floor) shape^power), with `learning.local.lr`, `lr_floor` and `lr_power`. The
    schedule restarts with each session, since devices and labels change. With `rounds`, the schedule instead runs
    through all sessions for this number of rounds of the cell's global model, and then stays at its final value.
    Probe rounds have their own rate (`learning.local.probe_lr`).
    """

    rounds: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="length of the schedule in rounds, counted over all sessions; null: the length of each session",
    )
    warm_up: ClassVar[int] = 0  # rounds of linear warm-up; round t has t / (warm_up + 1) of the rate

    @abstractmethod
    def shape(self, round_: int, progress: float) -> float:
        """Return the shape of the decay in a round, in [0, 1].

        Args:
            round_: number of the round in the session, from 1; with `rounds`, its number in the run. If rounds
                overlap, the number of the model that is made next.
            progress: share of the session, or of `rounds`, that has passed when the round begins, in [0, 1].
        """

    def share(self, power: float, floor: float, *, round_: int, progress: float, of_run: int) -> float:
        """Return a round's rate as a share of `learning.local.lr`.

        Args:
            power, floor: `learning.local.lr_power` and `lr_floor`.
            round_, progress: round and progress of the session, as in `shape`.
            of_run: rounds of the cell's global model so far, including this one.
        """
        if self.rounds is not None:
            round_, progress = of_run, min(1.0, (of_run - 1) / self.rounds)
        shape = self.shape(round_, progress)
        if not (isinstance(shape, Real) and 0 <= shape <= 1):
            raise wrong(self.shape, shape, "a number in [0, 1]", "learning", "local", "lr_schedule")
        share = floor + (1 - floor) * shape**power
        return share * round_ / (self.warm_up + 1) if round_ <= self.warm_up else share
