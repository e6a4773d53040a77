"""Compute the uncertainty of a mean over seeds: 95 % intervals, and paired tests of two variants."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEVEL = 0.95
LEAST = 3  # fewest seeds for an interval; two seeds have only a range
OF_TWO = 12.706204736174694  # Student's t, 0.975, one degree of freedom: half an interval over half a range
MOST_FOR_EXACT = 25  # up to this many pairs Wilcoxon's distribution is exact


class Paired(NamedTuple):
    """The mean of paired differences, with its interval and p-value.

    Attributes:
        pairs: number of pairs of finite values.
        mean: mean of the differences.
        half_width: half the width of the mean's 95 % interval, by Student's t; NaN for fewer than two pairs.
        p_t: two-sided p-value of the paired t test, which assumes normal differences.
        p_wilcoxon: two-sided p-value of Wilcoxon's signed-rank test, which leaves out zero differences and assumes
            that differences are symmetric. With n pairs this p-value is at least 2^(1-n): 0.25 for three seeds.
    """

    pairs: int
    mean: float
    half_width: float
    p_t: float
    p_wilcoxon: float

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the mean's 95 % interval; with two pairs, the two differences."""
        half = self.half_width / OF_TWO if self.pairs == 2 else self.half_width
        return self.mean - half, self.mean + half

    @property
    def decided(self) -> bool:
        """Whether the mean difference's interval excludes 0, that is, whether there is a difference."""
        return self.pairs >= LEAST and abs(self.mean) > self.half_width


def half_width(values: Sequence[float] | np.ndarray) -> float:
    """Return the half width of the 95 % interval of the mean, by Student's t; NaN for fewer than two values."""
    from scipy.special import stdtrit  # a late import keeps `edgefl --help` fast

    known = np.asarray(values, float)
    known = known[~np.isnan(known)]
    if len(known) < 2 or not np.isfinite(known).all():
        return math.nan
    return float(stdtrit(len(known) - 1, 0.5 + LEVEL / 2) * known.std(ddof=1) / math.sqrt(len(known)))


def paired(values: Sequence[float], reference: Sequence[float]) -> Paired:
    """Test whether the paired differences `values` - `reference` have mean zero.

    Pairs with an infinite number (a target that was not reached) are left out.
    """
    from scipy.special import stdtr

    both = _finite_pairs(values, reference)
    differences = both[:, 0] - both[:, 1]
    if not len(differences):
        return Paired(0, math.nan, math.nan, math.nan, math.nan)
    mean = float(differences.mean())
    if len(differences) < 2:
        return Paired(len(differences), mean, math.nan, math.nan, math.nan)
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    certain = 1.0 if mean == 0 else 0.0  # if all differences are equal
    p_t = float(2 * stdtr(len(differences) - 1, -abs(mean / error))) if error else certain
    return Paired(len(differences), mean, half_width(differences), p_t, wilcoxon(differences))


def _finite_pairs(values: Sequence[float], reference: Sequence[float]) -> np.ndarray:
    both = np.column_stack([np.asarray(values, float), np.asarray(reference, float)])
    return both[np.isfinite(both).all(axis=1)]


class Ratio(NamedTuple):
    """Mean ratio of paired values, with its 95 % interval.

    Attributes:
        pairs: number of pairs of positive finite values.
        mean: the geometric mean of the ratios; NaN without a pair.
        low, high: ends of the mean's interval, by Student's t on the logarithms, so always positive; NaN for
            fewer than two pairs. Assumes that the logarithms of the ratios are normally distributed.
    """

    pairs: int
    mean: float
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the mean ratio's 95 % interval; with two pairs, the two ratios."""
        if self.pairs != 2:
            return self.low, self.high
        factor = (self.high / self.mean) ** (1 / OF_TWO)
        return self.mean / factor, self.mean * factor

    @property
    def decided(self) -> bool:
        """Whether the mean ratio's interval excludes 1, that is, whether there is a difference."""
        return self.pairs >= LEAST and (self.low > 1 or self.high < 1)


def paired_ratio(values: Sequence[float], reference: Sequence[float]) -> Ratio:
    """Compare `values` with `reference` in pairs, on a logarithmic scale."""
    both = _finite_pairs(values, reference)
    both = both[(both > 0).all(axis=1)]
    if not len(both):
        return Ratio(0, math.nan, math.nan, math.nan)
    logarithms = np.log(both[:, 0] / both[:, 1])
    middle, half = float(logarithms.mean()), half_width(logarithms)
    return Ratio(len(both), *(math.exp(end) for end in (middle, middle - half, middle + half)))


def shown_ends(mean: float, half: float, seeds: int, *, positive: bool = True) -> tuple[float, float]:
    """Return the interval to show for a mean, with two seeds the two seeds' values.

    The interval of a positive mean is that of `ends`, and of other means, such as accuracies, mean - half to mean +
    half.
    """
    if positive and seeds != 2:
        return ends(mean, half)
    half = half / OF_TWO if seeds == 2 else half
    return mean - half, mean + half


def ends(mean: float, half: float) -> tuple[float, float]:
    """Return the interval of a positive mean on a logarithmic scale; both ends are positive.

    Where the half width `half` is small compared with the mean, the ends are about mean - half and mean + half.

    Source: the delta method: the standard error of log(mean) is the mean's standard error divided by the mean.
    """
    if not mean > 0 or not math.isfinite(half):
        return math.nan, math.nan
    try:
        factor = math.exp(half / mean)
    except OverflowError:
        factor = math.inf
    return mean / factor, mean * factor


def wilcoxon(differences: Sequence[float] | np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; zeros are left out, ties share their mean rank.

    The p-value is exact for up to 25 differences (all signs enumerated), otherwise normal with tie correction.

    Source: Wilcoxon 1945; Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., 3.1.
    """
    some = np.asarray(differences, float)
    some = some[some != 0]
    if not len(some):
        return 1.0
    _, place, counts = np.unique(np.abs(some), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    doubled = (2 * last - counts + 1)[place]  # twice the mean rank, an integer also with ties
    plus, total = int(doubled[some > 0].sum()), int(doubled.sum())
    smaller = min(plus, total - plus)
    if len(some) <= MOST_FOR_EXACT:
        ways = np.zeros(total + 1)
        ways[0] = 1
        for rank in doubled.tolist():
            ways[rank:] += ways[:-rank].copy()
        return float(min(1.0, 2 * ways[: smaller + 1].sum() / ways.sum()))
    variance = float((doubled.astype(float) ** 2).sum()) / 4  # variance of the doubled sum
    z = (abs(plus - total / 2) - 1) / math.sqrt(variance)  # continuity correction of half a rank, doubled
    return math.erfc(max(z, 0.0) / math.sqrt(2))
