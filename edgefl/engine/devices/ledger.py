"""The energy ledger, which counts every joule of a device exactly once, by activity."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from edgefl.channel.units import FloatArray
from edgefl.engine.devices.battery import Charge
from edgefl.engine.parts import Activity, Part, Span, total
from edgefl.engine.power_models import Draws
from edgefl.engine.records import LedgerRow


class Ledger:
    """The joules of all rounds, summed per device."""

    def __init__(self, devices: int) -> None:
        self._receive_j = np.zeros(devices)
        self._transmit_j = np.zeros(devices)
        self._compute_j = np.zeros(devices)
        self._tail_j = np.zeros(devices)
        self._wasted_j = np.zeros(devices)
        self._busy_s = np.zeros(devices)  # time in which a device is active or has a tail
        self._stalled_s = np.zeros(devices)
        self._stalled_j = np.zeros(devices)
        self._circuit_j = np.zeros(devices)

    def book(
        self,
        columns: Mapping[str, Any],
        taken: Sequence[bool],
        tails_s: Sequence[tuple[float | None, float | None]],
        listened_s: Sequence[tuple[float, float]],
        now_s: float,
    ) -> None:
        """Add a round's energy to the ledger from the columns of its device rows; a device may occur more than once.

        Args:
            taken: whether each part's update was aggregated.
            tails_s: durations of the tails of a part's downlink and uplink.
            listened_s: time in which the radio listened before a part's downlink and before its uplink.
            now_s: current time; activities and tails after it do not count as busy time.
        """
        ids = np.array(columns["device"])
        energy_j = np.array(columns["energy_j"])
        wasted = ~np.array(taken, dtype=bool)
        np.add.at(self._receive_j, ids, columns["energy_rx_j"])
        np.add.at(self._transmit_j, ids, columns["energy_tx_j"])
        np.add.at(self._compute_j, ids, columns["energy_compute_j"])
        np.add.at(self._tail_j, ids, columns["energy_tail_j"])
        np.add.at(self._wasted_j, ids[wasted], energy_j[wasted])
        np.add.at(self._busy_s, ids, _busy_s(columns, tails_s, listened_s, now_s))

    def book_stalls(self, ids: Sequence[int], stalled_s: Sequence[float], stalled_j: Sequence[float]) -> None:
        """Add the time and energy that devices [ids] spent without a link in a round."""
        np.add.at(self._stalled_s, ids, stalled_s)
        np.add.at(self._stalled_j, ids, stalled_j)

    def book_circuits(self, parts: Sequence[Part], draws: Sequence[Draws]) -> None:
        """Add the energy of a round's uploads, without the energy of amplifiers and bits, from the devices' parts."""
        circuit_j = [_circuit_j(part.uplink, of) for part, of in zip(parts, draws, strict=True)]
        np.add.at(self._circuit_j, [part.device for part in parts], circuit_j)

    def circuits(self) -> dict[str, FloatArray]:
        """Return the column of circuit energy [devices], which is part of transmit_j."""
        return {"circuit_j": self._circuit_j}

    def stalls(self) -> dict[str, FloatArray]:
        """Return the columns about stalls [devices]; receive_j and transmit_j include stalled_j."""
        return {"stalled_s": self._stalled_s, "stalled_j": self._stalled_j}

    def columns(
        self,
        on_time_s: np.ndarray,
        idle_power_w: float | np.ndarray,
        charges: Sequence[Charge | None] = (),
    ) -> dict[str, Sequence[Any] | np.ndarray]:
        """Return the columns of LedgerRow [devices].

        A device is idle while it is switched on, has no activity, and its radio has no tail.

        Args:
            idle_power_w: [devices] power of each idle device, or one value for all.
            charges: charge of each device's battery, None for a device on mains; empty if all devices are on mains.
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
        """Yield a LedgerRow per device, from `columns`."""
        columns = self.columns(on_time_s, idle_power_w, charges)
        values = [of.tolist() if isinstance(of, np.ndarray) else of for of in columns.values()]
        for row in zip(*values, strict=True):
            yield LedgerRow(**dict(zip(columns, row, strict=True)))


def _circuit_j(upload: Span | None, radio: Draws) -> float:
    """Return an upload's energy for circuits, waiting, access and searches for a link, not for amplifier and bits."""
    if upload is None or not (radio.send_w or radio.wait_w):
        return 0.0
    pieces = [span for _, span in upload.pieces] or [upload]
    on_s = total(span.airtime_s for span in pieces)
    wait_s = total(span.end_s - span.start_s for span in pieces) - on_s
    circuit_j = radio.send_w * on_s + radio.wait_w * wait_s + upload.access.energy_j
    if upload.pieces:  # between the pieces, the device searched for a link
        circuit_j += upload.energy_j - upload.access.energy_j - total(span.energy_j for span in pieces)
    return min(upload.energy_j, circuit_j)  # less than circuit_j if the battery ran empty


def _busy_s(
    columns: Mapping[str, Any],
    tails_s: Sequence[tuple[float | None, float | None]],
    listened_s: Sequence[tuple[float, float]],
    now_s: float,
) -> FloatArray:
    """Return [parts] the time in s in which each device was active, listened or had a tail.

    A device's parts do not overlap, and a tail ends before the next part, which begins with a transfer.
    """
    times_s = {
        (activity, edge): np.array(columns[f"{activity}_{edge}_s"], dtype=float)  # nan: not reached
        for activity in Activity
        for edge in ("start", "end")
    }
    after_downlink_s, after_uplink_s = np.array(tails_s, dtype=float).T
    before_downlink_s, before_uplink_s = np.array(listened_s, dtype=float).T
    down_s, up_s = times_s[Activity.DOWNLINK, "end"], times_s[Activity.UPLINK, "end"]
    spans = (  # a part's activities in chronological order
        (times_s[Activity.DOWNLINK, "start"] - before_downlink_s, down_s),
        (down_s, down_s + after_downlink_s),
        (times_s[Activity.COMPUTE, "start"], times_s[Activity.COMPUTE, "end"]),
        (times_s[Activity.UPLINK, "start"] - before_uplink_s, up_s),
        (up_s, up_s + after_uplink_s),
    )
    busy_s, until_s = np.zeros(len(down_s)), np.full(len(down_s), -np.inf)
    for start_s, end_s in spans:
        end_s = np.minimum(end_s, now_s)
        busy_s += np.nan_to_num(np.maximum(0.0, end_s - np.fmax(start_s, until_s)))
        until_s = np.fmax(until_s, end_s)
    return busy_s
