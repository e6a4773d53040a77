"""A network whose processes run, with a table of what happens in it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import simpy

from edgefl.engine.air.measurements import Measurements
from edgefl.engine.cells.network import Network
from edgefl.engine.devices.power import Power
from edgefl.engine.settings import HandoverSettings
from edgefl.mobility import Movement
from edgefl.testing import Rows


def watched(
    env: simpy.Environment,
    movement: Movement,
    cells: int,
    power_db_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    settings: HandoverSettings,
    radius_m: float | None = None,
    **power: Any,
) -> tuple[Network, Rows]:
    """Start a network; power_db_of: positions, ids -> what devices measure; power: switches, batteries, ..."""
    log = Rows()
    network = Network(
        env,
        movement=movement,
        measurements=Measurements(cells, power_db_of),
        power=partial(Power, env, len(movement.positions_m(0.0)), **power),
        tick_s=settings.measurement_interval_s,
        handover=settings,
        recorder=log,
        radius_m=radius_m,
    )
    for process in network.processes():
        env.process(process)
    return network, log
