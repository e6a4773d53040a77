"""Copy a strategy for each run, since a strategy that trains changes its own state."""

import copy
from collections.abc import Callable
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.learners.own import Assignment


def copies_of(strategy: Any) -> Callable[[Assignment], Any]:
    """Return a function that gives each cell of each run a new copy of a strategy, as the strategy is now."""
    try:
        kept = copy.deepcopy(strategy)
    except Exception as error:  # an attribute's own code may raise nearly anything
        return _once(strategy, error)
    return lambda told: copy.deepcopy(kept)


def _once(strategy: Any, why: Exception) -> Callable[[Assignment], Any]:
    """Return a function that gives away a strategy that cannot be copied, and raises if it is called again."""
    left = [strategy]

    def give(told: Assignment) -> Any:
        if not left:
            raise EdgeflError(
                f"{type(strategy).__name__} has already trained, and cannot be copied ({why}): for several runs or"
                " cells, pass a function that makes a strategy from an Assignment"
            )
        return left.pop()

    return give
