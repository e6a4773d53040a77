"""Look ahead before a run: does any device come into the cells at all?"""

import math
from collections.abc import Iterator

import numpy as np

from edgefl.engine.cells.network import Network
from edgefl.errors import EdgeflError
from edgefl.mobility import Mobility, Movement
from edgefl.mobility.trace import Trace
from edgefl.scenario.world import World

MOST_PLACES = 2_000_000  # devices x times looked at
FEWEST_TIMES, MOST_TIMES = 50, 5_000
DAY_S = 86_400.0  # longest time of a model's movement that is looked at; a file is looked at to the end


class _Looks:
    """What is seen of the devices at times from 0 on.

    Attributes:
        inside: whether a device is within the edge at one of them.
        nearest_m: smallest distance from [0, 0], inf if no device is anywhere.
        step_m: largest distance of a device between two of them.
        middle_m: mean place of all devices, if there are any.
    """

    def __init__(self, movement: Movement, times_s: np.ndarray, edge_m: float) -> None:
        self.inside, self.nearest_m, self.step_m = False, math.inf, 0.0
        seen, sum_m, before_m = 0, np.zeros(2), None
        for time_s in times_s.tolist():
            places_m = movement.positions_m(time_s)
            there_m = places_m[~np.isnan(places_m[:, 0])]
            if len(there_m):
                self.nearest_m = min(self.nearest_m, float(np.hypot(*there_m.T).min()))
                seen, sum_m = seen + len(there_m), sum_m + there_m.sum(axis=0)
            if self.nearest_m <= edge_m:
                self.inside = True
                return
            if before_m is not None:
                steps_m = np.nan_to_num(np.hypot(*(places_m - before_m).T))
                self.step_m = max(self.step_m, float(steps_m.max(initial=0.0)))
            before_m = places_m
        self.middle_m = sum_m / max(seen, 1)


def check(world: World, network: Network) -> Iterator[str]:
    """Look for a device in the cells, if none is there at time 0, until the run ends or gives up waiting.

    A run is refused if its devices certainly stay outside: they are farther away than they move between two looks.
    Left out: switches and batteries.

    Yields:
        A note if no device is seen inside, but one may come between two looks, or later.

    Raises:
        EdgeflError: no device comes; names where they are, and the remedy.
    """
    scenario, edge_m = world.scenario, world.extent.edge_m
    if network.still or any(network.present(cell) for cell in range(scenario.layout.cells)):
        return
    ends_s = scenario.latest_end_s if scenario.latest_end_s < math.inf else scenario.rounds.max_wait_s
    place, mobility = scenario.devices.mobilities()[0]
    until_s = ends_s if mobility.own_numbers else min(ends_s, DAY_S)
    times = int(np.clip(MOST_PLACES // world.count, FEWEST_TIMES, MOST_TIMES))
    looks = _Looks(world.movement, np.linspace(0.0, until_s, times), edge_m)
    if looks.inside:
        return
    if looks.nearest_m < math.inf:
        message = (
            f"no device comes nearer than {looks.nearest_m:,.0f} m to [0, 0] in the first {until_s:,.0f} s, but the"
            f" cells end at {edge_m:,.0f} m; the devices' middle is {_point(looks.middle_m)} m: put sites there"
            f" (layout.sites){_origin(mobility, looks.middle_m)}"
        )
    else:
        begin = "begin earlier (mobility.begin_s), or " if isinstance(mobility, Trace) else ""
        message = (
            f"no device is anywhere in the first {until_s:,.0f} s: {begin}make the run longer (duration_s)"
        )
    if until_s == ends_s and looks.nearest_m - looks.step_m > edge_m:
        raise EdgeflError(message, place)
    yield f"{'.'.join(place)}: looked at {times:,} times: {message}"


def _point(place_m: np.ndarray) -> str:
    return f"[{', '.join(f'{value:.0f}' for value in place_m)}]"


def _origin(mobility: Mobility, middle_m: np.ndarray) -> str:
    """Suggest the origin of a trace that moves the devices' middle to [0, 0]; '' for other models."""
    if not isinstance(mobility, Trace):
        return ""
    return f", or set mobility.origin_m: {_point(np.add(mobility.origin_m, middle_m / mobility.scale))}"
