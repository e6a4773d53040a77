"""The energy ledger: every joule of a device counted once, by what the device was doing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from channel.units import FloatArray
from edgefl.engine.devices.battery import Charge
from edgefl.engine.parts import Activity
from edgefl.engine.records import LedgerRow


class Ledger:
    """The rounds' joules, summed per device."""

    def __init__(self, devices: int) -> None:
        self._receive_j = np.zeros(devices)
        self._transmit_j = np.zeros(devices)
        self._compute_j = np.zeros(devices)
        self._tail_j = np.zeros(devices)
        self._wasted_j = np.zeros(devices)
        self._busy_s = np.zeros(devices)  # in an activity, or with a tail
        self._busy_until_s = np.full(devices, -np.inf)
        self._stalled_s = np.zeros(devices)
        self._stalled_j = np.zeros(devices)

    def book(
        self,
        columns: Mapping[str, Any],
        taken: Sequence[bool],
        tails_s: Sequence[tuple[float | None, float | None]],
    ) -> None:
        """Add the energy of a round, given by its devices' columns; a device may be in it twice.

        Args:
            taken: whether a part's update was aggregated.
            tails_s: how long the tails of a part's downlink and uplink last.
        """
        ids = np.array(columns["device"])
        energy_j = np.array(columns["energy_j"])
        wasted = ~np.array(taken, dtype=bool)
        np.add.at(self._receive_j, ids, columns["energy_rx_j"])
        np.add.at(self._transmit_j, ids, columns["energy_tx_j"])
        np.add.at(self._compute_j, ids, columns["energy_compute_j"])
        np.add.at(self._tail_j, ids, columns["energy_tail_j"])
        np.add.at(self._wasted_j, ids[wasted], energy_j[wasted])
        times_s = {
            (activity, edge): np.array(columns[f"{activity}_{edge}_s"], dtype=float)  # nan: never reached
            for activity in Activity
            for edge in ("start", "end")
        }
        of_downlink_s, of_uplink_s = np.array(tails_s, dtype=float).T
        down_s, up_s = times_s[Activity.DOWNLINK, "end"], times_s[Activity.UPLINK, "end"]
        # in the order in which they begin
        spans = (
            (times_s[Activity.DOWNLINK, "start"], down_s),
            (down_s, down_s + of_downlink_s),
            (times_s[Activity.COMPUTE, "start"], times_s[Activity.COMPUTE, "end"]),
            (times_s[Activity.UPLINK, "start"], up_s),
            (up_s, up_s + of_uplink_s),
        )
        for rows in _once(ids):
            for start_s, end_s in spans:
                self._work(ids[rows], start_s[rows], end_s[rows])

    def _work(self, ids: np.ndarray, start_s: FloatArray, end_s: FloatArray) -> None:
        """Add what devices do from a time to another, nan: nothing, beside what they do already."""
        until_s = self._busy_until_s[ids]
        took_s = np.fmax(0.0, end_s - np.fmax(start_s, until_s))
        self._busy_s[ids] += np.nan_to_num(took_s)
        self._busy_until_s[ids] = np.fmax(until_s, end_s)

    def end(self, time_s: float) -> None:
        """End the run: what tails last beyond it takes nothing from the time that devices were idle in it."""
        beyond_s = np.fmax(0.0, self._busy_until_s - time_s)
        self._busy_s -= beyond_s
        self._busy_until_s -= beyond_s

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
    ) -> dict[str, Sequence[Any] | np.ndarray]:
        """Return the columns of LedgerRow [devices].

        A device is idle while it is switched on, does nothing else, and its radio has no tail.

        Args:
            idle_power_w: [devices] of each, or one for all.
            charges: of each device's battery, None: on mains; empty: all are.
        """
        idle_j = idle_power_w * np.maximum(0.0, on_time_s - self._busy_s)
        energy_j = self._receive_j + self._transmit_j + self._compute_j + self._tail_j
        columns: dict[str, Sequence[Any] | np.ndarray] = {
            "device": np.arange(len(idle_j)),
            "receive_j": self._receive_j,
            "transmit_j": self._transmit_j,
            "compute_j": self._compute_j,
            "tail_j": self._tail_j,
            "energy_j": energy_j,
            "idle_j": idle_j,
            "total_j": energy_j + idle_j,
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
    ) -> Iterator[LedgerRow]:
        """Yield a row per device, of `columns`."""
        columns = self.columns(on_time_s, idle_power_w, charges)
        values = [of.tolist() if isinstance(of, np.ndarray) else of for of in columns.values()]
        for row in zip(*values, strict=True):
            yield LedgerRow(**dict(zip(columns, row, strict=True)))


def _once(ids: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows such that none of them has a device that another has, and each device's in their order."""
    rows = np.arange(len(ids))
    while len(rows):
        _, first = np.unique(ids[rows], return_index=True)
        yield rows[first]
        rows = np.delete(rows, first)
