"""Measure the power that devices receive from the cells, once at each time for all callers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Survey:
    """Power received from all cells at all devices at one time; surveys are compared by identity.

    positions_m: [devices, 2] positions, nan for absent devices. power_db: [devices, cells] received power; rows of
    absent devices are meaningless. Both arrays are read-only.
    """

    positions_m: np.ndarray
    power_db: np.ndarray


class Measurements:
    """Measure the power that devices receive from the cells, again only for devices that have moved.

    Args:
        cells: number of cells.
        power_db_of: returns the power [n, cells] in dB at positions [n, 2] of devices [n]; None for a single cell.

    Attributes:
        changes: known changes of cell, as (time, devices [n], new cells [n]); empty if measurements decide.
    """

    def __init__(
        self, cells: int, power_db_of: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    ) -> None:
        self.cells = cells
        self.several = power_db_of is not None
        self._power_db_of = power_db_of
        self._known: Survey | None = None
        self.changes: list[tuple[float, np.ndarray, np.ndarray]] = []

    def survey(self, positions_m: np.ndarray) -> Survey:
        """Return a survey of all devices at positions_m [devices, 2]; recompute only devices that have moved."""
        known = self._known
        if known is not None:
            if positions_m is known.positions_m:
                return known
            # compare bits, so that nan equals nan and a device that stays absent has not moved
            changed = positions_m.view(np.int64) != known.positions_m.view(np.int64)
            moved = np.flatnonzero(changed[:, 0] | changed[:, 1])
        if known is None or len(moved) > len(positions_m) / 2:
            power_db = self._power_db(positions_m, np.arange(len(positions_m)))
        else:
            power_db = known.power_db
            if len(moved):
                power_db = power_db.copy(order="K")
                power_db[moved] = self._power_db(positions_m[moved], moved)
        self._known = Survey(positions_m, power_db)
        return self._known

    def strongest_of(self, device: int, positions_m: np.ndarray) -> int:
        """Return the strongest cell at the place of a device, which must be present."""
        if not self.several:
            return 0
        return int(self._power_db(positions_m[[device]], np.array([device])).argmax())

    def strongest(self, positions_m: np.ndarray) -> np.ndarray:
        """Return the strongest cell [devices] at the place of each device, as `strongest_of` does for one device."""
        everyone = np.arange(len(positions_m))
        if not self.several:
            return np.zeros_like(everyone)
        return self._power_db(np.nan_to_num(positions_m), everyone).argmax(axis=1)

    def _power_db(self, places_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        assert self._power_db_of is not None  # a single cell is not measured
        return self._power_db_of(places_m, ids)
