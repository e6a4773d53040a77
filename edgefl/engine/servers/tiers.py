"""Synchronous tiers of devices of similar speed; the global model is a weighted mean of the tiers' models."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.contract import Staleness
from edgefl.engine.servers import ServerPolicy, ServerState


class Tiers(ServerPolicy):
    """Run synchronous rounds in each tier; tiers do not wait for one another.

    Chai et al., FedAT, SC 2021: a tier's model w_m is the mean of its devices' models, and its devices start next
    from the global model sum_m a_m w_m. Here a_m is the share of all models so far that were made by the tier of the
    opposite rank, M + 1 - m, so that slow tiers have influence. Until the slowest tier has made a model, the
    session's opening model takes its place in the sum. A tier without devices in a cell's session is left out of the
    sum and of the ranks; when its first device comes, the tier begins with the latest global model. Left out: FedAT's
    compression, and its proximal term on local models (use the algorithm fedprox).

    Tiers have equal size, with devices sorted by seconds per sample, then by id. A single tier is `synchronous`.
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
