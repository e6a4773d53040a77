"""Check that devices come within range of a site, in a layout that is wider than its path loss holds."""

import math
from collections.abc import Iterator

import numpy as np

from edgefl.channel.geometry import within
from edgefl.engine.air.gains import SpatialGains
from edgefl.errors import EdgeflError
from edgefl.scenario.world import World

LOOKS, CLOSER_LOOKS = 200, 20  # times at which all devices are looked at; as many times more for suspects
UNKNOWN_END_S = 3600.0  # looked at in a run whose end is unknown


def check(world: World) -> Iterator[str]:
    """Yield a note on devices that are out of range of all sites for part of their way.

    Raises:
        EdgeflError: a device has no site in range on all of its way; names the layout's key and the remedy.
    """
    gains = world.gains
    if not (world.scenario.layout.several and isinstance(gains, SpatialGains) and gains.range_m < math.inf):
        return
    end_s = min(world.scenario.latest_end_s, world.scenario.duration_s or math.inf)
    known = end_s < math.inf
    looks = LOOKS if world.movement.moves else 0
    here, reached = _looks(world, gains, end_s if known else UNKNOWN_END_S, looks)
    if known and looks and (here > reached).any() and not reached[here > 0].all():
        here, reached = _looks(world, gains, end_s, LOOKS * CLOSER_LOOKS)
    farther = f"farther than {gains.range_m:,.0f} m, where the path loss ends, from every site"
    never = np.flatnonzero((here > 0) & (reached == 0))
    if len(never) and (known or not looks):
        others = f", as are {len(never) - 1:,} others" if len(never) > 1 else ""
        raise EdgeflError(
            f"device {never[0]} is {farther} on all of its way{others}: add sites near them, make the world smaller"
            " (layout.radius_m), or keep devices nearer to sites",
            ("layout", "sites" if world.scenario.layout.sites is not None else "isd_m"),
        )
    partly = np.count_nonzero(here > reached)
    if partly:
        yield (
            f"layout: {partly:,} of {world.count:,} devices are {farther} for a part of their way"
            f" ({1 - reached.sum() / here.sum():.1%} of all devices' time), and absent there; more sites reach them"
        )


def _looks(world: World, gains: SpatialGains, end_s: float, looks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return [devices] how often each is in the world, and how often there in range of a site."""
    here = np.zeros(world.count, dtype=int)
    reached = np.zeros(world.count, dtype=int)
    for time_s in np.linspace(0.0, end_s, looks + 1).tolist():
        positions_m = world.movement.positions_m(time_s)
        inside = np.flatnonzero(within(positions_m, world.extent.edge_m))
        here[inside] += 1
        reached[inside] += gains.reached(positions_m[inside])
        if looks > LOOKS and here.all() and reached.all():
            break
    return here, reached
