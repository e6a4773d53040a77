"""Test which devices hold validation samples, and that no training or test uses these samples."""

import numpy as np

from edgefl.learning.data.validation import split_off
from edgefl.learning.datasets import Data, Split
from edgefl.learning.datasets.digits import Digits
from tests.refusals import refused_at

SHARE = 0.2


def test_each_label_gives_its_share_and_no_sample_is_in_two() -> None:
    data = Digits().load()
    left, apart = split_off(data, SHARE)
    for label in range(10):
        count = int((data.train.y == label).sum())
        assert int((apart.y == label).sum()) == round(SHARE * count)
        assert int((left.train.y == label).sum()) == count - round(SHARE * count)
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


def test_nothing_on_one_side_is_refused() -> None:
    split = Split(np.zeros((4, 1), np.float32), np.arange(4))
    data = Data.unscaled(split, split, ("a", "b", "c", "d"))
    with refused_at("learning.evaluation.validation", "0.1 of each label", "4 training samples"):
        split_off(data, 0.1)
    assert split_off(data, None) == (data, None)
