"""A real Ray cluster of two nodes on this machine, for the tests that want one."""

from collections.abc import Iterator
from typing import Any

import pytest

STORE = 80_000_000  # bytes, about the least


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes of one core, each with a store and workers of its own; the driver is on the first."""
    ray = pytest.importorskip("ray", reason="in the ray extra")
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False},
    )
    made.add_node(num_cpus=1, object_store_memory=STORE)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()
