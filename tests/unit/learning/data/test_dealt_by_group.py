"""Test that samples loaded when a device takes part equal samples that are all loaded at once."""

import signal
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edgefl import load_scenario, simulate
from edgefl.engine.selectors import Candidates
from edgefl.engine.selectors.uniform import Uniform
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.data.dealt_by_group import DealtByGroup, total
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.data.sample_pool import SamplePool
from edgefl.learning.datasets import Split
from edgefl.learning.datasets.synthetic import Synthetic
from edgefl.learning.partitions import PartitionInputs
from edgefl.learning.partitions.natural import Natural
from edgefl.rng import Streams
from edgefl.run_directory.interruption import Interrupted
from edgefl.testing.cell import within
from tests.refusals import refused_at
from tests.tables import sections
from tests.tools.leaving import goes_on

GROUPS, DEVICES = 40, 25
AT_ONCE, ON_DEMAND = Synthetic(groups=GROUPS), Synthetic(groups=GROUPS, test_groups=GROUPS)


SCENARIO = sections("""
    name=by_group; devices.count=25; rounds.selector={name: uniform, count: 6}
    sessions={name: schedule, count: 2, rounds: 3}; learning.dataset={name: synthetic, groups: 40}
    learning.partition=natural; learning.model=logistic; learning.local={steps: 3, batch: 10}
""")


def scenario(**learning: Any) -> dict[str, Any]:
    return within(SCENARIO, {"learning": learning})


@pytest.mark.parametrize("kept", [None, np.full(DEVICES, 0.3)])
def test_dealt_on_demand_is_dealt_at_once_device_by_device(kept: np.ndarray | None) -> None:
    data, on_demand = AT_ONCE.load(), ON_DEMAND.load()
    streams, partition, by_group = Streams(3), Natural(), on_demand.by_group
    inputs = PartitionInputs(data.train.groups, kept=kept)
    eager = DeviceData(partition, data.train.y, DEVICES, streams, inputs)
    split = SplitInMemory(on_demand.train, data.mean, data.std, torch.device("cpu"))
    pool = SamplePool(by_group, split, threads=2)
    lazy = DealtByGroup(partition, by_group, 10, DEVICES, streams, pool, kept)
    assert dict(lazy.sizes(range(DEVICES))) == dict(eager.sizes(range(DEVICES)))
    assert total(lazy.sizes(range(DEVICES))) == total(eager.sizes(range(DEVICES)))
    assert lazy.mix([4, 9]) == eager.mix([4, 9])
    for cohort in ([3, 8, 20], [3, 8, 20], [8], [0, 24, 3]):
        lazy.bring(cohort)
        for device in cohort:
            rows = lazy.samples(device)
            assert np.array_equal(split.x[rows].numpy(), data.train.x[eager.samples(device)])
            assert np.array_equal(split.y[rows].numpy(), data.train.y[eager.samples(device)])


def test_samples_are_made_once_when_a_thread_reads_them_first() -> None:
    """Reserving rows makes no samples, and four threads that read at the same time make each group once."""
    data, made = ON_DEMAND.load(), list[int]()

    class Counted:
        sizes = np.full(GROUPS, 5)
        content = ""

        def of(self, group: int) -> Split:
            made.append(group)
            time.sleep(0.01)
            return Split(np.zeros((5, 60), np.float32), np.full(5, group))

    split = SplitInMemory(data.train, data.mean, data.std, torch.device("cpu"))
    pool = SamplePool(Counted(), split, threads=2)
    pool.bring([7, 8, 9])
    assert pool.rows(8).tolist() == [5, 6, 7, 8, 9]
    assert split.count == 15
    assert not made
    with ThreadPoolExecutor(4) as threads:
        seen = [set(y.tolist()) for y in threads.map(lambda _: split.y, range(4))]
    assert seen == [{7, 8, 9}] * 4
    assert sorted(made) == [7, 8, 9]
    pool.bring([4])  # `lap` reads these samples first
    assert (split.lap(0).y.tolist(), made[3:]) == ([4] * 5, [4])


def test_the_first_groups_test_samples_are_the_test_data() -> None:
    everything, some = AT_ONCE.load().test, Synthetic(groups=GROUPS, test_groups=7).load().test
    first = everything.groups < 7
    assert np.array_equal(some.x, everything.x[first])
    assert np.array_equal(some.y, everything.y[first])


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_run_is_the_same_to_the_last_byte(tmp_path: Path, algorithm: str) -> None:
    """Loading samples on demand changes no byte, even with SCAFFOLD, whose devices keep vectors between rounds."""
    tables = []
    for name, dataset in (("at_once", {}), ("on_demand", {"test_groups": GROUPS})):
        run = simulate(scenario(dataset=dataset, algorithm=algorithm), tmp_path / name, device="cpu")
        tables.append([(run / f"{table}.csv").read_bytes() for table in ("rounds", "devices", "sessions")])
    assert tables[0] == tables[1]


def test_a_run_goes_on_where_it_was_left(tmp_path: Path) -> None:
    on_demand = load_scenario(scenario(dataset={"test_groups": 5}))
    goes_on(on_demand, tmp_path, after=5, every=2, error=Interrupted(signal.SIGTERM))


def test_a_device_that_does_not_take_part_takes_a_few_bytes() -> None:
    """A device that does not take part needs memory for only a few numbers, such as its group and its sample count.

    A single sample has 240 bytes, and a group 407 samples on average.
    """
    many = 20_000
    tracemalloc.start()
    try:
        by_group = Synthetic(groups=many, test_groups=1).load().by_group
        dealt = DealtByGroup(Natural(), by_group, 10, many, Streams(1))
        assert len(dealt.sizes(range(many))) == many
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # at the peak, a stream has 4 seed words of 8 bytes, 4 words more during mixing, and Python lists of all words
    assert peak / many <= 8 * 8 * 8


def test_a_cohort_of_a_million_is_drawn_uniformly() -> None:
    """K cohorts of n devices have a mean count of Kn/B in each of B blocks of ids, and a chi-square near B - 1."""
    many, cohort, rounds, blocks = 1_000_000, 1_000, 20, 50
    candidates = Candidates(range(many), np.zeros(many), 0)
    counts = np.zeros(blocks)
    for round_ in range(rounds):
        chosen = Uniform(count=cohort).select(candidates, cohort, Streams(1)("select", 1, "train", round_))
        assert len(set(chosen)) == cohort
        counts += np.bincount(np.array(chosen) * blocks // many, minlength=blocks)
    mean = rounds * cohort / blocks
    chi_square = ((counts - mean) ** 2).sum() / mean
    # chi-square has mean B - 1 and variance 2 (B - 1); four standard deviations are allowed
    assert abs(chi_square - (blocks - 1)) <= 4 * np.sqrt(2 * (blocks - 1))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partition", "iid"),
        ("evaluation.validation", 0.1),
        ("evaluation.tested_on", "devices"),
        ("drift", {"name": "label_swap", "at": 2}),
    ],
)
def test_what_needs_all_samples_is_refused_at_its_key(tmp_path: Path, key: str, value: Any) -> None:
    on_demand = load_scenario(scenario(dataset={"test_groups": 5}))
    with refused_at(f"learning.{key}", "test_groups"):
        simulate(on_demand.with_({f"learning.{key}": value}), tmp_path / "run", device="cpu")
