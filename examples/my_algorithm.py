"""Aggregate with a coordinate-wise trimmed mean."""

from pydantic import Field
from torch import Tensor

from edgefl.learning.algorithms import Algorithm, ServerState, Updates


class TrimmedMean(Algorithm):
    """Drop the extremes of each coordinate, so that a few bad updates cannot dominate the model.

    Of K updates, the int(trim K) largest and smallest values of each coordinate are dropped; the others have equal
    weight. Yin et al., ICML 2018. trim = 0 is FedAvg with equal amounts of data.
    """

    trim: float = Field(0.1, ge=0, lt=0.5, description="beta: share of the updates dropped at each end")

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        devices = len(updates.rows)
        dropped = int(self.trim * devices)
        in_order = updates.rows.sort(dim=0).values  # [K, M]
        return in_order[dropped : devices - dropped].mean(dim=0), state
