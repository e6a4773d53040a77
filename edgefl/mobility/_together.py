"""Joint movement of devices with several mobility models."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from edgefl.mobility import Movement, Trips, closest_m, ends_s, notes, still_until_s, trips


class Together:
    """The movement of devices with different models.

    Args:
        parts: for each mobility model, the ids of its devices, the movement, and the devices' rows in the movement.
    """

    def __init__(self, parts: Sequence[tuple[np.ndarray, Movement, np.ndarray]]) -> None:
        self._parts = parts
        self._count = sum(len(ids) for ids, _, _ in parts)
        # what the first trace says, for messages
        self.times, self.wrong_rows = (
            next((told for _, movement, _ in parts if (told := getattr(movement, name, ""))), "")
            for name in ("times", "wrong_rows")
        )
        self.ends_s = max((ends_s(movement) for ids, movement, _ in parts if len(ids)), default=math.inf)
        self.moves = any(movement.moves for ids, movement, _ in parts if len(ids))

    def positions_m(self, time_s: float) -> np.ndarray:
        positions_m = np.empty((self._count, 2))
        for ids, movement, rows in self._parts:
            positions_m[ids] = movement.positions_m(time_s)[rows]
        return positions_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        speeds_m_s = np.empty(self._count)
        for ids, movement, rows in self._parts:
            speeds_m_s[ids] = movement.doppler_speeds_m_s()[rows]
        return speeds_m_s

    def still_until_s(self, time_s: float) -> float:
        """Return the time until which no device moves; `time_s` if any device may be moving."""
        return min(
            (still_until_s(movement, time_s) for ids, movement, _ in self._parts if len(ids)),
            default=math.inf,
        )

    def notes(self, ids: np.ndarray) -> Iterator[str]:
        """Yield each movement's notes on those of the given devices that it moves."""
        for own, movement, rows in self._parts:
            yield from notes(movement, rows[np.isin(own, ids)])

    def closest_m(self, until_s: float) -> float:
        """Return a lower bound on the distance of all devices from [0, 0] in the time 0 to until_s, m."""
        return min(
            (closest_m(movement, until_s) for ids, movement, _ in self._parts if len(ids)), default=math.inf
        )

    def trips(self, time_s: float) -> Trips:
        """Return each device's trip at a time, from the device's mobility model."""
        number, speed_m_s = np.empty(self._count, dtype=np.int64), np.empty(self._count)
        for ids, movement, rows in self._parts:
            found = trips(movement, time_s)
            number[ids], speed_m_s[ids] = found.number[rows], found.speed_m_s[rows]
        return Trips(number, speed_m_s)


def parts_of(movement: Movement, devices: int) -> list[tuple[int, Movement]]:
    """Return the parts of a movement of all devices, each with its number of devices."""
    if isinstance(movement, Together):
        return [(len(ids), part) for ids, part, _ in movement._parts]
    return [(devices, movement)]
