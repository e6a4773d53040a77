"""Servers, which decide when devices are dispatched, and when a model is made from the updates that have arrived."""

import math
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pydantic import Field

from edgefl.config.component import Component
from edgefl.contract import Staleness

__all__ = ["ServerPolicy", "ServerState", "WeighingServer"]


@dataclass(frozen=True)
class ServerState:
    """The state of a cell, as its server policy sees it.

    places: number of devices that may work at the same time. working: number of devices at work. arrived: number of
    updates that wait for the server. since_s: time of the last model, or start of training. now_s: simulated time.
    lost: number of jobs that have ended without an update since the last model.
    """

    places: int
    working: int
    arrived: int
    since_s: float = 0.0
    now_s: float = 0.0
    lost: int = 0


class ServerPolicy(Component):
    """Base class of all server policies, which decide when devices are dispatched and when models are made."""

    # whether devices are divided into tiers, each with its own model and synchronous rounds
    has_tiers: ClassVar[bool] = False

    @property
    @abstractmethod
    def learning(self) -> Staleness | None:
        """Weighting of stale updates, or None if rounds do not overlap and no update is stale.

        Without overlap, the server waits for all dispatched devices, or until `rounds` cuts them off.
        """

    @property
    def places(self) -> int | None:
        """Number of devices that may work at the same time, or None if the selector decides."""
        return None

    def takes(self, staleness: int) -> bool:
        """Return whether an update of this staleness may be aggregated."""
        return True

    def weights(self, arrives: Sequence[float]) -> Sequence[float] | None:
        """Return the weights of updates from their probabilities of arrival; None if the policy ignores them."""
        return None

    def tiers(self, seconds: Sequence[float]) -> tuple[int, ...]:
        """Return each device's tier, by id, with 0 the fastest; empty without tiers.

        With tiers, `room` and `ready` are called for each tier.

        Args:
            seconds: seconds that each device's processor takes per sample.
        """
        return ()

    def staleness_of(self, tiers: Sequence[int]) -> Staleness | None:
        """Return the weighting of stale updates, with each device's tier filled in."""
        learning = self.learning
        return learning and replace(learning, tiers=tuple(tiers))

    def room(self, state: ServerState) -> int:
        """Return the number of devices to dispatch now; called after every event."""
        return max(0, state.places - state.working)

    @abstractmethod
    def ready(self, state: ServerState) -> int:
        """Return the number of updates, in order of arrival, to aggregate into a model now; 0 if no model is due."""

    def looks_s(self, since_s: float) -> float:
        """Return the time at which `ready` is called even without an event, or inf.

        Args:
            since_s: time of the last model, or of the start of training.
        """
        return math.inf


class WeighingServer(ServerPolicy):
    """Base class of servers with overlapping rounds, which weight updates by staleness."""

    concurrency: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="number of devices at work at the same time, drawn at random from the idle devices; null: "
        "rounds.selector decides how many devices work, and which",
    )
    staleness: Literal["constant", "polynomial", "hinge"] = Field(
        "polynomial",
        description="weight of an update of staleness tau, the number of models made since its device started."
        " constant: 1; polynomial: 1 / sqrt(1 + tau); hinge: 1 up to 4, then 1 / (10 (tau - 4) + 1)",
    )
    exponent: ClassVar[float] = 0.5  # exponent of the polynomial, in FedBuff and FedAsync
    hinge_slope: ClassVar[float] = 10.0  # FedAsync's parameter a of the hinge
    hinge_after: ClassVar[int] = 4  # FedAsync's parameter b of the hinge
    max_staleness: int | None = Field(
        None, ge=0, le=1_000_000, description="largest tau; `beyond` applies above it; null: no limit"
    )
    beyond: Literal["drop", "cap"] = Field(
        "drop",
        description="treatment of an update staler than max_staleness. drop: it is lost; cap: tau = max_staleness",
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


def dropped(server: ServerPolicy, not_taken: int, arrived: int) -> Iterator[str]:
    """Note updates that a server with a limit of staleness dropped, as counted in a run."""
    if not server.takes(sys.maxsize):
        yield (
            f"rounds.server: {not_taken:,} of {arrived:,} updates that arrived were too stale and therefore dropped,"
            " which wasted their joules; a larger max_staleness or beyond: cap keeps them, and a lower concurrency"
            " makes updates less stale"
        )
