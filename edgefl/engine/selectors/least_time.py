"""Shares with which the round ends soonest."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors import _allocation as allocation
from edgefl.engine.selectors._resources import decision, drawn


class LeastTime(CountedDecider):
    """Draw participants at random, and let all their uploads end at the same time, the soonest.

    Each has its highest clock and its largest power; the band goes to those who are late: what one computes longer,
    and what one's link is weaker. Shi et al., IEEE Trans. Wireless Commun. 2021, and many others solve this problem.
    The downlink's shares are the scheduler's.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power", "clock"})

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        chosen = drawn(candidates, number, rng)
        return decision(chosen, lambda those: lambda of, near: allocation.least_time(of, those.down_s)[1])
