"""Test the partition in which each device draws its own mix of labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.learning.partitions.dirichlet_mix import DirichletMix
from edgefl.rng import Streams
from tests.refusals import refused_at

SIGMAS = 4.0  # two-sided chance of 6e-5 per comparison


@settings(max_examples=60, deadline=None, derandomize=True)
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
    assert abs(alike.mean() - expected) < SIGMAS * error
    # over all devices, labels have the frequencies of the data set
    shares = held / each
    share_error = shares.std(0, ddof=1) / np.sqrt(devices)
    assert (np.abs(shares.mean(0) - np.array(counts) / sum(counts)) < SIGMAS * share_error).all()


def test_who_draws_last_is_chance() -> None:
    """Devices draw in random order, so the last one, which gets the remaining labels, may have any id."""
    labels, runs, last = np.repeat(np.arange(10), 500), 10, 5
    distinct = []
    for seed in range(runs):
        dealt = DirichletMix(alpha=5.0, samples=50).assign(labels, 100, 1, Streams(seed))
        distinct.append([len(np.unique(labels[own])) for own in dealt])
    of = np.array(distinct)
    error = of.std() / np.sqrt(runs * last)
    assert abs(of[:, -last:].mean() - of.mean()) < SIGMAS * error


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
