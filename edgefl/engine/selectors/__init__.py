"""Selectors: which of the devices present take part in a round."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from edgefl.component import Component


class Selector(Component):
    """Base of all selectors."""

    @abstractmethod
    def select(self, present: Sequence[int], rng: np.random.Generator) -> list[int]:
        """Sorted ids of the participants, at least one; `present` is sorted and not empty."""
