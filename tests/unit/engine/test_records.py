"""Test averages of a round's scores over cells."""

import pytest

from edgefl.engine.records import average_columns


def test_a_mean_is_of_the_cells_that_are_filled() -> None:
    """Averages skip empty cells, have a deviation and a sample-weighted mean, and are None if all cells are empty."""
    scalars = {"hits": (0.5, None, 0.9), "of": (10, 1000, 30), "none": (None, None, None)}
    found = average_columns({"hits": "of", "none": "of"}, scalars)
    assert [found[name] for name in ("hits", "hits_std", "hits_by_samples")] == pytest.approx([0.7, 0.2, 0.8])
    assert [found[name] for name in ("none", "none_std", "none_by_samples")] == [None] * 3
    assert average_columns({}, scalars) == {}
