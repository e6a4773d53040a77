"""Choose all devices."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, Selector


class All(Selector):
    """Choose all devices that are present; if fewer are wanted, draw them at random."""

    fills_places: ClassVar = True

    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        ids = candidates.ids
        if number == len(ids):
            return list(ids)
        return sorted(ids[place] for place in rng.permutation(len(ids))[:number])
