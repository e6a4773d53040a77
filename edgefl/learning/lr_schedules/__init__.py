"""Learning rate schedules: how the rate of local training changes from round to round."""

from abc import abstractmethod
from typing import ClassVar

from pydantic import Field

from edgefl.config.component import Component

__all__ = ["LrSchedule"]


class LrSchedule(Component):
    """Base of all schedules: a shape, which begins at 1 and falls; how it is used is the same for all of them.

    A round's rate is lr (floor + (1 - floor) shape^power), with `learning.local.lr`, `lr_floor` and `lr_power`. It
    begins anew with each session, as devices and labels do. With `rounds` it goes on through all sessions, for so
    many rounds of the cell's global model, and stays at its end from then on. Probe rounds have a rate of their own
    (`learning.local.probe_lr`).
    """

    rounds: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="length in rounds of the cell's global model, over all sessions; none: that of each session",
    )
    warm_up: ClassVar[int] = 0  # first rounds, t / (warm_up + 1) of the rate in round t; the papers have none

    @abstractmethod
    def shape(self, round_: int, progress: float) -> float:
        """Return the shape of the decay in a round, in [0, 1].

        Args:
            round_: of the session, from 1 on, or with `rounds` of the run.
            progress: share of the session, or of `rounds`, that is over when the round begins, in [0, 1].
        """

    def share(self, power: float, floor: float, *, round_: int, progress: float, of_run: int) -> float:
        """Return the share of `learning.local.lr` that a round has.

        Args:
            power, floor: `learning.local.lr_power` and `lr_floor`.
            round_, progress: of the session, as in `shape`.
            of_run: rounds of the cell's global model so far, this one counted.
        """
        if self.rounds is not None:
            round_, progress = of_run, min(1.0, (of_run - 1) / self.rounds)
        share = floor + (1 - floor) * self.shape(round_, progress) ** power
        return share * round_ / (self.warm_up + 1) if round_ <= self.warm_up else share
