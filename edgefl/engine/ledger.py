"""The energy ledger: every joule of a device once, by what the device was doing."""

from collections.abc import Iterator

import numpy as np

from edgefl.engine.records import DeviceRound, LedgerRow


class Ledger:
    """Sums the rounds' joules per device."""

    def __init__(self, devices: int) -> None:
        self._receive_j = np.zeros(devices)
        self._transmit_j = np.zeros(devices)
        self._compute_j = np.zeros(devices)
        self._wasted_j = np.zeros(devices)
        self._busy_s = np.zeros(devices)

    def book(self, row: DeviceRound, wasted: bool) -> None:
        """Book one device's part of a round; wasted: its update was not aggregated."""
        self._receive_j[row.device] += row.energy_rx_j
        self._transmit_j[row.device] += row.energy_tx_j
        self._compute_j[row.device] += row.energy_compute_j
        if wasted:
            self._wasted_j[row.device] += row.energy_j
        for start_s, end_s in (
            (row.downlink_start_s, row.downlink_end_s),
            (row.compute_start_s, row.compute_end_s),
            (row.uplink_start_s, row.uplink_end_s),
        ):
            if start_s is not None and end_s is not None:
                self._busy_s[row.device] += end_s - start_s

    def rows(self, on_time_s: np.ndarray, idle_power_w: float) -> Iterator[LedgerRow]:
        """A row per device; idle is the time switched on in which it did nothing else."""
        idle_j = idle_power_w * np.maximum(0.0, on_time_s - self._busy_s)
        total_j = self._receive_j + self._transmit_j + self._compute_j + idle_j
        for device in range(len(total_j)):
            yield LedgerRow(
                device=device,
                receive_j=float(self._receive_j[device]),
                transmit_j=float(self._transmit_j[device]),
                compute_j=float(self._compute_j[device]),
                idle_j=float(idle_j[device]),
                total_j=float(total_j[device]),
                wasted_j=float(self._wasted_j[device]),
            )
