"""Concept drifts, which change the labels or inputs of some devices' samples from a given time on.

A component's `change` defines what the drift changes; the base class defines when data change, on which devices, and
in which pattern.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from edgefl.config.component import Component
from edgefl.learning.datasets import Split

__all__ = ["Drift", "Moment"]

Site = Annotated[int, Field(ge=0, le=100_000)]
ROUNDING = 1e-9  # tolerance, so that a share of 0.2 + 0.2 + 0.2 of ten devices is six devices


@dataclass(frozen=True)
class Moment:
    """A round of a cell's global model: its number, from 1 over all sessions, and its start in simulated time."""

    round: int
    time_s: float


class Drift(Component):
    """Base class of all drifts from one concept to another; at any time a device has one of the two concepts.

    - sudden: from `at` on, `share` of the devices have the new concept.
    - incremental: at `at`, and again after each interval `every`, another fifth of all devices gets the new concept,
      until `share` of the devices have it.
    - recurrent: from `at` on, `share` of the devices alternate between the new and the old concept, each for `every`.

    Devices drift in a random order that is a function of the seed. With `cells`, only devices in these cells drift,
    and shares refer to these devices: a device has the new concept while it trains with a server of these cells. Test
    data drift together with the devices.

    The three patterns and their parameters: Panchal et al., FLASH, ICML 2023, section 5.1. `clock` and `cells` are
    our additions.
    """

    # whether the drift changes labels, so that it is an error for tasks without classes
    of_classes: ClassVar[bool] = False
    step: ClassVar[float] = 0.2  # share of devices that each incremental step adds: FLASH, 5.1

    pattern: Literal["sudden", "incremental", "recurrent"] = Field("sudden", description="how devices drift")
    clock: Literal["rounds", "seconds"] = Field(
        "rounds",
        description="unit of `at` and `every`. rounds: rounds of a cell's global model, counted over all sessions;"
        " seconds: simulated seconds; changes take effect in the next round that begins",
    )
    at: float = Field(
        50.0, gt=0, le=1e9, description="when the new concept begins: a round's number, or simulated seconds"
    )
    every: float = Field(
        100.0, gt=0, le=1e9, description="interval between steps (incremental) or changes (recurrent)"
    )
    share: float = Field(1.0, ge=0, le=1, description="share of devices that ever drift")
    cells: tuple[Site, ...] | None = Field(None, description="cells in which devices drift; null: all cells")

    @abstractmethod
    def change(self, split: Split, classes: int) -> Split:
        """Return samples with the new concept, in the same order, shape and type.

        Reuse arrays that do not change (`x=split.x`) instead of copying them, so that they are in memory only once.

        Raises:
            EdgeflError: this drift cannot change such data.
        """

    @property
    def sees_time(self) -> bool:
        """Whether the drifted share depends on simulated time rather than on rounds alone."""
        return self.clock == "seconds" or type(self).drifted_share is not Drift.drifted_share

    def notes(self, rounds: int) -> Iterator[str]:
        """Yield a note if the run's last round comes before the drift, so that no data change."""
        if self.at > rounds and not self.sees_time:
            yield (
                f"learning.drift.at {self.at:g} is after the run's last round, {rounds:,}, so no data will change:"
                " choose an earlier round, or more sessions or rounds"
            )

    def drifted_share(self, moment: Moment) -> float:
        """Return the share of devices that have the new concept at a moment, in [0, 1]."""
        now = moment.round if self.clock == "rounds" else moment.time_s
        if now < self.at:
            return 0.0
        periods = int((now - self.at) / self.every + ROUNDING)
        if self.pattern == "incremental":
            return min(self.share, self.step * (periods + 1))
        if self.pattern == "recurrent" and periods % 2:
            return 0.0
        return self.share
