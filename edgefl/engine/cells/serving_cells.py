"""Store each device's serving cell, the start of its service, and the previous cell, in NumPy and without a clock."""

import numpy as np

NOWHERE = -1


class ServingCells:
    """The serving cells of all devices.

    Attributes:
        cell: [devices] serving cell of each device, or NOWHERE.
        since_s: [devices] time from which the cell serves the device; after a handover, the end of the interruption.
    """

    def __init__(self, devices: int) -> None:
        self.cell = np.full(devices, NOWHERE)
        self.since_s = np.zeros(devices)
        self._last_cell = np.full(devices, NOWHERE)  # previous cell, and the time at which the device left it
        self._left_s = np.full(devices, -np.inf)

    def connected(self, time_s: float) -> np.ndarray:
        """Return [devices] the cell that serves each device now; NOWHERE without a cell or during a handover."""
        return np.where(self.since_s <= time_s, self.cell, NOWHERE)

    def connecting(self, time_s: float) -> np.ndarray:
        """Return [devices] the cell that will serve each device after an interruption; NOWHERE for other devices."""
        return np.where((self.since_s > time_s) & np.isfinite(self.since_s), self.cell, NOWHERE)

    def attach(self, device: int, cell: int, time_s: float) -> None:
        """Attach a device without a cell; its next change of cell does not count as a return."""
        self.cell[device] = cell
        self.since_s[device] = time_s
        self._last_cell[device] = NOWHERE

    def hand_over(
        self, devices: np.ndarray, sources: np.ndarray, time_s: float, interruption_s: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Record that devices [n] have been handed over from the cells `sources` [n].

        Returns:
            [n] time of stay in the source cell; [n] time since the previous change of cell; [n] whether this change
            reverses the previous one.
        """
        stays_s = time_s - self.since_s[devices]
        since_change_s = time_s - self._left_s[devices]
        returns = self.cell[devices] == self._last_cell[devices]
        self._last_cell[devices], self._left_s[devices] = sources, time_s
        self.since_s[devices] = time_s + interruption_s
        return stays_s, since_change_s, returns
