"""Tiers of devices of similar speed, each synchronous, with a global model that is the mean of the tiers' models."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.contract import Staleness
from edgefl.engine.servers import ServerPolicy, ServerState


class Tiers(ServerPolicy):
    """Run synchronous rounds in each tier; tiers do not wait for one another.

    Chai et al., FedAT, SC 2021: a tier's model w_m becomes the mean of its devices' models, and the global model,
    from which they start next, is sum_m a_m w_m. Here a_m is the share that the tier of the opposite rank,
    M + 1 - m, has in all tiers' models so far, so that slow tiers have influence. Until the slowest tier has made a
    model, the session's opening model takes its place in the sum. Left out: FedAT's compression, and its constraint
    on local models (take the algorithm fedprox).

    Tiers have equal size; devices are sorted by seconds per sample, and ties by id. One tier alone is `synchronous`.
    """

    has_tiers: ClassVar = True

    count: int = Field(3, ge=1, le=1000, description="number of tiers")

    @property
    def learning(self) -> Staleness:
        return Staleness("constant")

    def tiers(self, seconds: Sequence[float]) -> tuple[int, ...]:
        order = np.argsort(np.argsort(seconds, kind="stable"), kind="stable")
        return tuple((order * self.count // len(seconds)).tolist())

    def room(self, state: ServerState) -> int:
        return 0 if state.working or state.arrived else state.places

    def ready(self, state: ServerState) -> int:
        return 0 if state.working else state.arrived
