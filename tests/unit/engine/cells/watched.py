"""Make networks with running processes, and record their events."""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np
import simpy

from edgefl.engine.air.measurements import Measurements
from edgefl.engine.cells.network import Network
from edgefl.engine.devices.battery import Battery
from edgefl.engine.devices.power import Power
from edgefl.engine.parts import Cause
from edgefl.engine.records import Event
from edgefl.engine.settings import HandoverSettings
from edgefl.mobility import Movement
from edgefl.testing import Rows
from tests.unit.engine.moving import Moving

RAW = HandoverSettings(l3_filter_k=0)  # no filter, so that times can be derived by hand
Powers = Callable[[float], Sequence[float]]
Row = tuple[str, float, int | None]


def watched(
    env: simpy.Environment,
    movement: Movement,
    cells: int,
    power_db_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
    settings: HandoverSettings,
    radius_m: float | None = None,
    **power: Any,
) -> tuple[Network, Rows]:
    """Start a network; power_db_of maps positions and ids to measurements; `power` has arguments of Power."""
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


class Cells:
    """A network of one device and as many cells as `powers_db(time_s)` has values.

    switches_s: the times at which the device is switched on, off, on ... absent_s: begin and end of its absence.
    """

    def __init__(
        self,
        powers_db: Powers,
        settings: HandoverSettings = RAW,
        *,
        switches_s: Sequence[float] = (),
        absent_s: tuple[float, float] = (np.inf, np.inf),
        battery: Battery | None = None,
        idle_power_w: float = 0.0,
    ) -> None:
        self.env, self.cells = simpy.Environment(), len(powers_db(0.0))
        self.network, self.log = watched(
            self.env,
            # the x coordinate is the time, so that powers_db can be a function of time
            Moving(lambda now_s: [[np.nan if absent_s[0] <= now_s < absent_s[1] else now_s, 0.0]]),
            self.cells,
            lambda positions_m, ids: np.array([powers_db(float(time_s)) for time_s, _ in positions_m]),
            settings,
            switches=[iter(switches_s)] if switches_s else [],
            batteries=[battery] if battery else [],
            idle_power_w=idle_power_w,
        )

    def rows(self, until_s: float = 4.0) -> list[Row]:
        """Return event, time and cell of all rows."""
        self.env.run(until=until_s)
        return [(str(row.event), row.time_s, row.cell) for row in self.log.of[Event]]

    def cell_of(self, until_s: float) -> int | None:
        """Return the cell in which the device is present at a time."""
        self.env.run(until=until_s)
        cells = [cell for cell in range(self.cells) if self.network.present(cell)]
        assert len(cells) <= 1
        return cells[0] if cells else None

    def works_until(self, end_s: float) -> list[Cause]:
        """Let the device work until end_s; return the causes that cut it off."""
        causes: list[Cause] = []

        def part() -> Generator[simpy.Event, None, None]:
            try:
                yield self.env.timeout(end_s - self.env.now)
            except simpy.Interrupt as interrupt:
                causes.append(interrupt.cause)
            self.network.part_ended(0)

        self.network.part_begins(0, self.env.process(part()))
        return causes


def by_turns(*turns_s: float, gap_db: float = 10.0) -> Powers:
    """Return powers of two cells: cell 0 is stronger at first, and the order swaps at each of the times."""
    return lambda time_s: [0.0, gap_db if sum(time_s >= t - 1e-6 for t in turns_s) % 2 else -gap_db]
