"""Provide small scenarios on real data, and a real Ray cluster for tests that need one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DIGITS = """\
name: digits
seed: 3
devices: {count: 8}
sessions: {name: schedule, count: 4, rounds: 3}
learning:
  dataset: digits
  partition: {name: dirichlet, alpha: 0.5, overlap: 0.0}
  model: logistic
  algorithm: fedprox
  warm_start: similarity
  local:
    lr: 0.05
    batch: 16
"""
STUDY = """\
name: small
scenario: digits.yaml
seeds: [3, 4]
reference: similarity
variants:
  similarity: {learning.warm_start: similarity}
  previous: {learning.warm_start: previous}
"""


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """Write a scenario file, and next to it `small.yaml`, a study of this scenario."""
    path = tmp_path / "digits.yaml"
    path.write_text(DIGITS)
    (tmp_path / "small.yaml").write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start two Ray nodes on this machine, each with one core, a store and workers; the driver runs on the first."""
    ray = pytest.importorskip("ray", reason="in the ray extra")
    from ray.cluster_utils import Cluster

    store = {"object_store_memory": 80_000_000}  # in bytes, close to Ray's minimum
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **store})
    made.add_node(num_cpus=1, **store)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()
