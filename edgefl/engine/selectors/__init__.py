"""Selectors: which of the devices present take part in a round."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from edgefl.config.component import Component

__all__ = ["Candidates", "CountedSelector", "Selector"]


@dataclass(frozen=True)
class Candidates:
    """The devices present in a cell, with what a selector may know about them."""

    ids: Sequence[int]  # sorted, at least one
    gains_db: np.ndarray  # [ids] large-scale gain of the coming round
    turn: int  # rounds this cell's server has run before


class Selector(Component):
    """Base of all selectors."""

    def wanted(self, present: int) -> int:
        """Return how many updates a round asks for, given the number of devices present."""
        return present

    @abstractmethod
    def select(self, candidates: Candidates, number: int, rng: np.random.Generator) -> list[int]:
        """Select `number` participants, 1 <= number <= len(candidates.ids); return their sorted ids."""


class CountedSelector(Selector):
    """Base of selectors that take a fixed number of devices; all of them when fewer are present."""

    count: int = Field(ge=1, le=1_000_000, description="participants per round")

    def wanted(self, present: int) -> int:
        return min(self.count, present)


def with_surplus(number: int, factor: float, present: int) -> int:
    """Return how many devices to select so that `number` updates arrive although some devices fail."""
    return min(present, math.ceil(number * factor))
