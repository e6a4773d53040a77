"""Compute the shares, powers and clocks that meet a deadline with the fewest joules."""

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors import _allocation as allocation
from edgefl.engine.selectors._resources import Allocate, decision, drawn


class LeastEnergy(CountedDecider):
    """Draw participants at random, and minimise the joules that they need to compute and send by the deadline.

    Shares of the band, powers and clocks are optimised together, as in Yang et al., IEEE Trans. Wireless Commun.
    2021: see `edgefl.engine.selectors._allocation.least_energy`. The optimum assumes mean rates over fading; with
    actual fading, some updates end later and others earlier. The scheduler sets the downlink's shares.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power", "clock"})
    deadline_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description=(
            "deadline of a round; if left out, rounds.deadline_s; if that is null, slack times the shortest time"
        ),
    )
    slack: float = Field(
        1.5,
        ge=1,
        le=1e6,
        description="without a deadline: the round's time, as a multiple of the shortest possible time",
    )
    margin: ClassVar[float] = 0.9  # fraction of the deadline to plan for; the rest is a margin for fading

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        chosen = drawn(candidates, number, rng)
        end_s = (self.deadline_s or chosen.deadline_s) * self.margin

        def until(those: Candidates) -> Allocate:
            def allocate(of: allocation.Uploads, near: allocation.Allocation | None) -> allocation.Allocation:
                soonest = allocation.least_time(of, those.before_work_s)
                until_s = self.slack * soonest[0] if math.isinf(end_s) else end_s
                return allocation.least_energy(of, those.before_work_s, soonest, until_s, near)

            return allocate

        return decision(chosen, until)
