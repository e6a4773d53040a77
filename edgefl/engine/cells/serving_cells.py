"""Which cell serves each device, since when, and where it was before. Pure NumPy, no clock."""

import numpy as np

NOWHERE = -1


class ServingCells:
    """The serving cells of all devices.

    Attributes:
        cell: [devices] serving cell; NOWHERE: none.
        since_s: [devices] when the cell begins to serve the device: after a handover, when the interruption ends.
    """

    def __init__(self, devices: int) -> None:
        self.cell = np.full(devices, NOWHERE)
        self.since_s = np.zeros(devices)
        self._last_cell = np.full(devices, NOWHERE)  # before the serving one, and when it was left
        self._left_s = np.full(devices, -np.inf)

    def connected(self, time_s: float) -> np.ndarray:
        """Return [devices] the cell that serves each device now; NOWHERE without a cell or during a handover."""
        return np.where(self.since_s <= time_s, self.cell, NOWHERE)

    def connecting(self, time_s: float) -> np.ndarray:
        """Return [devices] the cell that will serve each device when an interruption is over; NOWHERE: no such."""
        return np.where((self.since_s > time_s) & np.isfinite(self.since_s), self.cell, NOWHERE)

    def attach(self, device: int, cell: int, time_s: float) -> None:
        """Attach a device without a cell to one; no change of cell from then on undoes one before."""
        self.cell[device] = cell
        self.since_s[device] = time_s
        self._last_cell[device] = NOWHERE

    def hand_over(
        self, devices: np.ndarray, sources: np.ndarray, time_s: float, interruption_s: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Record that devices [n] have come from the cells `sources` [n].

        Returns:
            [n] time of stay in the source; [n] time since the change of cell before; [n] whether this change
            undoes that one.
        """
        stays_s = time_s - self.since_s[devices]
        since_change_s = time_s - self._left_s[devices]
        returns = self.cell[devices] == self._last_cell[devices]
        self._last_cell[devices], self._left_s[devices] = sources, time_s
        self.since_s[devices] = time_s + interruption_s
        return stays_s, since_change_s, returns
