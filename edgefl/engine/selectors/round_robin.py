"""Choose devices in turn."""

import numpy as np

from edgefl.engine.selectors import Candidates, CountedSelector


class RoundRobinSelector(CountedSelector):
    """Devices that are present take turns in the order of their ids.

    As long as the same devices are present, their numbers of participations differ by at most one.
    """

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        first = candidates.turn * self.wanted(len(candidates.ids)) % len(candidates.ids)
        order = [*candidates.ids[first:], *candidates.ids[:first]]
        return sorted(order[:number])
