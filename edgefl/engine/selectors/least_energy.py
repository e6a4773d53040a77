"""Shares, powers and clocks of the fewest joules by a deadline."""

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors import _allocation as allocation
from edgefl.engine.selectors._resources import Allocate, decision, drawn


class LeastEnergy(CountedDecider):
    """Draw participants at random, and let them be done by a time with the fewest joules of computing and sending.

    Share of the band, power and clock of all together, as in Yang et al., IEEE Trans. Wireless Commun. 2021: see
    `edgefl.engine.selectors._allocation.least_energy`. The optimum is that of mean rates over fading; a round of the
    engine has the fading that comes, so that some updates end later and others sooner. The downlink's shares are the
    scheduler's.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power", "clock"})
    deadline_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="by when all are done, s; none: rounds.deadline_s, or slack times the least",
    )
    slack: float = Field(
        1.5, ge=1, le=1e6, description="without a deadline: time over the least in which all could be done"
    )
    margin: ClassVar[float] = 0.9  # share of a deadline that is planned for; the rest is for fading

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        chosen = drawn(candidates, number, rng)
        end_s = (self.deadline_s or chosen.deadline_s) * self.margin

        def until(those: Candidates) -> Allocate:
            def allocate(of: allocation.Uploads, near: allocation.Allocation | None) -> allocation.Allocation:
                soonest = allocation.least_time(of, those.down_s)
                until_s = self.slack * soonest[0] if math.isinf(end_s) else end_s
                return allocation.least_energy(of, those.down_s, soonest, until_s, near)

            return allocate

        return decision(chosen, until)
