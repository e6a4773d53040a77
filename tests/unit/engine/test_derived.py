"""Test that a derived value stays the same object until its inputs change, and is then computed again."""

from typing import Any

import numpy as np
import pytest

from edgefl.engine.air.measurements import Survey
from edgefl.engine.derived import Derived, DerivedRows

NAN_M = np.array([[1.0, np.nan], [0.0, 2.0]])
SURVEY = Survey(NAN_M, NAN_M)


@pytest.mark.parametrize(
    ("first", "then", "same"),
    [
        (NAN_M, NAN_M.copy(), True),
        (NAN_M, NAN_M + 1e-15, False),
        (NAN_M, NAN_M[:1], False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (3, 3, True),
        (3, np.array([3, 3]), False),
        (SURVEY, SURVEY, True),
        (SURVEY, Survey(NAN_M, NAN_M), False),
    ],
)
def test_a_value_is_computed_again_where_what_it_follows_from_has_changed(
    first: Any, then: Any, same: bool
) -> None:
    asked = []

    def compute(one: Any, other: str) -> object:
        asked.append((one, other))
        return object()

    derived = Derived(compute)
    value = derived(first, "other")
    assert (derived(then, "other") is value) == same
    assert derived(then, "another") is not value, "a change of any input counts"
    assert [other for _, other in asked] == ["other"] * (2 - same) + ["another"]
    assert asked[0][0] is first
    assert asked[-1][0] is then


def test_rows_are_computed_again_each_by_its_own_stamp() -> None:
    asked: list[tuple[list[int], list[int]]] = []

    def compute(stamps: np.ndarray, rows: np.ndarray) -> np.ndarray:
        asked.append((stamps.tolist(), rows.tolist()))
        return 10.0 * stamps + rows

    derived = DerivedRows(compute, 4)
    assert derived(np.array([5, 5, 7]), np.array([0, 1, 3])).tolist() == [50.0, 51.0, 73.0]
    assert derived(np.array([7, 6, 5]), np.array([3, 1, 0])).tolist() == [73.0, 61.0, 50.0]
    assert derived(np.array([5]), np.array([1])).tolist() == [51.0], "earlier inputs are computed again"
    assert asked == [([5, 5, 7], [0, 1, 3]), ([6], [1]), ([5], [1])]
