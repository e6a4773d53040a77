"""Values that follow from others, computed again only where what they follow from has changed."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, TypeVarTuple

import numpy as np

Of = TypeVarTuple("Of")
Value = TypeVar("Value")


class Derived(Generic[*Of, Value]):
    """One value with a stamp: what it was computed from. Asked with the same, it is the same object again.

    Arrays are the same if their elements are, bit by bit, so that nan is nan; all else if it is equal. What is handed
    in is kept: neither it nor the value may be written to.

    Args:
        compute: a function of what it is asked with, and of nothing else that changes.
    """

    def __init__(self, compute: Callable[[*Of], Value]) -> None:
        self._compute = compute
        self._known: tuple[tuple[*Of], Value] | None = None

    def __call__(self, *of: *Of) -> Value:
        if self._known is None or not all(map(_same, self._known[0], of)):
            self._known = of, self._compute(*of)
        return self._known[1]


class DerivedRows:
    """A number for each of many, with a stamp for each: computed again for those alone whose stamp is another.

    Args:
        compute: stamps [n], rows [n] -> [n] their numbers.
        count: of all rows.
    """

    def __init__(self, compute: Callable[[np.ndarray, np.ndarray], np.ndarray], count: int) -> None:
        self._compute = compute
        self._of = np.full(count, -1)
        self._values = np.zeros(count)

    def __call__(self, of: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return [n] the numbers of rows [n] whose stamps are `of` [n], each >= 0."""
        values: np.ndarray = self._values[rows]
        changed = np.flatnonzero(self._of[rows] != of)
        if len(changed):
            stamps, anew = of[changed], rows[changed]
            values[changed] = self._compute(stamps, anew)
            self._of[anew], self._values[anew] = stamps, values[changed]
        return values


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return one is other or (type(one) is type(other) and bool(one == other))
    return one is other or np.array_equal(_bits(one), _bits(other))


def _bits(values: np.ndarray) -> np.ndarray:
    """Return what two arrays that are alike have alike: nan is no number, and equal to none."""
    return values.view(np.int64) if values.dtype == np.float64 else values
