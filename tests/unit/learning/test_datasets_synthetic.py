"""Test that sizes, inputs and labels of synthetic(alpha, beta) follow the formula."""

import numpy as np
import pytest
from scipy import stats

from edgefl.learning.datasets.synthetic import Synthetic

SIGMAS = 4.0  # a correct sampler fails a comparison with probability 6e-5


def test_synthetic_is_a_function_of_its_parameters() -> None:
    one, same, other = (Synthetic(seed=seed).load() for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.train.x, same.train.x)
    assert one.train.x.shape != other.train.x.shape
    assert one.train.x.shape[1:] == (60,)
    assert one.train.x.dtype == np.float32
    assert one.num_classes == 10
    sizes, tests = np.bincount(one.train.groups), np.bincount(one.test.groups)
    assert len(sizes) == len(tests) == 30
    np.testing.assert_array_equal(tests, (sizes + tests) // 10)


def test_synthetic_sizes_are_log_normal() -> None:
    groups = 400
    data = Synthetic(groups=groups).load()
    sizes = np.bincount(data.train.groups) + np.bincount(data.test.groups) - 50
    assert sizes.min() >= 0
    # sizes are rounded down, which does not change the share of sizes below a whole number
    thresholds = np.array([1, 7, 20, 55, 150, 400, 3000])
    expected = stats.norm.cdf((np.log(thresholds) - 4) / 2)
    found = (sizes[:, None] < thresholds).mean(0)
    # the largest standard deviation that a share can have
    np.testing.assert_allclose(found, expected, atol=SIGMAS * np.sqrt(0.25 / groups))


@pytest.mark.parametrize("beta", [0.0, 0.5, 3.0])
def test_synthetic_inputs(beta: float) -> None:
    """The mean of a group's 60 centres v_kj ~ N(B_k, 1) is N(0, beta^2 + 1/60); x has covariance diag(j^-1.2)."""
    groups = 300
    data = Synthetic(groups=groups, beta=beta).load()
    x, owner = data.train.x.astype(np.float64), data.train.groups
    sizes = np.bincount(owner)
    centres = np.stack([np.bincount(owner, column) / sizes for column in x.T], axis=1)
    scatter = np.arange(1, 61) ** -1.2
    noise = scatter.sum() / 60**2 / sizes.min()
    variance = beta**2 + 1 / 60
    found = centres.mean(1).var()
    tolerance = SIGMAS * variance * np.sqrt(2 / groups) + noise
    assert abs(found - variance) < tolerance
    within = x - centres[owner]
    degrees = len(x) - groups
    ratio = (within**2).sum(0) / degrees / scatter
    np.testing.assert_allclose(ratio, 1, atol=SIGMAS * np.sqrt(2 / degrees))


def test_synthetic_labels_are_linear_in_the_inputs() -> None:
    """Each group's classes are separated by hyperplanes: as the class is always argmax of W x + b, the region of a
    class is convex, and a linear program finds a separating plane for any two classes."""
    from scipy.optimize import linprog

    data = Synthetic(groups=3).load()
    checked = 0
    for group in range(3):
        mine = data.train.groups == group
        x, y = data.train.x[mine].astype(np.float64), data.train.y[mine]
        present, counts = np.unique(y, return_counts=True)
        first, second = present[np.argsort(counts)[-2:]]
        between = np.isin(y, (first, second))
        side = np.where(y[between] == first, 1.0, -1.0)
        rows = -side[:, None] * np.column_stack([x[between], np.ones(between.sum())])
        plane = linprog(np.zeros(61), A_ub=rows, b_ub=-np.ones(len(rows)), bounds=(None, None))
        assert plane.status == 0
        checked += len(rows)
    assert checked > 61  # in 60 dimensions, a plane separates 61 points, whatever their labels


def test_alpha_changes_nothing() -> None:
    """u_k adds u_k (sum x + 1) to all ten logits of a sample, which does not change their argmax."""
    labels = [Synthetic(alpha=alpha).load().train.y for alpha in (0.0, 0.5)]
    agree = np.mean(labels[0] == labels[1])
    assert agree > 0.99  # some labels differ, as larger sums round differently
