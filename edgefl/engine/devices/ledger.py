"""The energy ledger: every joule of a device counted once, by what the device was doing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from channel.units import FloatArray
from edgefl.engine.devices.battery import Charge
from edgefl.engine.parts import Activity, total
from edgefl.engine.records import LedgerRow


class Ledger:
    """The rounds' joules, summed per device."""

    def __init__(self, devices: int) -> None:
        self._receive_j = np.zeros(devices)
        self._transmit_j = np.zeros(devices)
        self._compute_j = np.zeros(devices)
        self._wasted_j = np.zeros(devices)
        self._busy_s = np.zeros(devices)
        self._stalled_s = np.zeros(devices)
        self._stalled_j = np.zeros(devices)

    def book(self, columns: Mapping[str, Any], taken: Sequence[bool]) -> float:
        """Add the energy of a round, given by the `device_columns` of its parts; a device may be in it twice.

        Args:
            taken: whether a part's update was aggregated.

        Returns:
            The joules of those whose update was not aggregated.
        """
        ids = np.array(columns["device"])
        energy_j = np.array(columns["energy_j"])
        wasted = ~np.array(taken, dtype=bool)
        np.add.at(self._receive_j, ids, columns["energy_rx_j"])
        np.add.at(self._transmit_j, ids, columns["energy_tx_j"])
        np.add.at(self._compute_j, ids, columns["energy_compute_j"])
        np.add.at(self._wasted_j, ids[wasted], energy_j[wasted])
        for activity in Activity:
            start_s, end_s = (
                np.array(columns[f"{activity}_{edge}_s"], dtype=float) for edge in ("start", "end")
            )
            took_s = end_s - start_s
            took_s[np.isnan(took_s)] = 0.0  # never reached
            np.add.at(self._busy_s, ids, took_s)
        return total(energy_j[wasted].tolist())

    def book_stalls(self, ids: Sequence[int], stalls: Mapping[str, Sequence[float]]) -> None:
        """Add the time and energy of a round that passed without a link, by its `stall_columns`."""
        np.add.at(self._stalled_s, ids, stalls["stalled_s"])
        np.add.at(self._stalled_j, ids, stalls["stalled_j"])

    def stalls(self) -> dict[str, FloatArray]:
        """Return further columns [devices] where links can fail; the joules are part of receive_j and transmit_j."""
        return {"stalled_s": self._stalled_s, "stalled_j": self._stalled_j}

    def columns(
        self,
        on_time_s: np.ndarray,
        idle_power_w: float | np.ndarray,
        charges: Sequence[Charge | None] = (),
        tail_j: float | np.ndarray = 0.0,
    ) -> dict[str, Sequence[Any] | np.ndarray]:
        """Return the columns of LedgerRow [devices]; a device is idle while it is switched on and does nothing else.

        Args:
            idle_power_w: [devices] of each, or one for all.
            charges: of each device's battery, None: on mains; empty: all are.
            tail_j: [devices] what each radio drew between transfers, beside all else.
        """
        idle_j = idle_power_w * np.maximum(0.0, on_time_s - self._busy_s)
        columns: dict[str, Sequence[Any] | np.ndarray] = {
            "device": np.arange(len(idle_j)),
            "receive_j": self._receive_j,
            "transmit_j": self._transmit_j,
            "compute_j": self._compute_j,
            "idle_j": idle_j,
            "total_j": self._receive_j + self._transmit_j + self._compute_j + idle_j + tail_j,
            "wasted_j": self._wasted_j,
        }
        if charges:
            for name in Charge._fields:
                columns[name] = [None if charge is None else getattr(charge, name) for charge in charges]
        return columns

    def rows(
        self,
        on_time_s: np.ndarray,
        idle_power_w: float | np.ndarray,
        charges: Sequence[Charge | None] = (),
        tail_j: float | np.ndarray = 0.0,
    ) -> Iterator[LedgerRow]:
        """Yield a row per device, of `columns`."""
        columns = self.columns(on_time_s, idle_power_w, charges, tail_j)
        values = [of.tolist() if isinstance(of, np.ndarray) else of for of in columns.values()]
        for row in zip(*values, strict=True):
            yield LedgerRow(**dict(zip(columns, row, strict=True)))
