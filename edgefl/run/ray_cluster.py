"""The way to a Ray cluster. Ray is loaded only when a cluster is asked for."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgefl.errors import EdgeflError


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give the package ray, connected; a connection that was there before stays.

    Args:
        address: `auto`: the cluster that this machine belongs to; `local`: one that is started here, and ends with
            this; host:port, or ray://host:port.

    Raises:
        EdgeflError: there is no Ray, or no such cluster.
    """
    try:
        import ray
    except ImportError as error:
        raise EdgeflError("--executor ray needs the package ray: pip install 'edgefl-cosim[ray]'") from error
    ours = not ray.is_initialized()
    if ours:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of GPUs that are not asked for
                ray.init(address=address, log_to_driver=False, logging_level="WARNING")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise EdgeflError(
                f"--executor ray: no cluster at address '{address}' ({error}); start one with"
                " `ray start --head`, or give --address local"
            ) from error
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()
