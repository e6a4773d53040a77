"""What devices measure of the cells: received power, by place."""

from collections.abc import Callable

import numpy as np


class Measurements:
    """Measure the power of the cells at devices: a function of the place, measured again where one has moved.

    Args:
        devices: how many there are.
        power_db: [devices, 2] positions -> [devices, cells] measured power in dB; None: there is one cell.
        power_db_of: the same of some devices: positions, ids -> [n, cells]; None: all devices measure alike.
    """

    def __init__(
        self,
        devices: int,
        cells: int,
        power_db: Callable[[np.ndarray], np.ndarray] | None,
        power_db_of: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
    ) -> None:
        self.several = power_db is not None
        self._power_db = power_db
        self._power_db_of = power_db_of
        # of the last measurement: positions, and the power there
        self._places_m = np.full((devices, 2), np.inf)
        self._last_db = np.empty((cells, devices), np.float32).T

    def now_db(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [devices, cells] the power at all devices, measured again for those that have moved."""
        assert self._power_db is not None  # of one cell nothing is measured
        # bit by bit, so that one that stays absent (nan) has not moved
        changed = positions_m.view(np.int64) != self._places_m.view(np.int64)
        moved = np.flatnonzero(changed[:, 0] | changed[:, 1])
        if len(moved) > len(changed) / 2:
            self._last_db = self._power_db(positions_m)
        elif len(moved):
            self._last_db[moved] = self._power_at(positions_m[moved], moved)
        self._places_m = positions_m
        return self._last_db

    def strongest_of(self, device: int, positions_m: np.ndarray) -> int:
        """Return the cell that one of the devices, which is present, measures as the strongest at its place."""
        if not self.several:
            return 0
        return int(self._power_at(positions_m[[device]], np.array([device])).argmax())

    def strongest(self, positions_m: np.ndarray) -> np.ndarray:
        """Return [devices] `strongest_of` each device."""
        if self._power_db is None:
            return np.zeros(len(positions_m), dtype=int)
        return self._power_db(np.nan_to_num(positions_m)).argmax(axis=1)

    def _power_at(self, places_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return [n, cells] the power at some devices: which they are matters where they do not measure alike."""
        if self._power_db_of is not None:
            return self._power_db_of(places_m, ids)
        assert self._power_db is not None  # of one cell nothing is measured
        return self._power_db(places_m)
