"""Compute the shares, powers and clocks that trade joules against seconds, in closed form."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors import _allocation as allocation
from edgefl.engine.selectors._resources import decision, drawn


class Fedl(CountedDecider):
    """Draw participants at random, and minimise their joules + kappa x seconds of computing and sending.

    Dinh, Tran et al., IEEE/ACM Trans. Networking, 2021, problems SUB1 and SUB2, in closed form with Lambert's W:
    see `edgefl.engine.selectors._allocation.fedl`. Instead of taking turns on the whole band, devices send together,
    each on a share of the band. Left out: the paper's choice of the local accuracy (SUB3), and its minimum power and
    clock, which `allocation.fedl` supports.
    """

    sets: ClassVar[frozenset[str]] = frozenset({"shares", "power", "clock"})
    kappa: float = Field(1.0, gt=0, le=1e9, description="price of a round's duration, J/s")

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        chosen = drawn(candidates, number, rng)
        return decision(chosen, lambda _: lambda of, near: allocation.fedl(of, self.kappa))
