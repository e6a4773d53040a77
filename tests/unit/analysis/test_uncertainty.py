"""Intervals and paired tests, against derivations by hand and SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from analysis.uncertainty import half_width, paired, wilcoxon


def test_the_interval_is_students() -> None:
    """Three numbers of mean 2, deviation 1: t(0.975, 2 degrees) = 4.302653 (tables), over the root of 3."""
    assert half_width([1, 2, 3]) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert math.isnan(half_width([1.0]))
    assert math.isnan(half_width([1.0, math.inf]))


def test_the_interval_covers_as_often_as_it_says() -> None:
    """1,000 means of 5 normal numbers: coverage 95 % with a standard error of 0.7 points, accepted within four."""
    draws, rng = 1000, np.random.default_rng(7)
    samples = rng.normal(1.0, 2.0, (draws, 5))
    covered = sum(abs(sample.mean() - 1.0) <= half_width(sample) for sample in samples)
    assert abs(covered / draws - 0.95) < 4 * math.sqrt(0.95 * 0.05 / draws)


def test_the_smallest_p_of_signed_ranks_is_counted_by_hand() -> None:
    """n differences of one sign: of 2^n signs two are as far out."""
    for n in (1, 3, 6):
        assert wilcoxon(range(1, n + 1)) == pytest.approx(2 / 2**n)
    # ranks 1.5, 1.5, 3 of signs +, -, +: smaller sum 1.5; sums at most 1.5 of {0, 1.5, 1.5, ...}: 3 of 8
    assert wilcoxon([1, -1, 2]) == pytest.approx(2 * 3 / 8)
    assert wilcoxon([0.0, 0.0]) == 1.0


@pytest.mark.parametrize("n", [4, 12, 25, 60])
def test_both_tests_agree_with_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    one, other = rng.normal(0.3, 1, n), rng.normal(0, 1, n)
    found = paired(one, other)
    differences = one - other
    assert found.p_t == pytest.approx(stats.ttest_rel(one, other).pvalue)
    method, corrected = ("exact", False) if n <= 25 else ("approx", True)
    expected = stats.wilcoxon(differences, method=method, correction=corrected).pvalue
    assert found.p_wilcoxon == pytest.approx(expected)


def test_pairs_with_an_infinite_number_are_left_out() -> None:
    found = paired([1, 2, math.inf, math.nan], [0, 1.5, 1, 1])
    assert (found.pairs, found.mean) == (2, 0.75)
    assert paired([math.inf], [1]).pairs == 0
    assert math.isnan(paired([1], [0]).p_t)
