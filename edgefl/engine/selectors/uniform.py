"""Choose devices uniformly at random."""

import numpy as np

from edgefl.engine.selectors import Candidates, CountedSelector


class Uniform(CountedSelector):
    """Draw devices without replacement. McMahan et al., AISTATS 2017, with a count instead of the fraction C."""

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        chosen = rng.permutation(len(candidates.ids))[:number]
        return sorted(candidates.ids[i] for i in chosen)
