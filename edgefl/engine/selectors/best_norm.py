"""Choose the devices with the largest norm of their last update."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class BestNorm(CountedDecider):
    """Choose devices that have not yet taken part, then those with the largest norm of their last update.

    After Amiri, Gunduz, Kulkarni and Poor, IEEE Trans. Wireless Commun., 2021, policy BN2. In the paper, all devices
    train in each round and report the norm of their current update; here only participants train and report the norm,
    in 32 bits with their update. A device whose updates were all lost counts with the mean of all norms.
    """

    asks_norm: ClassVar[bool] = True

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        norm = candidates.presumed(candidates.norm)
        order = np.lexsort((rng.random(len(norm)), -norm))
        return Decision(candidates.ids_at(order[:number]))
