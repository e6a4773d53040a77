"""Positions of all devices written down at an interval, for replays and maps."""

import itertools
from collections.abc import Callable, Generator

import numpy as np
import simpy

from channel.units import FloatArray
from edgefl.engine.network import Network
from edgefl.engine.records import Position, Recorder

# of positions in m and gains in dB, as a map needs them: full precision would be twice as many bytes
DIGITS = 2

# positions [n, 2], ids [n] and cells [n] of devices -> [n] gain of their links in dB
GainsOfPlaces = Callable[[np.ndarray, np.ndarray, np.ndarray], FloatArray]


def recorded_positions(
    env: simpy.Environment,
    network: Network,
    recorder: Recorder,
    every_s: float,
    gains_db: GainsOfPlaces | None,
) -> Generator[simpy.Event, None, None]:
    """Write a row per device at time 0 and every `every_s` from then on; absent devices have none.

    Args:
        gains_db: of the links to the serving cells; None: gains belong to rounds, not to places.
    """
    for number in itertools.count(1):
        positions_m = network.positions_m()
        ids = np.flatnonzero(np.isfinite(positions_m[:, 0]))
        if len(ids):
            here_m, cells = positions_m[ids], network.serving(ids)
            found: list[float | None] = [None] * len(ids)
            if gains_db is not None:
                served = np.flatnonzero(cells >= 0)
                known = gains_db(here_m[served], ids[served], cells[served]).round(DIGITS)
                for place, gain_db in zip(served.tolist(), known.tolist(), strict=True):
                    found[place] = gain_db
            recorder.write_columns(
                Position,
                time_s=env.now,
                device=ids,
                x_m=here_m[:, 0].round(DIGITS),
                y_m=here_m[:, 1].round(DIGITS),
                cell=[cell if cell >= 0 else None for cell in cells.tolist()],
                gain_db=found,
            )
        yield env.timeout(max(0.0, number * every_s - env.now))
