"""Draw d candidates; choose those with the highest loss."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class PowerOfChoice(CountedDecider):
    """Draw d devices with probabilities proportional to their data, and choose those with the highest loss.

    Cho, Wang and Joshi, AISTATS 2022, in the form rpow-d: the loss is that of the model received at a device's last
    participation, reported in 32 bits with its update; a device that has never taken part has an infinite loss.
    d = count draws by data size alone; d equal to the number of present devices is greedy. Left out: pow-d and
    cpow-d, where all d devices compute their loss again, at the cost of a download, a forward pass and a report each.
    """

    asks_loss: ClassVar[bool] = True
    d: int = Field(ge=1, le=1_000_000, description="number of candidates to draw, at least count")

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        held, many = np.maximum(candidates.held, 0.0), len(candidates)
        drawn = min(max(self.d, number), many)
        # weighted draw without replacement: the d smallest of exponential numbers divided by the weights
        with np.errstate(divide="ignore"):
            arrives = rng.exponential(size=many) / held
        among = np.argsort(arrives, kind="stable")[:drawn]
        loss = np.where(np.isnan(candidates.loss), np.inf, candidates.loss)[among]
        return Decision(candidates.ids_at(among[np.argsort(-loss, kind="stable")[:number]]))
