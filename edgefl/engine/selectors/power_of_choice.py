"""Draw d candidates, and choose those with the highest loss."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class PowerOfChoice(CountedDecider):
    """Draw d devices with probabilities proportional to their data, and choose those with the highest loss.

    Cho, Wang and Joshi, AISTATS 2022, variant rpow-d: participants report the loss of the received model in 32 bits
    with their update; the last report counts, and is infinite for devices that have never taken part. A device whose
    updates were all lost counts with the mean of all reports. With d = count, data size alone decides; with d = the
    number of present devices, the loss alone. Left out: pow-d and cpow-d, in
    which all d devices compute their current loss, at the cost of a download, a forward pass and a report each.
    """

    asks_loss: ClassVar[bool] = True
    d: int = Field(ge=1, le=1_000_000, description="number of candidates to draw, at least count")

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        held, many = np.maximum(candidates.held, 0.0), len(candidates)
        drawn = min(max(self.d, number), many)
        # weighted sampling without replacement: the d smallest exponential variates divided by the weights
        with np.errstate(divide="ignore"):
            arrives = rng.exponential(size=many) / held
        among = np.argsort(arrives, kind="stable")[:drawn]
        loss = candidates.presumed(candidates.loss)[among]
        return Decision(candidates.ids_at(among[np.argsort(-loss, kind="stable")[:number]]))
