"""The energy ledger: every joule of a device once, by what the device was doing."""

from collections.abc import Iterator, Sequence

import numpy as np

from edgefl.engine.parts import Part
from edgefl.engine.records import LedgerRow, total


class Ledger:
    """Sums the rounds' joules per device."""

    def __init__(self, devices: int) -> None:
        self._receive_j = np.zeros(devices)
        self._transmit_j = np.zeros(devices)
        self._compute_j = np.zeros(devices)
        self._wasted_j = np.zeros(devices)
        self._busy_s = np.zeros(devices)

    def book(self, parts: Sequence[Part], aggregated: bool) -> float:
        """Book a round's parts; returns the joules of those whose update was not aggregated."""
        ids = np.array([part.device for part in parts])
        energy_j = np.array([part.energy_j for part in parts])
        wasted = np.array([not (aggregated and part.completed) for part in parts])
        self._receive_j[ids] += [part.receive_j for part in parts]
        self._transmit_j[ids] += [part.transmit_j for part in parts]
        self._compute_j[ids] += [part.compute_j for part in parts]
        self._wasted_j[ids[wasted]] += energy_j[wasted]
        for spans in zip(*((part.downlink, part.compute, part.uplink) for part in parts), strict=True):
            self._busy_s[ids] += [span.end_s - span.start_s if span else 0.0 for span in spans]
        return total(energy_j[wasted].tolist())

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
