"""Number a federation's devices from 0 for its learners, as if the run had no other devices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.scenario.world import World


@dataclass(frozen=True)
class Members:
    """The devices of a federation, with indices from 0 in ascending order of id.

    A federation's data, first model and mini-batches therefore do not depend on other federations' devices: without
    other federations, and with the same number of devices, it would learn the same model.

    Args:
        ids: [devices] ids in the run, ascending; None if the federation has all devices, whose indices are their ids.
        count: number of devices in the federation.
        homes_m: [devices, 2] positions at time 0; NaN for absent devices.
        kept: [devices] share of its training samples that each device keeps, or None if devices keep all samples.
        populations: indices of the devices of each standing population.
    """

    ids: np.ndarray | None
    count: int
    homes_m: np.ndarray
    kept: np.ndarray | None
    populations: Sequence[range]


def members_of(world: World) -> Members:
    """Return the numbered devices of the world's federation, with positions, kept shares and populations.

    Raises:
        EdgeflError: the federation has no device in a standing population, so its sessions would have no data.
    """
    homes_m, kept = world.movement.positions_m(0.0), world.fleet.samples_kept
    if world.only is None:
        return Members(None, world.count, homes_m, kept, world.populations)
    ids = np.array(sorted(world.only), dtype=np.intp)
    begins = np.searchsorted(ids, [population.start for population in world.populations] + [world.count])
    populations = [
        range(begin, end) for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True)
    ]
    empty = [number for number, population in enumerate(populations, start=1) if not population]
    if empty:
        raise EdgeflError(
            f"a federation has no device in population {empty[0]}, but trains in that population's "
            "sessions too: choose fewer populations, or more devices",
            ("devices", "populations"),
        )
    return Members(ids, len(ids), homes_m[ids], None if kept is None else kept[ids], populations)
