"""Test which samples devices hold, how labels recur, and the distribution of shares."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import poch

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import by_device
from edgefl.learning.partitions._label_sets import RecurringLabels
from edgefl.learning.partitions.dirichlet import Dirichlet
from edgefl.learning.partitions.iid import Iid
from edgefl.rng import Streams
from tests.refusals import refused_at

SEED = 7
P_MIN = 1e-4  # a correct sampler fails a Kolmogorov-Smirnov test once in 10,000 seeds
SIGMAS = 4.0  # a correct sampler fails a comparison with probability 6e-5
SHARE_LABELS, SHARE_SAMPLES = 100, 1_000  # labels, and samples per label, in tests that measure shares
KINDS = [Dirichlet, Iid]


def balanced(classes: int, per_class: int) -> np.ndarray:
    """Return the labels of a balanced training set in random order."""
    labels = np.repeat(np.arange(classes), per_class)
    return np.random.default_rng(SEED).permutation(labels)


def expect_exact_cover(assigned: Sequence[np.ndarray], samples: np.ndarray) -> None:
    """Check that devices hold every sample exactly once."""
    np.testing.assert_array_equal(np.sort(np.concatenate(assigned)), samples)


# ---- every sample at exactly one device


@settings(max_examples=60, derandomize=True)
@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=12),
    devices=st.integers(1, 30),
    alpha=st.sampled_from([1e-300, 1e-3, 0.1, 0.3, 1.0, 100.0, 1e9]),
    min_samples=st.integers(1, 4),
    session=st.integers(1, 5),
    overlap=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_dirichlet_deals_every_available_sample_to_one_device(
    counts: list[int], devices: int, alpha: float, min_samples: int, session: int, overlap: bool, seed: int
) -> None:
    classes = len(counts)
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(classes), counts))
    # use the smallest possible overlap: |A and B| is 0 for an even number of labels, and 1 for an odd number
    share = classes % 2 / classes if overlap else None
    partition = Dirichlet(alpha=alpha, min_samples=min_samples, overlap=share)
    streams = Streams(seed)
    available = partition.session_labels(session, classes, streams)
    samples = np.flatnonzero(np.isin(labels, available))
    if len(samples) < devices * min_samples:
        with refused_at("", f"{len(samples)} samples", f"{devices} devices with {min_samples}"):
            partition.assign(labels, devices, session, streams)
        return
    assigned = partition.assign(labels, devices, session, streams)
    assert len(assigned) == devices
    expect_exact_cover(assigned, samples)
    for held in assigned:
        assert held.dtype == np.int64
        assert len(held) >= min_samples
        assert (np.diff(held) > 0).all()


@settings(max_examples=40, derandomize=True)
@given(
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    devices=st.integers(1, 30),
    seed=st.integers(0, 2**32),
)
def test_iid_deals_every_sample_to_one_device_evenly(counts: list[int], devices: int, seed: int) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    if len(labels) < devices:
        with refused_at("", "samples"):
            Iid().assign(labels, devices, 1, Streams(seed))
        return
    assigned = Iid().assign(labels, devices, 1, Streams(seed))
    expect_exact_cover(assigned, np.arange(len(labels)))
    sizes = [len(held) for held in assigned]
    assert max(sizes) - min(sizes) <= 1
    assert all((np.diff(held) > 0).all() for held in assigned)


def test_by_device_keeps_order_and_empty_devices() -> None:
    groups = by_device(np.array([5, 6, 8, 9]), np.array([2, 0, 2, 0]), 4)
    assert [group.tolist() for group in groups] == [[6, 9], [], [5, 8], []]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("overlap", [0.0, 0.2, 0.6, 0.8])
def test_label_sets_recur_with_exact_sizes(kind: type[RecurringLabels], classes: int, overlap: float) -> None:
    partition = kind(overlap=overlap)
    streams = Streams(SEED)
    first, second, third, fourth = (partition.session_labels(s, classes, streams) for s in (1, 2, 3, 4))
    # |A or B| = C and |A and B| = overlap C, so |A| = |B| = (1 + overlap) C / 2
    assert len(first) == len(second) == round((1 + overlap) * classes / 2)
    assert len(np.intersect1d(first, second)) == round(overlap * classes)
    np.testing.assert_array_equal(np.union1d(first, second), np.arange(classes))
    np.testing.assert_array_equal(third, first)
    np.testing.assert_array_equal(fourth, second)
    for labels in (first, second):
        assert labels.dtype == np.int64
        assert (np.diff(labels) > 0).all()
    assert [partition.key(s) for s in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_the_two_sets_are_a_random_choice() -> None:
    """Each of the 10 labels is in A (5 of 10 labels) with probability 1/2."""
    draws = 400
    held = np.zeros(10)
    for seed in range(draws):
        held[Iid(overlap=0.0).session_labels(1, 10, Streams(seed))] += 1
    tolerance = SIGMAS * np.sqrt(0.25 / draws)
    np.testing.assert_allclose(held / draws, 0.5, atol=tolerance)


@pytest.mark.parametrize(
    ("overlap", "classes", "feasible"),
    [
        (0.8, 4, "0, 0.5"),  # the journal paper has 0.8 for the four labels of AG News
        (0.3, 10, "0, 0.2, 0.4, 0.6, 0.8"),
        (0.25, 10, "0, 0.2, 0.4, 0.6, 0.8"),
        (0.0, 3, "0.3333"),
        (0.99, 100, "0, 0.02, 0.04, ..., 0.98"),
        (0.999, 10, "0, 0.2, 0.4, 0.6, 0.8"),  # with rounding, both sets have all ten labels
        (0.0, 1, "none"),
    ],
)
def test_an_infeasible_overlap_lists_the_feasible_ones(overlap: float, classes: int, feasible: str) -> None:
    with pytest.raises(EdgeflError) as error:
        Dirichlet(overlap=overlap).session_labels(1, classes, Streams(SEED))
    assert str(error.value).endswith(f"feasible overlaps: {feasible}")
    assert f"overlap {overlap:g}" in str(error.value)


def test_listed_overlaps_are_accepted_as_printed() -> None:
    for classes in range(2, 201):
        for shared in range(classes % 2, classes, 2):
            printed = float(f"{shared / classes:.4g}")
            labels = Iid(overlap=printed).session_labels(1, classes, Streams(SEED))
            assert len(labels) == (classes + shared) // 2


@pytest.mark.parametrize("kind", KINDS)
def test_draws_depend_on_seed_and_session_alone(kind: type[RecurringLabels]) -> None:
    partition = kind(overlap=0.2)
    labels = balanced(10, 50)

    def drawn(seed: int, session: int) -> bytes:
        assigned = partition.assign(labels, 6, session, Streams(seed))
        return b"|".join(held.tobytes() for held in assigned)

    assert drawn(1, 1) == drawn(1, 1)
    assert drawn(1, 1) != drawn(2, 1)
    # sessions 1 and 3 have the same labels, but samples are dealt again in session 3
    assert drawn(1, 1) != drawn(1, 3)


# ---- statistics of Dirichlet


def shares_of(devices: Sequence[int], *, alpha: float, population: int, seeds: int) -> np.ndarray:
    """Return [len(devices), SHARE_LABELS * seeds] shares of individual labels, each of SHARE_SAMPLES samples."""
    labels, counts = balanced(SHARE_LABELS, SHARE_SAMPLES), []
    for seed in range(seeds):
        assigned = Dirichlet(alpha=alpha).assign(labels, population, 1, Streams(seed))
        counts.append([np.bincount(labels[assigned[id_]], minlength=SHARE_LABELS) for id_ in devices])
    return np.concatenate(counts, axis=1) / SHARE_SAMPLES


def test_a_share_is_beta_distributed() -> None:
    """A label's share is Beta(alpha, (N-1) alpha), independent of other labels; here alpha = 1, N = 10.

    Counts resolve shares to 1/1,000. As the density is at most 9, this changes the distribution function by at most
    9/1,000. This is little compared with the KS distance that 1,500 labels resolve, 1/sqrt(1500) = 0.026.
    """
    devices = [0, 4, 9]
    for shares in shares_of(devices, alpha=1.0, population=10, seeds=15):
        assert stats.kstest(shares, stats.beta(1.0, 9.0).cdf).pvalue > P_MIN


@pytest.mark.parametrize("alpha", [0.1, 0.3, 3.0])
def test_concentration_of_a_label(alpha: float) -> None:
    """Moments of Dir(alpha, ..., alpha) with A = N alpha, in rising factorials (A)_n = A (A+1) ... (A+n-1):

    E[s_k] = 1/N, Var(s_k) = (1/N) (1 - 1/N) / (A + 1);
    S = sum_k s_k^2 has E[S] = (alpha + 1) / (A + 1),
    E[S^2] = N (alpha)_4 / (A)_4 + N (N-1) ((alpha)_2)^2 / (A)_4.
    """
    population = 8
    total = population * alpha
    shares = shares_of(range(population), alpha=alpha, population=population, seeds=40)
    labels = shares.shape[1]
    # Shares are rounded up or down to counts at random, which adds at most 1/4 to a count's variance.
    rounding = 0.25 / SHARE_SAMPLES**2

    variance = (1 / population) * (1 - 1 / population) / (total + 1) + rounding
    np.testing.assert_allclose(
        shares.mean(axis=1), 1 / population, rtol=0, atol=SIGMAS * np.sqrt(variance / labels)
    )

    mean = (alpha + 1) / (total + 1)
    fourth = population * poch(alpha, 4) + population * (population - 1) * poch(alpha, 2) ** 2
    variance = fourth / poch(total, 4) - mean**2
    tolerance = SIGMAS * np.sqrt(variance / labels) + population * rounding
    assert tolerance < 0.04 * mean  # so an alpha that is 15 % too large would fail
    assert abs((shares**2).sum(axis=0).mean() - mean) < tolerance


def test_rounding_favours_no_device() -> None:
    """With five samples per label, rounding down would move half a sample per label from first to last device."""
    devices, classes, per_class, seeds = 10, 200, 5, 30
    labels = balanced(classes, per_class)
    totals = np.zeros(devices)
    for seed in range(seeds):
        totals += [len(held) for held in Dirichlet(alpha=1.0).assign(labels, devices, 1, Streams(seed))]
    draws = classes * seeds
    variance = per_class**2 * float(stats.beta(1.0, devices - 1.0).var()) + 0.25  # share, then rounding
    tolerance = SIGMAS * np.sqrt(variance / draws)
    assert tolerance < 0.5 / 4  # so a shift by half a sample would fail
    np.testing.assert_allclose(totals / draws, per_class / devices, atol=tolerance)


def test_samples_of_a_label_are_dealt_at_random() -> None:
    """A device's samples have the mean rank of all samples of the label, so they are not simply the first samples."""
    per_class, seeds = 400, 200
    labels = np.zeros(per_class, np.int64)
    means, weights = [], []
    for seed in range(seeds):
        held = Dirichlet(alpha=3.0).assign(labels, 2, 1, Streams(seed))[0]
        means.append(held.mean())
        weights.append((per_class - len(held)) / (len(held) * (per_class - 1)))
    # the mean of k of n ranks, drawn without replacement, has variance (n^2 - 1)/12 (n - k) / (k (n - 1))
    variance = (per_class**2 - 1) / 12 * np.mean(weights)
    assert abs(np.mean(means) - (per_class - 1) / 2) < SIGMAS * np.sqrt(variance / seeds)


# ---- the minimum per device


@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ((500, 500), [488, 488]),  # both large devices give samples in turn
        ((500, 300), [300, 476]),  # only the larger device gives samples
    ],
)
def test_the_minimum_is_met_where_redrawing_would_never_end(counts: tuple[int, int], left: list[int]) -> None:
    """With an alpha that gives each label to one device, 8 of 10 devices get their minimum from the large devices."""
    labels = np.repeat([0, 1], counts)
    assigned = Dirichlet(alpha=1e-6, min_samples=3).assign(labels, 10, 1, Streams(SEED))
    assert sorted(len(held) for held in assigned) == [3] * 8 + left
    expect_exact_cover(assigned, np.arange(sum(counts)))


def test_the_minimum_changes_nothing_where_it_is_met_anyway() -> None:
    labels = balanced(10, 600)
    plain = Dirichlet(alpha=3.0).assign(labels, 10, 1, Streams(SEED))
    smallest = min(len(held) for held in plain)
    demanding = Dirichlet(alpha=3.0, min_samples=smallest).assign(labels, 10, 1, Streams(SEED))
    for one, other in zip(plain, demanding, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_minimum_moves_as_few_samples_as_possible() -> None:
    """Devices below the minimum receive samples up to the minimum; other devices can only give samples."""
    labels, minimum = balanced(5, 200), 12
    plain = Dirichlet(alpha=0.1).assign(labels, 20, 1, Streams(SEED))
    topped = Dirichlet(alpha=0.1, min_samples=minimum).assign(labels, 20, 1, Streams(SEED))
    short = [len(held) < minimum for held in plain]
    assert any(short)
    for was_short, before, after in zip(short, plain, topped, strict=True):
        if was_short:
            assert len(after) == minimum
        else:
            assert minimum <= len(after) <= len(before)
