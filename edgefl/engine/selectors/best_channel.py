"""Those with the best channel take part."""

import numpy as np

from edgefl.engine.selectors import Candidates, CountedSelector


class BestChannel(CountedSelector):
    """The devices of largest path gain with shadowing; fast rounds, at the price of who is never heard.

    Source: the policy "BC" of Amiri, Gunduz, Kulkarni and Poor, IEEE Trans. Wireless Commun., 2021.
    """

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        best = np.argsort(-candidates.gains_db, kind="stable")[:number]
        return sorted(candidates.ids[i] for i in best)
