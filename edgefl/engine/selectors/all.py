"""Everyone takes part."""

from collections.abc import Sequence

import numpy as np

from edgefl.engine.selectors import Selector


class All(Selector):
    """Every device that is present takes part."""

    def select(self, present: Sequence[int], rng: np.random.Generator) -> list[int]:
        return list(present)
