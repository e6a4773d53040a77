"""The devices of a federation as its learners know them: numbered from 0 on, as if there were no others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.scenario.world import World


@dataclass(frozen=True)
class Members:
    """The devices that data are dealt to, by number: 0 is the one with the lowest id.

    So a federation's data, first model and mini-batches do not depend on whose devices lie between its own: with as
    many devices alone it learns the same.

    Args:
        ids: [devices] of the run, ascending; None: these are all, and a device's number is its id.
        count: how many they are.
        homes_m: [devices, 2] positions at time 0, NaN: not there yet.
        kept: [devices] share of the training samples dealt to each that it keeps; None: all.
        populations: numbers of the devices of each standing population.
    """

    ids: np.ndarray | None
    count: int
    homes_m: np.ndarray
    kept: np.ndarray | None
    populations: Sequence[range]


def members_of(world: World) -> Members:
    """Return the devices of the world's federation.

    Raises:
        EdgeflError: a standing population has none of them, and no data could be dealt to it.
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
            f"population {empty[0]} has no device of a federation, which trains in its sessions too: take fewer"
            " populations, or more devices",
            ("devices", "populations"),
        )
    return Members(ids, len(ids), homes_m[ids], None if kept is None else kept[ids], populations)
