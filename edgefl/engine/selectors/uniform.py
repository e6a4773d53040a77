"""A uniform random sample takes part."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from edgefl.engine.selectors import Selector


class Uniform(Selector):
    """A fixed number of devices, drawn without replacement; all of them when fewer are present.

    Source: McMahan et al., AISTATS 2017 (client fraction C), as a count.
    """

    count: int = Field(ge=1, description="participants per round")

    def select(self, present: Sequence[int], rng: np.random.Generator) -> list[int]:
        chosen = rng.permutation(len(present))[: self.count]
        return sorted(present[i] for i in chosen)
