"""Choose devices in turn."""

import numpy as np

from edgefl.engine.selectors import Candidates, CountedSelector


class RoundRobinSelector(CountedSelector):
    """Choose the devices that were selected longest ago; devices that never were come first, in the order of ids.

    As long as the same devices are present, their numbers of participations differ by at most one. If rounds overlap,
    the idle device that was dispatched first is dispatched next.
    """

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        longest_ago = np.argsort(candidates.last, kind="stable")[:number]
        return sorted(candidates.ids[place] for place in longest_ago)
