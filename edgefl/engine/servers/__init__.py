"""Servers: when devices begin to work, and when a model is made of the updates that have arrived."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pydantic import Field

from edgefl.config.component import Component
from edgefl.contract import Staleness

__all__ = ["ServerPolicy", "ServerState", "WeighingServer"]


@dataclass(frozen=True)
class ServerState:
    """What a policy may know of its cell at a moment.

    places: devices that may work at the same time. working: that do. arrived: updates that wait for the server.
    since_s: when the last model was made, or training began. now_s: simulated time. lost: jobs that have ended
    without an update since the last model.
    """

    places: int
    working: int
    arrived: int
    since_s: float = 0.0
    now_s: float = 0.0
    lost: int = 0


class ServerPolicy(Component):
    """Base of all servers: how many devices begin now, and how many updates are made a model."""

    # whether devices have tiers, each with a model of its own, whose devices begin together
    has_tiers: ClassVar[bool] = False

    @property
    @abstractmethod
    def learning(self) -> Staleness | None:
        """What stale updates count in training.

        None: none is stale, as a round ends before the next begins. The server then waits for all who have begun,
        or until `rounds` cuts them off.
        """

    @property
    def places(self) -> int | None:
        """Devices that may work at the same time; None: as many as the selector takes."""
        return None

    def takes(self, staleness: int) -> bool:
        """Return whether an update of this staleness is taken into a model."""
        return True

    def tiers(self, seconds: Sequence[float]) -> tuple[int, ...]:
        """Return the tier of each device by id, 0 the fastest; none: there are no tiers.

        A server with tiers is asked for `room` and `ready` of each tier by itself.

        Args:
            seconds: that each device's processor takes for a sample.
        """
        return ()

    def staleness_of(self, tiers: Sequence[int]) -> Staleness | None:
        """Return what stale updates count, with the tier of each device of the run."""
        learning = self.learning
        return learning and replace(learning, tiers=tuple(tiers))

    def room(self, state: ServerState) -> int:
        """Return how many devices may begin now; asked whenever something has happened."""
        return max(0, state.places - state.working)

    @abstractmethod
    def ready(self, state: ServerState) -> int:
        """Return how many of the updates that wait are made a model now, the first to arrive first; 0: none yet."""

    def looks_s(self, since_s: float) -> float:
        """Return the time at which `ready` is asked although nothing happens; inf: never.

        Args:
            since_s: as in `ServerState`.
        """
        return math.inf


class WeighingServer(ServerPolicy):
    """Base of servers whose rounds overlap, and whose updates weigh by their staleness."""

    concurrency: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="devices that work at the same time, drawn at random from those that are idle; none: as many as"
        " rounds.selector takes, and as it chooses",
    )
    staleness: Literal["constant", "polynomial", "hinge"] = Field(
        "polynomial",
        description="what an update counts of which tau models were made since it began: constant 1; polynomial"
        " 1 / sqrt(1 + tau); hinge 1 up to 4, then 1 / (10 (tau - 4) + 1)",
    )
    exponent: ClassVar[float] = 0.5  # of the polynomial, in FedBuff and FedAsync
    hinge_slope: ClassVar[float] = 10.0  # a of the hinge, by FedAsync
    hinge_after: ClassVar[int] = 4  # b of the hinge, by FedAsync
    max_staleness: int | None = Field(
        None, ge=0, le=1_000_000, description="largest tau that counts as it is; none: any"
    )
    beyond: Literal["drop", "cap"] = Field(
        "drop",
        description="what becomes of an update staler than max_staleness: drop it, or cap its tau",
    )

    @property
    def learning(self) -> Staleness:
        return Staleness(
            law=self.staleness,
            exponent=self.exponent,
            slope=self.hinge_slope,
            after=self.hinge_after,
            cap=self.max_staleness if self.beyond == "cap" else None,
        )

    @property
    def places(self) -> int | None:
        return self.concurrency

    def takes(self, staleness: int) -> bool:
        return self.max_staleness is None or self.beyond == "cap" or staleness <= self.max_staleness
