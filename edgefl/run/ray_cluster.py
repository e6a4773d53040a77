"""The way to a Ray cluster. Ray is loaded only when a cluster is asked for."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from edgefl.errors import EdgeflError

GOES_ON = "what is written stays: a study's command goes on with it, and `edgefl resume` with a run"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give the package ray, connected; a connection that was there before stays.

    Args:
        address: `auto`: the cluster that this machine belongs to; `local`: one that is started here, and ends with
            this; host:port, or ray://host:port.

    Raises:
        EdgeflError: there is no Ray, or no such cluster; or it fails while it is used, in a way that no other
            machine of it can mend.
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
    except ray.exceptions.ObjectStoreFullError as error:
        raise EdgeflError(
            f"--executor ray: the cluster's memory for data and models is full ({_first_line(error)}); start its"
            f" nodes with a larger --object-store-memory, or take fewer --workers; {GOES_ON}"
        ) from error
    except ray.exceptions.RayError as error:
        raise EdgeflError(
            f"--executor ray: the cluster has failed ({type(error).__name__}: {_first_line(error)}); see `ray"
            f" status`; {GOES_ON}"
        ) from error
    finally:
        if ours:
            ray.shutdown()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
