"""Which cell serves each device, since when, and where it was before. Pure NumPy, no clock."""

import numpy as np

NOWHERE = -1


class Attachments:
    """The serving cells of all devices.

    Attributes:
        cell: [devices] serving cell; NOWHERE: none.
        since_s: [devices] a cell counts from then on: interruptions by handover end here.
    """

    def __init__(self, devices: int) -> None:
        self.cell = np.full(devices, NOWHERE)
        self.since_s = np.zeros(devices)
        self._last_cell = np.full(devices, NOWHERE)  # before the serving one, and when it was left
        self._left_s = np.full(devices, -np.inf)

    def connected(self, time_s: float) -> np.ndarray:
        """[devices] cell that serves each now; NOWHERE where it has none or is interrupted."""
        return np.where(self.since_s <= time_s, self.cell, NOWHERE)

    def attach(self, device: int, cell: int, time_s: float) -> None:
        """A device comes from nowhere into a cell."""
        self.cell[device] = cell
        self.since_s[device] = time_s

    def hand_over(
        self, devices: np.ndarray, sources: np.ndarray, time_s: float, interruption_s: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Note that devices [n] have come from the cells sources [n].

        Returns:
            [n] time of stay there; [n] time since the change before; [n] whether they came back from where
            that one had led.
        """
        stays_s = time_s - self.since_s[devices]
        since_change_s = time_s - self._left_s[devices]
        returns = self.cell[devices] == self._last_cell[devices]
        self._last_cell[devices], self._left_s[devices] = sources, time_s
        self.since_s[devices] = time_s + interruption_s
        return stays_s, since_change_s, returns
