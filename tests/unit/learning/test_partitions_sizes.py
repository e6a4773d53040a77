"""Test partitions with equal or random sizes, with a number or mix of labels per device, or with listed sets."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.learning.partitions import Partition
from edgefl.learning.partitions._by_weight import ByWeight, _shared_out
from edgefl.learning.partitions.dirichlet import Dirichlet
from edgefl.learning.partitions.dirichlet_mix import DirichletMix
from edgefl.learning.partitions.iid import Iid
from edgefl.learning.partitions.label_count import LabelCount
from edgefl.learning.partitions.log_normal import LogNormal
from edgefl.learning.partitions.power_law import PowerLaw
from edgefl.rng import Streams
from tests.refusals import refused_at

SEED = 7
SIGMAS = 3.0  # a correct sampler fails a comparison with probability 0.3 %
MANY, SAMPLES = 1_000, 1_000_000  # devices and samples in tests that estimate a law
LABELS = np.arange(SAMPLES) % 10


def sizes(partition: Partition) -> np.ndarray:
    return np.array([len(held) for held in partition.assign(LABELS, MANY, 1, Streams(SEED))])


def labels_of(dealt: Sequence[np.ndarray], labels: np.ndarray) -> list[set[int]]:
    return [set(labels[held].tolist()) for held in dealt]


@pytest.mark.parametrize(
    ("total", "weights", "counts"),
    [
        (10, [1, 2, 7], [1, 2, 7]),
        (20, [1, 2, 7], [2, 4, 14]),
        # the first device gets the minimum, 1; the other devices share 9 samples, and one of these gets 5
        (10, [0.01, 1, 1], [1, 5, 4]),
        (3, [5, 1e-9, 1], [1, 1, 1]),
        (7, [1, 1, 1], [3, 2, 2]),
        (11, [3, 3, 4], [3, 3, 5]),  # 3.3, 3.3 and 4.4: the last number has the largest remainder
        (1, [0.1], [1]),
    ],
)
def test_samples_are_shared_out_by_hand(total: int, weights: list[float], counts: list[int]) -> None:
    found = _shared_out(total, np.array(weights, float), np.random.default_rng(SEED))
    assert sorted(found.tolist()) == sorted(counts)


@settings(max_examples=60, derandomize=True)
@given(weights=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30), more=st.integers(0, 200))
def test_shares_sum_to_all_samples_and_differ_by_less_than_one(weights: list[float], more: int) -> None:
    total, w = len(weights) + more, np.array(weights)
    counts = _shared_out(total, w, np.random.default_rng(SEED))
    assert counts.sum() == total
    assert counts.min() >= 1
    # devices above the minimum share the other samples in proportion to their weights
    above = counts > 1
    if above.any():
        exact = counts[above].sum() * w[above] / w[above].sum()
        assert np.abs(counts[above] - exact).max() < 2


@pytest.mark.parametrize("exponent", [2.5, 3.5])
def test_the_exponent_is_recovered_by_maximum_likelihood(exponent: float) -> None:
    """The estimate 1 + n / sum(ln(x / x_min)) has error (exponent - 1) / sqrt(n) (Clauset et al., 2009).

    The smallest device has SAMPLES / MANY (exponent - 2) / (exponent - 1) samples, 333 or more, so that rounding
    changes a logarithm by at most 0.0015.
    """
    drawn = np.sort(sizes(PowerLaw(exponent=exponent)))
    assert drawn.sum() == SAMPLES
    estimate = 1 + (MANY - 1) / np.log(drawn / drawn[0]).sum()
    assert abs(estimate - exponent) < SIGMAS * (exponent - 1) / np.sqrt(MANY) + 0.0015 * (exponent - 1) ** 2


@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_logarithms_of_log_normal_sizes_are_normal(sigma: float) -> None:
    """Standard errors of n normal numbers: standard deviation sigma / sqrt(2 n), skewness sqrt(6 / n)."""
    drawn = sizes(LogNormal(sigma=sigma))
    assert drawn.sum() == SAMPLES
    logs = np.log(drawn)
    assert abs(logs.std(ddof=1) / sigma - 1) < SIGMAS / np.sqrt(2 * MANY)
    skewness = ((logs - logs.mean()) ** 3).mean() / logs.std() ** 3
    assert abs(skewness) < SIGMAS * np.sqrt(6 / MANY)


def test_samples_of_a_device_are_drawn_at_random_from_all_labels() -> None:
    """Without `labels_per_device`, the largest device's counts of labels are hypergeometric."""
    dealt = PowerLaw(exponent=3.0).assign(LABELS, MANY, 1, Streams(SEED))
    largest = max(dealt, key=len)
    counts, share = np.bincount(LABELS[largest], minlength=10), len(largest) / SAMPLES
    variance = SAMPLES / 10 * share * (1 - share)
    assert np.abs(counts - len(largest) / 10).max() < 4 * np.sqrt(variance)


@pytest.mark.parametrize(
    "partition", [LabelCount(), LogNormal(labels_per_device=2), PowerLaw(labels_per_device=2)]
)
def test_each_device_has_exactly_its_number_of_labels(partition: ByWeight) -> None:
    labels = np.random.default_rng(SEED).permutation(np.repeat(np.arange(10), 200))
    dealt = partition.assign(labels, 50, 1, Streams(SEED))
    assert np.array_equal(np.sort(np.concatenate(dealt)), np.arange(2_000))
    assert {len(each) for each in labels_of(dealt, labels)} == {2}


def test_equal_labels_have_equally_many_devices_with_equal_sizes() -> None:
    """With 2 of 10 labels per device, each label has 10 of 50 devices, and each device 2 x 200 / 10 = 40 samples."""
    labels = np.repeat(np.arange(10), 200)
    dealt = LabelCount(labels_per_device=2).assign(labels, 50, 1, Streams(SEED))
    assert {len(held) for held in dealt} == {40}
    holders = np.bincount([label for each in labels_of(dealt, labels) for label in each])
    assert holders.tolist() == [10] * 10


def test_devices_of_equal_weight_hold_equally_many_whatever_their_ids() -> None:
    """Ten labels of 144 samples among 20 devices each: of 14.4 samples on average, no id has more or fewer.

    A device's size is the sum of two counts of 7 or 8, with variance 2 x 0.2 x 0.8.
    """
    labels, draws, devices = np.repeat(np.arange(10), 144), 100, 100
    partition = LabelCount(labels_per_device=2)
    dealt = [partition.assign(labels, devices, 1, Streams(seed)) for seed in range(draws)]
    sizes = np.array([[len(held) for held in each] for each in dealt])
    by_id = sizes.reshape(draws, 4, -1).mean((0, 2))
    assert np.abs(by_id - 14.4).max() < 4.5 * math.sqrt(2 * 0.2 * 0.8 / (draws * devices / 4))


def test_a_label_with_three_times_the_samples_has_three_times_the_devices() -> None:
    labels = np.repeat([0, 1], [1_000, 3_000])
    dealt = LabelCount(labels_per_device=1).assign(labels, 40, 1, Streams(SEED))
    assert sorted(each.pop() for each in labels_of(dealt, labels)) == [0] * 10 + [1] * 30
    assert {len(held) for held in dealt} == {100}


def test_labels_are_chosen_at_random() -> None:
    """Device 0, with 3 of 10 labels, has each label with probability 3/10."""
    labels, draws = np.repeat(np.arange(10), 20), 200
    held = np.zeros(10)
    for seed in range(draws):
        held[
            list(labels_of(LabelCount(labels_per_device=3).assign(labels, 9, 1, Streams(seed)), labels)[0])
        ] += 1
    np.testing.assert_allclose(held / draws, 0.3, atol=4 * np.sqrt(0.3 * 0.7 / draws))


def test_sizes_follow_the_weights_with_few_labels() -> None:
    """Small devices come last, so the weights of a label's holders sum to the mean, within the median weight.

    No device outweighs that sum, and rounding changes the size of the smallest device, 200 samples, by 0.25 %.
    """
    partition, devices = LogNormal(sigma=1.0, labels_per_device=1), 200
    weights = partition.weights(devices, Streams(SEED)("partition", 0))
    mean = weights.sum() / 10  # mean sum of the weights of a label's holders
    assert weights.max() < mean
    dealt = partition.assign(LABELS, devices, 1, Streams(SEED))
    shares = np.array([len(held) for held in dealt]) / SAMPLES / (weights / weights.sum())
    assert np.abs(shares - 1).max() < float(np.median(weights)) / mean + 0.005


@pytest.mark.parametrize(
    ("partition", "devices", "nouns"),
    [
        (LabelCount(labels_per_device=11), 20, ("labels_per_device 11", "10 labels", "at most 10")),
        (LabelCount(labels_per_device=2), 4, ("4 devices", "10 labels", "at least 3")),
        (LabelCount(labels_per_device=4), 30, ("10, 10, 10", "30 devices with 4 labels")),
        (PowerLaw(), 101, ("100 samples", "101 devices")),
    ],
)
def test_what_cannot_be_dealt_is_refused(partition: ByWeight, devices: int, nouns: Sequence[str]) -> None:
    with refused_at("", *nouns):
        partition.assign(np.arange(100) % 10, devices, 1, Streams(SEED))


def test_more_holders_than_samples_are_refused() -> None:
    """Three devices with both labels need at least three samples of each label."""
    with refused_at("", "2, 10 samples", "3 devices with 2 labels"):
        LabelCount(labels_per_device=2).assign(np.repeat([0, 1], [2, 10]), 3, 1, Streams(SEED))


SETS = ((0, 1, 2), (2, 3), (4,))


@pytest.mark.parametrize("kind", [Iid, Dirichlet, DirichletMix, PowerLaw])
def test_each_session_has_the_labels_of_its_set(kind: type[Iid]) -> None:
    partition = kind(label_sets=SETS)
    labels = np.random.default_rng(SEED).permutation(np.repeat(np.arange(5), 40))
    for session, expected in enumerate([*SETS, *SETS], start=1):
        assert partition.session_labels(session, 5, Streams(SEED)).tolist() == list(expected)
        dealt = partition.assign(labels, 6, session, Streams(SEED))
        assert set.union(*labels_of(dealt, labels)) == set(expected)
    assert [partition.key(session) for session in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_labels_may_be_new_in_the_last_session() -> None:
    """The last session may have labels that no earlier session has, as in Table 12 of the conference paper."""
    partition = Iid(label_sets=((0, 1, 2), (1, 2, 3), (0, 2, 3), (4, 5)))
    before = {label for s in (1, 2, 3) for label in partition.session_labels(s, 6, Streams(1)).tolist()}
    assert before.isdisjoint(partition.session_labels(4, 6, Streams(1)).tolist())


@pytest.mark.parametrize(
    ("settings_", "nouns"),
    [
        ({"label_sets": ((0,), ())}, ("session 2", "one or more different labels")),
        ({"label_sets": ((0, 0),)}, ("session 1", "different labels, not [0, 0]")),
        ({"label_sets": ((0,),), "overlap": 0.2}, ("overlap", "label_sets")),
        ({"label_sets": ((-1,),)}, ()),
        ({"label_sets": ()}, ()),
    ],
)
def test_wrong_sets_are_refused(settings_: dict[str, object], nouns: Sequence[str]) -> None:
    with refused_at("", *nouns):
        Iid(**settings_)


@settings(max_examples=60, derandomize=True)
@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=12),
    devices=st.integers(1, 30),
    alpha=st.sampled_from([1e-300, 1e-3, 0.1, 0.6, 1.0, 100.0, 1e9]),
    samples=st.one_of(st.none(), st.integers(1, 6)),
    seed=st.integers(0, 2**32),
)
def test_all_devices_hold_as_many_and_no_sample_twice(
    counts: list[int], devices: int, alpha: float, samples: int | None, seed: int
) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    partition = DirichletMix(alpha=alpha, samples=samples)
    if len(labels) < devices * (samples or 1):
        with refused_at("", f"{devices} devices"):
            partition.assign(labels, devices, 1, Streams(seed))
        return
    dealt = partition.assign(labels, devices, 1, Streams(seed))
    each = samples or len(labels) // devices
    assert [len(own) for own in dealt] == [each] * devices
    assert len(np.unique(np.concatenate(dealt))) == each * devices
    assert all((np.diff(own) > 0).all() for own in dealt)


def test_as_flash_deals_cifar_out() -> None:
    """500 devices with 100 samples each take all 50,000 samples, and more devices are refused."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 5000))
    dealt = DirichletMix(alpha=0.1, samples=100).assign(labels, 500, 1, Streams(1))
    assert np.array_equal(np.sort(np.concatenate(dealt)), np.arange(50_000))
    with refused_at("", "50000 samples", "501 devices with 100 samples each"):
        DirichletMix(alpha=0.1, samples=100).assign(labels, 501, 1, Streams(1))


@pytest.mark.parametrize("counts", [[10_000] * 10, [20_000] * 4 + [5000] * 4])
@pytest.mark.parametrize("alpha", [0.1, 0.6, 5.0])
def test_concentration_of_a_mix(alpha: float, counts: list[int]) -> None:
    """Two samples of a device share a label with probability E[sum_c q_c^2] = sum_c a_c (a_c + 1) / (A (A + 1)).

    Here q ~ Dir(a), and A = sum a. 400 devices of 25 take a tenth of 100,000 samples, so no label is used up. If
    labels have unequal frequencies, a is proportional to them, with mean alpha.
    """
    labels = np.repeat(np.arange(len(counts)), counts)
    devices, each = 400, 25
    dealt = DirichletMix(alpha=alpha, samples=each).assign(labels, devices, 1, Streams(3))
    held = np.array([np.bincount(labels[own], minlength=len(counts)) for own in dealt])
    alike = (held * (held - 1)).sum(1) / (each * (each - 1))
    a = alpha * len(counts) * np.array(counts) / sum(counts)
    expected = (a * (a + 1)).sum() / (a.sum() * (a.sum() + 1))
    error = alike.std(ddof=1) / np.sqrt(devices)
    assert abs(alike.mean() - expected) < 4 * error
    # over all devices, labels have the frequencies of the data set
    shares = held / each
    share_error = shares.std(0, ddof=1) / np.sqrt(devices)
    assert (np.abs(shares.mean(0) - np.array(counts) / sum(counts)) < 4 * share_error).all()


def test_who_draws_last_is_chance() -> None:
    """Devices draw in random order, so the last device, which gets the remaining labels, may have any id."""
    labels, runs, last = np.repeat(np.arange(10), 500), 10, 5
    distinct = []
    for seed in range(runs):
        dealt = DirichletMix(alpha=5.0, samples=50).assign(labels, 100, 1, Streams(seed))
        distinct.append([len(np.unique(labels[own])) for own in dealt])
    of = np.array(distinct)
    error = of.std() / np.sqrt(runs * last)
    assert abs(of[:, -last:].mean() - of.mean()) < 4 * error


def test_with_an_overlap_sessions_have_their_labels() -> None:
    labels = np.repeat(np.arange(10), 50)
    partition = DirichletMix(alpha=0.5, overlap=0.0)
    sets = []
    for session in (1, 2, 3):
        dealt = partition.assign(labels, 5, session, Streams(1))
        assert [len(own) for own in dealt] == [50] * 5
        sets.append(set(labels[np.concatenate(dealt)].tolist()))
    assert sets[0] == sets[2]
    assert sets[0].isdisjoint(sets[1])
