"""Test devices that keep only a share of their samples, and samples that are held out for validation."""

import numpy as np
import pytest

from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.data.validation import split_off
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets.digits import Digits
from edgefl.learning.partitions import PartitionInputs
from edgefl.learning.partitions.dirichlet import Dirichlet
from edgefl.learning.partitions.iid import Iid
from edgefl.rng import Streams
from tests.refusals import refused_at

LABELS = np.arange(1000) % 10


def device_data(kept: list[float] | None, partition: object = None) -> DeviceData:
    inputs = PartitionInputs(kept=None if kept is None else np.array(kept))
    return DeviceData(partition or Iid(), LABELS, 4, Streams(5), inputs)


def test_a_share_of_what_was_dealt() -> None:
    whole, some = device_data(None), device_data([1.0, 0.5, 0.25, 1e-9])
    sizes = whole.sizes(range(4))
    assert some.sizes(range(4)) == {0: sizes[0], 1: round(sizes[1] / 2), 2: round(sizes[2] / 4), 3: 1}
    for device in range(4):
        assert set(some.samples(device)) <= set(whole.samples(device))
        assert (np.diff(some.samples(device)) > 0).all()
    assert np.array_equal(some.samples(0), whole.samples(0))
    # a device's kept samples do not depend on the shares of other devices
    alone = device_data([0.1, 0.5, 1.0, 1.0])
    assert np.array_equal(alone.samples(1), some.samples(1))


def test_the_same_whenever_they_are_dealt() -> None:
    partition = Dirichlet(alpha=0.5, overlap=0.2)
    one, other = (device_data([0.5] * 4, partition) for _ in range(2))
    one.deal(2)
    one.deal(1)
    assert all(np.array_equal(one.samples(device), other.samples(device)) for device in range(4))


def test_labels_are_those_that_are_kept() -> None:
    few = device_data([0.004] * 4)
    assert few.labels([0]) == sorted({int(LABELS[i]) for i in few.samples(0)})
    assert len(few.labels([0])) == 1


def test_which_samples_are_kept_is_a_matter_of_chance() -> None:
    """The kept samples are chosen at random, so their mean position is the middle, within 4.5 standard errors."""
    whole, some = device_data(None), device_data([0.5] * 4)
    for device in range(4):
        places = np.flatnonzero(np.isin(whole.samples(device), some.samples(device)))
        n, kept = len(whole.samples(device)), len(places)
        # standard error of a mean without replacement
        error = np.sqrt((n + 1) * (n - kept) / (12 * kept))
        assert abs(places.mean() - (n - 1) / 2) < 4.5 * error


SHARE = 0.2


def test_each_label_gives_its_share_and_no_sample_is_in_two() -> None:
    data = Digits().load()
    left, apart = split_off(data, SHARE)
    for label in range(10):
        count, taken = int((data.train.y == label).sum()), int((apart.y == label).sum())
        assert abs(taken - SHARE * count) < 1
        assert int((left.train.y == label).sum()) == count - taken
    assert len(apart.y) == round(SHARE * len(data.train.y))
    both = sorted(x.tobytes() for x in [*left.train.x, *apart.x])
    assert both == sorted(x.tobytes() for x in data.train.x)
    assert left.test is data.test
    assert np.array_equal(split_off(data, SHARE)[1].x, apart.x)


def test_each_group_gives_its_share_where_there_are_groups() -> None:
    x, groups = np.arange(60, dtype=np.float32)[:, None], np.repeat([0, 1, 2], [10, 20, 30])
    split = Split(x, np.zeros(60, np.int64), groups)
    _, apart = split_off(Data.unscaled(split, split, ("a",), ("p", "q", "r")), SHARE)
    assert np.bincount(apart.groups).tolist() == [2, 4, 6]
    assert np.array_equal(apart.groups, groups[apart.x[:, 0].astype(int)])


@pytest.mark.parametrize("size", [3, 5, 15, 25])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_the_share_is_exact_however_small_the_groups_are(size: int, share: float) -> None:
    """Further groups of a single sample, which they keep, count neither way."""
    groups = np.concatenate([np.repeat(np.arange(40), size), np.arange(40, 80)])
    split = Split(np.zeros((len(groups), 1), np.float32), groups % 2, groups)
    _, apart = split_off(Data.unscaled(split, split, ("a", "b"), tuple(map(str, range(80)))), share)
    assert len(apart.y) == round(share * 40 * size)
    assert np.all(np.abs(np.bincount(apart.groups, minlength=40) - share * size) < 1)


def test_nothing_on_one_side_is_refused() -> None:
    split = Split(np.zeros((4, 1), np.float32), np.arange(4))
    data = Data.unscaled(split, split, ("a", "b", "c", "d"))
    with refused_at("learning.evaluation.validation", "0.1 of each label", "4 training samples"):
        split_off(data, 0.1)
    assert split_off(data, None) == (data, None)
