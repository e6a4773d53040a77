"""Test the interval that may be examined after every pair: by a martingale, early stopping cannot raise its error."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from edgefl.analysis.measures.sequential import half_width_factor, interval, pairs_wanted

ERROR = 0.05
STUDIES, PAIRS = 4_000, 60
SURE = 1e-6  # probability that a correct program fails here


def martingale(values: list[float] | np.ndarray, mean: float = 0.0) -> float:
    """Return B_n(mean), the evidence against this mean as defined in analysis/sequential.py, which starts at 1."""
    centred = np.asarray(values, float) - mean
    pairs = len(centred)
    if pairs < 2:
        return 1.0
    k = 1 + pairs  # the mixture over means has a spread of one standard deviation
    # the formula uses r = n mean^2 / (sum of squares around the mean), rewritten without a pole
    share = pairs * centred.mean() ** 2 / float(centred @ centred)
    return float(k**-0.5 * (1 - share + share / k) ** (-pairs / 2))


def most_misses(studies: int) -> int:
    """Return the number of misses exceeded with probability at most SURE if a study misses with probability ERROR."""
    return int(stats.binom.isf(SURE, studies, ERROR))


@pytest.mark.parametrize("pairs", [2, 3, 8, 30])
def test_its_mean_is_one(pairs: int) -> None:
    """B is a function of the t statistic, with mean 1 over Student's density."""
    k = 1 + pairs

    def evidence(t: float) -> float:
        r = t * t / (pairs - 1)
        return k**-0.5 * ((1 + r) / (1 + r / k)) ** (pairs / 2) * stats.t.pdf(t, pairs - 1)

    found = integrate.quad(evidence, -np.inf, np.inf, epsabs=1e-11)[0]
    assert found == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("seen", [1, 2, 5, 20])
def test_it_neither_rises_nor_falls_on_average(seen: int) -> None:
    """Given n values in units of |x_1|, the next is sqrt(sum x^2 / n) times a t variable of n degrees of freedom."""
    values = np.random.default_rng(seen).normal(0.3, 2.0, seen)
    scale = math.sqrt(float(values @ values) / seen)

    def next_one(t: float) -> float:
        return martingale([*values, t * scale]) * stats.t.pdf(t, seen)

    found = integrate.quad(next_one, -np.inf, np.inf, epsabs=1e-11, limit=200)[0]
    assert found == pytest.approx(martingale(values), rel=1e-7)


def test_the_interval_is_what_the_martingale_does_not_exclude() -> None:
    values = np.random.default_rng(1).normal(5.0, 3.0, 12)
    found = interval(values, ERROR)
    for edge in (found.low, found.high):
        assert martingale(values, edge) == pytest.approx(1 / ERROR, rel=1e-9)
    assert martingale(values, found.mean) < 1


def paths(truth: float) -> np.ndarray:
    """Return differences [studies, pairs] of synthetic studies with a known mean."""
    return np.random.default_rng(2).normal(truth, 0.7, (STUDIES, PAIRS))


def half_widths(differences: np.ndarray, factors: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return each study's mean and half width after each number of pairs from two on."""
    counts = np.arange(1, PAIRS + 1)
    means = differences.cumsum(axis=1) / counts
    squares = (differences**2).cumsum(axis=1) - counts * means**2
    deviations = np.sqrt(squares[:, 1:] / (counts[1:] - 1))
    with np.errstate(invalid="ignore"):
        return means[:, 1:], deviations * np.asarray(factors)


def test_the_interval_stays_valid_when_examined_after_every_pair() -> None:
    """At most 5 % of the studies miss the truth at any number of pairs; Student's interval misses more often."""
    truth = 0.4
    student = [stats.t.isf(ERROR / 2, n - 1) / math.sqrt(n) for n in range(2, PAIRS + 1)]
    ours = [half_width_factor(n, ERROR) for n in range(2, PAIRS + 1)]
    missed = []
    for factors in (ours, student):
        means, widths = half_widths(paths(truth), factors)
        missed.append(int((np.abs(means - truth) > widths).any(axis=1).sum()))
    assert missed[0] <= most_misses(STUDIES)
    assert missed[1] > most_misses(STUDIES), "the test notices an interval for a single look"


@pytest.mark.parametrize("precision", [0.35, 0.5])
def test_stopped_where_it_is_narrow_enough(precision: float) -> None:
    """A study stops at its first interval that is as narrow as requested, or after the last pair."""
    truth = -1.3
    factors = [half_width_factor(n, ERROR) for n in range(2, PAIRS + 1)]
    means, widths = half_widths(paths(truth), factors)
    narrow = widths <= precision
    stops = np.where(narrow.any(axis=1), narrow.argmax(axis=1), PAIRS - 2)
    rows = np.arange(STUDIES)
    missed = int((np.abs(means[rows, stops] - truth) > widths[rows, stops]).sum())
    assert missed <= most_misses(STUDIES)
    assert len(set(stops)) > 3, "studies stop at different numbers of pairs"


@pytest.mark.parametrize(("pairs", "bounded"), [(2, False), (4, False), (5, True)])
def test_few_pairs_bound_nothing(pairs: int, bounded: bool) -> None:
    assert math.isfinite(interval(np.arange(pairs), ERROR).half_width) == bounded


def test_equal_pairs_differ_by_nothing() -> None:
    found = interval(np.zeros(6), ERROR)
    assert (found.mean, found.half_width) == (0.0, 0.0)


def test_the_next_look_is_where_the_interval_should_be_narrow_enough() -> None:
    values = np.random.default_rng(3).normal(0.0, 1.0, 20)
    seen = interval(values, ERROR)
    wanted = pairs_wanted(seen, 0.6 * seen.deviation, ERROR, 100)
    assert half_width_factor(wanted, ERROR) <= 0.6 < half_width_factor(wanted - 1, ERROR)
    assert pairs_wanted(seen, 1e-9, ERROR, 100) == 40, "at most twice as many pairs"
    assert pairs_wanted(seen, 1e-9, ERROR, 25) == 25
    assert pairs_wanted(interval([], ERROR), 1.0, ERROR, 9) == 1


def test_a_pair_without_a_difference_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        interval([0.0, math.inf], ERROR)
