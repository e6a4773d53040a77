"""Cached values, recomputed only when their inputs change."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, TypeVarTuple

import numpy as np

Of = TypeVarTuple("Of")
Value = TypeVar("Value")


class Derived(Generic[*Of, Value]):
    """A cached value, stored with the inputs of its computation; calls with the same inputs return the same object.

    Arrays match if their bits do, so that nan matches nan; other values match if they are equal. Inputs and value are
    kept by reference, so a caller must not modify either.

    Args:
        compute: a function whose value depends only on its arguments and on things that never change.
    """

    def __init__(self, compute: Callable[[*Of], Value]) -> None:
        self._compute = compute
        self._known: tuple[tuple[*Of], Value] | None = None

    def __call__(self, *of: *Of) -> Value:
        if self._known is None or not all(map(same, self._known[0], of)):
            self._known = of, self._compute(*of)
        return self._known[1]


class DerivedRows:
    """A cached number per row, recomputed only when the row's stamp has changed.

    Args:
        compute: returns the values [n] of rows [n] with stamps [n].
        count: number of rows.
    """

    def __init__(self, compute: Callable[[np.ndarray, np.ndarray], np.ndarray], count: int) -> None:
        self._compute = compute
        self._of = np.full(count, -1)
        self._values = np.zeros(count)

    def __call__(self, of: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the cached values [n] of rows [n], given the rows' stamps `of` [n], each >= 0."""
        values: np.ndarray = self._values[rows]
        changed = np.flatnonzero(self._of[rows] != of)
        if len(changed):
            stamps, anew = of[changed], rows[changed]
            values[changed] = self._compute(stamps, anew)
            self._of[anew], self._values[anew] = stamps, values[changed]
        return values


def same(one: Any, other: Any) -> bool:
    """Return whether two inputs match, as `Derived` compares them."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return one is other or (type(one) is type(other) and bool(one == other))
    return one is other or np.array_equal(_bits(one), _bits(other))


def _bits(values: np.ndarray) -> np.ndarray:
    """View a float array as integers, since nan does not equal itself; return other arrays unchanged."""
    return values.view(np.int64) if values.dtype == np.float64 else values
