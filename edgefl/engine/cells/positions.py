"""Record the positions of all devices at intervals, for replays and maps."""

import itertools
import math
from collections.abc import Callable, Generator, Iterator

import numpy as np
import simpy

from edgefl.channel.units import FloatArray, linear_to_db
from edgefl.engine.cells.network import Network
from edgefl.engine.records import Position, Recorder

# decimals of positions in m and gains in dB, enough for a map; full precision doubles the bytes
DIGITS = 2

LOOKS, FEWEST_LOOKS = 400, 20  # default and minimum number of recorded times in a run
MOST_ROWS = 200_000  # default maximum of devices x times, 8 MB
ROWS_AT_ONCE = 50_000  # rows converted to text at once, 30 MB
FIRST_S = 0.25  # first interval if the end of the run is unknown

# positions [n, 2], ids [n] and cells [n] of devices -> link gains [n] in dB, and linear mean downlink SINR [n]
Readings = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[FloatArray, FloatArray]]


def recorded_positions(
    env: simpy.Environment,
    network: Network,
    recorder: Recorder,
    times_s: Iterator[float],
    readings: Readings | None = None,
) -> Generator[simpy.Event, None, None]:
    """Write a row per present device at each of the times `times_s`.

    Args:
        times_s: times at which to record, ascending, at least 0.
        readings: returns gains and SINR towards serving cells; None if gains depend on rounds or are not needed.
    """
    for time_s in times_s:
        if time_s > env.now:
            yield env.timeout(time_s - env.now)
        positions_m = network.positions_m()
        everybody = np.flatnonzero(np.isfinite(positions_m[:, 0]))
        for begin in range(0, len(everybody), ROWS_AT_ONCE):
            ids = everybody[begin : begin + ROWS_AT_ONCE]
            here_m, cells = positions_m[ids], network.serving(ids)
            gains_db: list[float | None] = [None] * len(ids)
            sinr_db: list[float | None] = [None] * len(ids)
            served = np.flatnonzero(cells >= 0)
            if readings is not None and len(served):
                gains, sinr = readings(here_m[served], ids[served], cells[served])
                read = gains.round(DIGITS).tolist(), linear_to_db(sinr).round(DIGITS).tolist()
                for place, gain_db, its_sinr_db in zip(served.tolist(), *read, strict=True):
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


def looks(devices: int, end_s: float) -> Iterator[float]:
    """Yield the default times at which positions are recorded.

    If the end is known, there are LOOKS equal steps, fewer for many devices. Otherwise that number of steps of
    FIRST_S comes first, then half the number with twice the length, half the number with four times the length, etc.
    """
    count = min(LOOKS, max(FEWEST_LOOKS, MOST_ROWS // devices))
    if math.isfinite(end_s):
        yield from (end_s * number / count for number in range(count + 1))
        return
    time_s, step_s = 0.0, FIRST_S
    for many in itertools.chain([count], itertools.repeat(count // 2)):
        yield from (time_s + number * step_s for number in range(many))
        time_s += many * step_s
        step_s *= 2
