"""Test partitions whose samples stay with their device: two shards, halves, distinct labels, groups, zones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.learning.partitions import Partition, PartitionInputs, Staying
from edgefl.learning.partitions.by_zone import ByZone
from edgefl.learning.partitions.distinct import Distinct
from edgefl.learning.partitions.half import Half
from edgefl.learning.partitions.natural import Natural
from edgefl.learning.partitions.partial_overlap import PartialOverlap
from edgefl.learning.partitions.two_shard import TwoShard, _pairs
from edgefl.rng import Streams
from tests.refusals import refused_at
from tests.tools.constants import with_constants

SEED = 11
SIGMAS = 4.0  # a correct sampler fails a comparison with probability 6e-5

counts_of_labels = st.lists(st.integers(12, 40), min_size=2, max_size=14)
populations = st.integers(1, 12)
seeds = st.integers(0, 2**32)


def shuffled_labels(counts: Sequence[int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))


def dealt(
    partition: Partition, labels: np.ndarray, devices: int, seed: int, **facts: np.ndarray
) -> np.ndarray:
    """Return samples per device and label [devices, C]; check the properties of every partition."""
    assigned = partition.assign(labels, devices, 1, Streams(seed), PartitionInputs(**facts))
    assert len(assigned) == devices
    for held in assigned:
        assert held.dtype == np.int64
        assert len(held)
        assert (np.diff(held) > 0).all()
    everything = np.concatenate(assigned)
    assert len(np.unique(everything)) == len(everything)  # no sample twice
    again = partition.assign(labels, devices, 7, Streams(seed), PartitionInputs(**facts))
    for one, other in zip(assigned, again, strict=True):
        np.testing.assert_array_equal(one, other)  # equal in every session
    classes = int(labels.max()) + 1
    return np.array([np.bincount(labels[held], minlength=classes) for held in assigned])


def expect_even(held: np.ndarray) -> None:
    """Check that the non-zero values in each column differ by at most one."""
    for column in held.T:
        having = column[column > 0]
        assert not len(having) or having.max() - having.min() <= 1


@pytest.mark.parametrize("partition", [TwoShard(), Half(), PartialOverlap(), Distinct(), Natural(), ByZone()])
def test_all_labels_are_there_in_every_session(partition: Staying) -> None:
    for session in (1, 2, 9):
        assert partition.key(session) == 0
        np.testing.assert_array_equal(partition.session_labels(session, 7, Streams(SEED)), np.arange(7))


@pytest.mark.parametrize(("classes", "per_device"), [(10, 2), (100, 20)])
def test_two_shards_of_the_early_version(classes: int, per_device: int) -> None:
    """With 10 devices, each bundle of labels is cut into two equal shards, a device gets shards of two bundles."""
    labels = shuffled_labels([60] * classes, SEED)
    held = dealt(TwoShard(), labels, 10, SEED)
    np.testing.assert_array_equal((held > 0).sum(axis=1), per_device)
    np.testing.assert_array_equal((held > 0).sum(axis=0), 2)
    np.testing.assert_array_equal(held[held > 0], 30)
    # labels are in ten bundles, and the labels of a bundle have the same two holders
    assert len(np.unique(held > 0, axis=1).T) <= 10


@settings(max_examples=60, derandomize=True)
@given(counts=counts_of_labels, devices=populations, bundles=st.integers(2, 16), seed=seeds)
def test_two_shards_deal_everything_evenly(counts: list[int], devices: int, bundles: int, seed: int) -> None:
    labels = shuffled_labels(counts, seed)
    real = min(bundles, len(counts))
    if 2 * devices < real:
        with refused_at("", f"{(real + 1) // 2} devices"):
            with_constants(TwoShard, bundles=bundles)().assign(labels, devices, 1, Streams(seed))
        return
    held = dealt(with_constants(TwoShard, bundles=bundles)(), labels, devices, seed)
    np.testing.assert_array_equal(held.sum(axis=0), counts)
    expect_even(held)
    holders = (held > 0).sum(axis=0)  # the number of shards of a label's bundle
    assert holders.min() >= 2 * devices // real
    assert holders.max() <= -(-2 * devices // real)
    # bundles differ by at most one in their number of labels, and a device has two bundles
    assert (held > 0).sum(axis=1).min() >= 2 * (len(counts) // real)
    assert (held > 0).sum(axis=1).max() <= 2 * -(-len(counts) // real)


@settings(max_examples=100, derandomize=True)
@given(devices=st.integers(1, 60), bundles=st.integers(2, 70), seed=seeds)
def test_pairs_are_of_different_bundles(devices: int, bundles: int, seed: int) -> None:
    shards = np.arange(2 * devices) % min(bundles, 2 * devices)
    pairs = _pairs(shards, np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(pairs, axis=None), np.sort(shards))
    assert (pairs[:, 0] != pairs[:, 1]).all()


def test_who_meets_whom_is_random() -> None:
    """Device 0 has each of 10 bundles of two shards with probability 2/10."""
    draws = 500
    found = np.zeros(10)
    for seed in range(draws):
        found[_pairs(np.arange(20) % 10, np.random.default_rng(seed))[0]] += 1
    tolerance = SIGMAS * np.sqrt(0.2 * 0.8 / draws)
    np.testing.assert_allclose(found / draws, 0.2, atol=tolerance)


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("devices", [10, 20, 100])
def test_halves_of_the_early_version(classes: int, devices: int) -> None:
    held = dealt(Half(), shuffled_labels([600] * classes, SEED), devices, SEED)
    first, second = held[: devices // 2], held[devices // 2 :]
    np.testing.assert_array_equal((held > 0).sum(axis=1), classes // 2)
    assert not ((first > 0).any(axis=0) & (second > 0).any(axis=0)).any()
    np.testing.assert_array_equal(held[held > 0], 600 // (devices // 2))


@pytest.mark.parametrize(
    ("partition", "first", "second"),
    [
        (Half(label_order="ascending"), range(5), range(5, 10)),
        (PartialOverlap(label_order="ascending"), range(6), range(4, 10)),  # 10 labels, 2 in both sets
    ],
)
def test_label_sets_in_ascending_order(partition: Half, first: range, second: range) -> None:
    for seed in (1, 2):
        held = dealt(partition, shuffled_labels([60] * 10, seed), 4, seed) > 0
        assert np.flatnonzero(held[:2].any(axis=0)).tolist() == list(first)
        assert np.flatnonzero(held[2:].any(axis=0)).tolist() == list(second)


@pytest.mark.parametrize("classes", [10, 100, 200])
@pytest.mark.parametrize("devices", [10, 20, 100])
def test_partial_overlap_of_the_early_version(classes: int, devices: int) -> None:
    """Each half has 60 % of the labels; 20 % are common to both, and their samples are divided equally."""
    held = dealt(PartialOverlap(), shuffled_labels([600] * classes, SEED), devices, SEED)
    first, second = (part > 0 for part in (held[: devices // 2], held[devices // 2 :]))
    np.testing.assert_array_equal((held > 0).sum(axis=1), 6 * classes // 10)
    common = first.any(axis=0) & second.any(axis=0)
    assert common.sum() == 2 * classes // 10
    assert (first.any(axis=0) | second.any(axis=0)).all()
    np.testing.assert_array_equal(held[: devices // 2, common].sum(axis=0), 300)
    expect_even(held)


@settings(max_examples=60, derandomize=True)
@given(counts=counts_of_labels, devices=populations, common=st.integers(0, 13), seed=seeds)
def test_halves_deal_everything_evenly(counts: list[int], devices: int, common: int, seed: int) -> None:
    labels, classes = shuffled_labels(counts, seed), len(counts)
    common = min(common, classes - 1)
    partition = PartialOverlap(overlap=common / classes) if common else Half()
    if devices < 2:
        with refused_at("", "2 devices"):
            partition.assign(labels, devices, 1, Streams(seed))
        return
    held = dealt(partition, labels, devices, seed)
    np.testing.assert_array_equal(held.sum(axis=0), counts)
    larger = -(-devices // 2)
    first, second = held[:larger], held[larger:]
    for half in (first, second):
        expect_even(half)
        assert ((half > 0) == (half[0] > 0)).all()  # all devices of a half have the same labels
    mine, theirs = (first > 0)[0], (second > 0)[0]
    assert (mine & theirs).sum() == common
    assert 0 <= theirs.sum() - mine.sum() <= 1
    for label in np.flatnonzero(mine & theirs):
        assert 0 <= first[:, label].sum() - second[:, label].sum() <= 1


def test_an_overlap_of_zero_is_half() -> None:
    labels = shuffled_labels([30] * 9, SEED)
    for one, other in zip(
        Half().assign(labels, 6, 1, Streams(SEED)),
        PartialOverlap(overlap=0).assign(labels, 6, 1, Streams(SEED)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_an_overlap_that_is_no_number_of_labels() -> None:
    labels = shuffled_labels([30] * 4, SEED)
    with refused_at("", "overlap 0.2", "4 labels", "0, 0.25, 0.5, 0.75"):
        PartialOverlap().assign(labels, 6, 1, Streams(SEED))
    held = dealt(PartialOverlap(overlap=0.25), labels, 6, SEED) > 0
    assert (held[0] & held[-1]).sum() == 1
    assert (held.sum(axis=1) == [2, 2, 2, 3, 3, 3]).all()


@settings(max_examples=60, derandomize=True)
@given(counts=counts_of_labels, devices=populations, seed=seeds)
def test_distinct_labels_have_one_holder(counts: list[int], devices: int, seed: int) -> None:
    labels, classes = shuffled_labels(counts, seed), len(counts)
    if devices > classes:
        with refused_at("", f"{classes} labels", f"{devices} devices"):
            Distinct().assign(labels, devices, 1, Streams(seed))
        return
    held = dealt(Distinct(), labels, devices, seed)
    np.testing.assert_array_equal(held.max(axis=0), counts)
    np.testing.assert_array_equal((held > 0).sum(axis=0), 1)
    sizes = (held > 0).sum(axis=1)
    assert sizes.max() - sizes.min() <= 1


def test_distinct_labels_are_a_random_choice() -> None:
    labels, draws = shuffled_labels([12] * 5, SEED), 400
    found = np.zeros(5)
    for seed in range(draws):
        found += dealt(Distinct(), labels, 5, seed)[0] > 0
    np.testing.assert_allclose(found / draws, 0.2, atol=SIGMAS * np.sqrt(0.2 * 0.8 / draws))


def test_a_device_without_samples_is_refused() -> None:
    missing = np.array([0, 0, 2, 2])  # label 1 has no sample
    for partition, labels, devices in ((Half(), np.array([0] * 3 + [1] * 40), 8), (Distinct(), missing, 3)):
        with refused_at("", f"1 of {devices} devices"):
            partition.assign(labels, devices, 1, Streams(SEED))


SIZES = [4, 9, 1, 9, 6]


def some_groups() -> tuple[np.ndarray, np.ndarray]:
    """Return samples of five groups in random order, and their labels."""
    groups = np.random.default_rng(SEED).permutation(np.repeat(np.arange(5), SIZES))
    return groups, np.arange(len(groups)) % 3


@settings(max_examples=40, derandomize=True)
@given(devices=st.integers(1, 5), seed=seeds)
def test_a_device_is_a_group(devices: int, seed: int) -> None:
    groups, labels = some_groups()
    dealt(Natural(), labels, devices, seed, groups=groups)
    assigned = Natural().assign(labels, devices, 1, Streams(seed), PartitionInputs(groups=groups))
    found = [set(groups[held]) for held in assigned]
    assert all(len(group) == 1 for group in found)
    assert len(set.union(*found)) == devices
    for held in assigned:
        np.testing.assert_array_equal(held, np.flatnonzero(groups == groups[held[0]]))


def test_the_largest_groups_come_in_order() -> None:
    groups, labels = some_groups()
    assigned = Natural(choice="largest").assign(labels, 4, 1, Streams(SEED), PartitionInputs(groups=groups))
    assert [groups[held[0]] for held in assigned] == [1, 3, 4, 0]
    assert [len(held) for held in assigned] == [9, 9, 6, 4]


def test_random_groups_are_equally_likely() -> None:
    groups, labels = some_groups()
    draws = 400
    found = np.zeros(5)
    for seed in range(draws):
        for held in Natural().assign(labels, 2, 1, Streams(seed), PartitionInputs(groups=groups)):
            found[groups[held[0]]] += 1
    np.testing.assert_allclose(found / draws, 0.4, atol=SIGMAS * np.sqrt(0.4 * 0.6 / draws))


def test_groups_that_do_not_suffice() -> None:
    groups, labels = some_groups()
    with refused_at("", "groups of at least 1", "devices: choose fewer devices") as refusal:
        Natural().assign(labels, 40, 1, Streams(SEED), PartitionInputs(groups=groups))
    assert "min_samples" not in str(refusal.value), "no smaller value is allowed"
    with refused_at("", "3 groups of at least 5", "4 devices", "or a smaller min_samples"):
        Natural(min_samples=5).assign(labels, 4, 1, Streams(SEED), PartitionInputs(groups=groups))
    with refused_at("", "shakespeare", "csv", "npz"):
        Natural().assign(labels, 2, 1, Streams(SEED))


def around(angles_deg: Sequence[float], radius_m: float = 50.0) -> np.ndarray:
    """Return positions [N, 2] on a circle around the origin."""
    angles = np.deg2rad(angles_deg)
    return radius_m * np.column_stack([np.cos(angles), np.sin(angles)])


def test_sectors() -> None:
    """There are four quarters, and each of the 8 labels belongs to one quarter."""
    positions = around([1, 44, 89, 91, 179, 181, 269, 271, 359, -0.0001])
    zones = np.array([0, 0, 0, 1, 1, 2, 2, 3, 3, 3])
    counts = [30] * 8
    held = dealt(ByZone(), shuffled_labels(counts, SEED), 10, SEED, positions_m=positions)
    np.testing.assert_array_equal(held.sum(axis=0), counts)
    expect_even(held)
    known = [set(np.flatnonzero(row)) for row in held]
    for i in range(10):
        assert len(known[i]) == 2
        for j in range(10):
            assert (known[i] == known[j]) == (zones[i] == zones[j])
            assert zones[i] == zones[j] or not known[i] & known[j]


def test_rings_have_equally_many_devices() -> None:
    distances = np.array([250, 10, 40, 90, 120, 60.0])
    positions = np.column_stack([np.zeros(6), -distances])
    held = dealt(
        ByZone(zones="rings", count=3), shuffled_labels([24] * 3, SEED), 6, SEED, positions_m=positions
    )
    label = held.argmax(axis=1)
    rings = [2, 0, 0, 1, 2, 1]  # distances per ring: 10 40 | 60 90 | 120 250
    assert (held > 0).sum() == 6
    assert [label[rings.index(ring)] for ring in rings] == label.tolist()


def test_cells_are_those_of_the_nearest_base_station() -> None:
    sites = np.array([[0.0, 0.0], [200.0, 0.0], [0.0, 200.0]])
    positions = np.array([[99.0, 0.0], [101.0, 0.0], [300.0, 90.0], [10.0, 150.0], [-400.0, -400.0]])
    held = dealt(
        ByZone(zones="cells"), shuffled_labels([24] * 3, SEED), 5, SEED, positions_m=positions, sites_m=sites
    )
    label = held.argmax(axis=1)
    assert (held > 0).sum(axis=1).tolist() == [1] * 5
    assert label[0] == label[4]
    assert label[1] == label[2]
    assert len({label[0], label[1], label[3]}) == 3


@settings(max_examples=60, derandomize=True)
@given(
    counts=st.lists(st.integers(30, 50), min_size=1, max_size=12),
    devices=st.integers(1, 12),
    count=st.integers(1, 6),
    labels_per_zone=st.one_of(st.none(), st.integers(1, 12)),
    seed=seeds,
)
def test_zones_deal_the_labels_they_have(
    counts: list[int], devices: int, count: int, labels_per_zone: int | None, seed: int
) -> None:
    labels, classes = shuffled_labels(counts, seed), len(counts)
    angles = np.random.default_rng(seed).uniform(0, 360, devices)
    zone_of = (angles / (360 / count)).astype(int)
    partition = ByZone(count=count, labels_per_zone=labels_per_zone)
    if (labels_per_zone or 0) > classes or (labels_per_zone is None and count > classes):
        with refused_at("", "labels_per_zone"):
            partition.assign(labels, devices, 1, Streams(seed), PartitionInputs(positions_m=around(angles)))
        return
    held = dealt(partition, labels, devices, seed, positions_m=around(angles))
    expect_even(held)
    known = held > 0
    used = known.any(axis=0)
    np.testing.assert_array_equal(held.sum(axis=0), np.where(used, counts, 0))
    for zone in np.unique(zone_of):
        mine = known[zone_of == zone]
        assert (mine == mine[0]).all()
        size = (zone + 1) * classes // count - zone * classes // count
        assert mine[0].sum() == (labels_per_zone or size)
    if labels_per_zone is None and len(np.unique(zone_of)) == count:
        assert used.all()


def test_neighbouring_zones_share_labels() -> None:
    """With 8 labels and 4 zones of 3 labels, zones begin at 0, 2, 4, 6, so each zone shares a label with the next."""
    positions = around([45, 135, 225, 315])
    held = (
        dealt(ByZone(labels_per_zone=3), shuffled_labels([30] * 8, SEED), 4, SEED, positions_m=positions) > 0
    )
    for zone in range(4):
        shared = [(held[zone] & held[other]).sum() for other in range(4)]
        expected = [3 if other == zone else 1 if (other - zone) % 2 else 0 for other in range(4)]
        assert shared == expected


@pytest.mark.parametrize(
    ("zones", "devices", "places", "nouns"),
    [
        ("sectors", 4, None, ("positions",)),
        ("cells", 4, [0, 1, 2, 3], ("base stations",)),
        ("sectors", 5, [0, 1, 2, 3], ("4 of 5",)),
        ("sectors", 4, [0, np.nan, 2, 3], ("device 1", "1 of 4")),
    ],
)
def test_zone_errors(zones: Any, devices: int, places: list[float] | None, nouns: tuple[str, ...]) -> None:
    inputs = PartitionInputs(positions_m=None if places is None else around(places))
    with refused_at("", *nouns):
        ByZone(zones=zones).assign(shuffled_labels([30] * 8, SEED), devices, 1, Streams(SEED), inputs)


@pytest.mark.parametrize(
    ("classes", "devices", "first", "last"),
    [(10, 10, [0], [9]), (10, 3, [0, 1, 2, 3], [7, 8, 9]), (4, 1, [0, 1, 2, 3], [0, 1, 2, 3])],
)
def test_distinct_ascending_labels(classes: int, devices: int, first: list[int], last: list[int]) -> None:
    """Larger sets come first, so three devices divide ten labels into 0 to 3, 4 to 6, 7 to 9."""
    held = dealt(Distinct(label_order="ascending"), shuffled_labels([3] * classes, SEED), devices, SEED)
    assert np.flatnonzero(held[0]).tolist() == first
    assert np.flatnonzero(held[-1]).tolist() == last
    assert (held.sum(axis=0) == 3).all()
