"""What devices measure of the cells: received power, by place; one survey of all serves whoever asks at a time."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Survey:
    """What all devices measured at one time; another one is not equal.

    positions_m: [devices, 2] where they were, nan: absent. power_db: [devices, cells]; rows of absent devices mean
    nothing. Both are not to be written to.
    """

    positions_m: np.ndarray
    power_db: np.ndarray


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
        self._last = Survey(np.full((devices, 2), np.inf), np.empty((cells, devices), np.float32).T)

    @property
    def last(self) -> Survey | None:
        """What was measured last; None: nothing yet."""
        return None if np.isinf(self._last.positions_m[0, 0]) else self._last

    def survey(self, positions_m: np.ndarray) -> Survey:
        """Return the power at all devices, which are at [devices, 2]: measured again for those that have moved."""
        assert self._power_db is not None  # of one cell nothing is measured
        last_m, power_db = self._last.positions_m, self._last.power_db
        if positions_m is last_m:
            return self._last
        # bit by bit, so that one that stays absent (nan) has not moved
        changed = positions_m.view(np.int64) != last_m.view(np.int64)
        moved = np.flatnonzero(changed[:, 0] | changed[:, 1])
        if len(moved) > len(changed) / 2:
            power_db = self._power_db(positions_m)
        elif len(moved):
            power_db = power_db.copy(order="K")
            power_db[moved] = self._power_at(positions_m[moved], moved)
        self._last = Survey(positions_m, power_db)
        return self._last

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
