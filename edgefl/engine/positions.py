"""Positions of all devices written down at an interval, for replays and maps."""

import itertools
from collections.abc import Callable, Generator

import numpy as np
import simpy

from channel.units import FloatArray, linear_to_db
from edgefl.engine.coverage import LargeScaleOfPlaces
from edgefl.engine.gains import LargeScaleState
from edgefl.engine.network import Network
from edgefl.engine.records import Position, Recorder

# of positions in m and gains in dB, as a map needs them: full precision would be twice as many bytes
DIGITS = 2

# large-scale state -> [devices] mean SINR of the downlink, linear
Sinr = Callable[[LargeScaleState], FloatArray]


def recorded_positions(
    env: simpy.Environment,
    network: Network,
    recorder: Recorder,
    every_s: float,
    large_scale: LargeScaleOfPlaces | None,
    sinr: Sinr,
) -> Generator[simpy.Event, None, None]:
    """Write a row per device at time 0 and every `every_s` from then on; absent devices have none.

    Args:
        large_scale: the links to the serving cells; None: gains belong to rounds, not to places.
        sinr: what the radio makes of them.
    """
    for number in itertools.count(1):
        positions_m = network.positions_m()
        ids = np.flatnonzero(np.isfinite(positions_m[:, 0]))
        if len(ids):
            here_m, cells = positions_m[ids], network.serving(ids)
            gains_db: list[float | None] = [None] * len(ids)
            sinr_db: list[float | None] = [None] * len(ids)
            served = np.flatnonzero(cells >= 0)
            if large_scale is not None and len(served):
                state = large_scale(here_m[served], ids[served], cells[served])
                gains = state.gains_db.round(DIGITS).tolist()
                sinrs = linear_to_db(sinr(state)).round(DIGITS).tolist()
                for place, gain_db, its_sinr_db in zip(served.tolist(), gains, sinrs, strict=True):
                    gains_db[place], sinr_db[place] = gain_db, its_sinr_db
            recorder.write_columns(
                Position,
                time_s=env.now,
                device=ids,
                x_m=here_m[:, 0].round(DIGITS),
                y_m=here_m[:, 1].round(DIGITS),
                cell=[cell if cell >= 0 else None for cell in cells.tolist()],
                gain_db=gains_db,
                sinr_db=sinr_db,
            )
        yield env.timeout(max(0.0, number * every_s - env.now))
