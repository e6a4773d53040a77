"""Choose the devices with the best channel."""

import numpy as np

from edgefl.engine.selectors import Candidates, CountedSelector


class BestChannel(CountedSelector):
    """Choose the devices with the highest gain, including shadowing; rounds are fast, but exclude distant devices.

    Source: the policy "BC" of Amiri, Gunduz, Kulkarni and Poor, IEEE Trans. Wireless Commun., 2021.
    """

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        best = np.argsort(-candidates.gains_db, kind="stable")[:number]
        return sorted(candidates.ids[i] for i in best)
