"""All devices take part."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, Selector


class All(Selector):
    """Every device that is present takes part."""

    fills_places: ClassVar = True

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        return list(candidates.ids)
