"""Compare intervals and paired tests with hand derivations and with SciPy."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from edgefl.analysis.measures.uncertainty import ends, half_width, paired, paired_ratio, shown_ends, wilcoxon


def test_the_interval_is_students() -> None:
    """With three values of standard deviation 1, the half width is t(0.975, 2) / sqrt(3); in tables t = 4.302653."""
    assert half_width([1, 2, 3]) == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert math.isnan(half_width([1.0]))
    assert math.isnan(half_width([1.0, math.inf]))


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Of 1,000 intervals of means of 5 normals, 95 % cover the mean, within 4 standard errors of 0.7 points each."""
    draws, rng = 1000, np.random.default_rng(7)
    samples = rng.normal(1.0, 2.0, (draws, 5))
    covered = sum(abs(sample.mean() - 1.0) <= half_width(sample) for sample in samples)
    assert abs(covered / draws - 0.95) < 4 * math.sqrt(0.95 * 0.05 / draws)


def test_the_smallest_p_of_signed_ranks_is_counted_by_hand() -> None:
    """If n differences have the same sign, two of the 2^n combinations of signs are as extreme."""
    for n in (1, 3, 6):
        assert wilcoxon(range(1, n + 1)) == pytest.approx(2 / 2**n)
    # with ranks 1.5, 1.5, 3 and signs +, -, +, the smaller sum is 1.5; 3 of the 8 possible sums are at most 1.5
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


def test_signed_ranks_with_ties_and_zeros_agree_with_an_enumeration() -> None:
    """The test uses mid-ranks of non-zero magnitudes; under the null hypothesis both signs are equally likely."""
    differences = [0.0, 0.5, -0.5, 0.5, 1.0, 1.0, 1.5, -2.0, 2.0, 2.0, 0.0, 3.0]
    some = np.array([one for one in differences if one])
    ranks = stats.rankdata(np.abs(some))
    signs = np.array(list(itertools.product([0, 1], repeat=len(some))))
    sums, seen = signs @ ranks, float(ranks[some > 0].sum())
    smaller = min(seen, ranks.sum() - seen)
    assert wilcoxon(differences) == pytest.approx(min(1.0, 2 * float((sums <= smaller).mean())))


def test_pairs_with_an_infinite_number_are_left_out() -> None:
    found = paired([1, 2, math.inf, math.nan], [0, 1.5, 1, 1])
    assert (found.pairs, found.mean) == (2, 0.75)
    assert paired([math.inf], [1]).pairs == 0
    assert math.isnan(paired([1], [0]).p_t)


def test_the_interval_of_a_ratio_is_a_t_interval_of_its_logarithm() -> None:
    """Ratios 1, 2, 4 have logarithms 0, 1, 2 times log 2, so their mean is 2 and half width 4.302653 / sqrt(3)."""
    found = paired_ratio([1.0, 6.0, 20.0], [1.0, 3.0, 5.0])
    half = 4.302653 / math.sqrt(3)
    assert (found.pairs, found.mean) == (3, pytest.approx(2.0))
    assert (found.low, found.high) == pytest.approx((2 * 2**-half, 2 * 2**half), rel=1e-6)
    assert found.low > 0
    assert not found.decided
    assert paired_ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]).decided


def test_pairs_without_a_ratio_are_left_out() -> None:
    found = paired_ratio([1.0, math.inf, 3.0, 5.0], [2.0, 1.0, math.nan, 0.0])
    assert (found.pairs, found.mean) == (1, 0.5)
    assert math.isnan(found.low)
    assert not found.decided


def test_the_ends_of_a_mean_are_positive_and_near_those_of_the_plain_interval() -> None:
    """The lower end is mean exp(-half/mean) = mean - half + half^2 / (2 mean) - ..., here 100 - 1 + 0.005."""
    low, high = ends(100.0, 1.0)
    assert (low, high) == pytest.approx((99.005, 101.005), abs=1e-3)
    assert 0 < ends(1.0, 50.0)[0] < 1 < ends(1.0, 50.0)[1]
    assert ends(1.0, 1e6) == (0.0, math.inf)
    assert all(map(math.isnan, ends(1.0, math.nan)))


def test_two_pairs_show_their_range_and_decide_nothing() -> None:
    ratio, difference = paired_ratio([2.0, 8.0], [1.0, 1.0]), paired([3.0, 5.0], [1.0, 1.0])
    assert ratio.ends == pytest.approx((2.0, 8.0))
    assert difference.ends == pytest.approx((2.0, 4.0))
    assert shown_ends(4.0, half_width([3.0, 5.0]), 2) == pytest.approx((3.0, 5.0))
    # an interval of two equal ratios has no width, but two pairs decide nothing
    assert not paired_ratio([2.0, 2.0], [1.0, 1.0]).decided
    assert not paired([3.0, 3.0], [1.0, 1.0]).decided


def test_three_pairs_show_their_interval() -> None:
    ratio, difference = paired_ratio([2.0, 2.2, 2.1], [1.0] * 3), paired([2.0, 2.2, 2.1], [1.0] * 3)
    assert ratio.ends == (ratio.low, ratio.high)
    assert difference.ends == (
        difference.mean - difference.half_width,
        difference.mean + difference.half_width,
    )
    assert ratio.decided
    assert difference.decided
