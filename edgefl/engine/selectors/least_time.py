"""Compute the shares of the band with which the round ends earliest."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors import _allocation as allocation
from edgefl.engine.selectors._resources import decision, drawn


class LeastTime(CountedDecider):
    """Draw participants at random, and set shares with which all uploads end together, as early as possible.

    Each device uses its maximum clock and power; devices that compute longer or have weaker links get more of the
    band. For this problem see Shi et al., IEEE Trans. Wireless Commun. 2021, among many others. The scheduler sets
    the downlink's shares.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power", "clock"})

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        chosen = drawn(candidates, number, rng)
        return decision(
            chosen, lambda those: lambda of, near: allocation.least_time(of, those.before_work_s)[1]
        )
