"""Columns of rows that are computed from other columns."""

import pytest

from edgefl.engine.records import average_columns


def test_a_mean_is_of_the_cells_that_are_filled() -> None:
    """Scores 0.5 (10 samples) and 0.9 (30): mean 0.7, deviation 0.2, weighted by samples 0.8; no devices: None."""
    scalars = {"hits": (0.5, None, 0.9), "of": (10, 1000, 30), "none": (None, None, None)}
    found = average_columns({"hits": "of", "none": "of"}, scalars)
    assert [found[name] for name in ("hits", "hits_std", "hits_by_samples")] == pytest.approx([0.7, 0.2, 0.8])
    assert [found[name] for name in ("none", "none_std", "none_by_samples")] == [None] * 3
    assert average_columns({}, scalars) == {}
