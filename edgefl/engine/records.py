"""Rows that the engine hands to whoever keeps them. Column names are the run directory's contract."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass
class DeviceRound:
    """One device in one round: when each stage ran, bits, joules, outcome. None: never reached."""

    session: int
    round: int
    phase: str
    device: int
    distance_m: float
    downlink_start_s: float | None = None
    downlink_end_s: float | None = None
    compute_start_s: float | None = None
    compute_end_s: float | None = None
    uplink_start_s: float | None = None
    uplink_end_s: float | None = None
    iterations: int = 0
    downlink_bits: int = 0
    uplink_bits: int = 0
    energy_rx_j: float = 0.0
    energy_tx_j: float = 0.0
    energy_compute_j: float = 0.0
    energy_j: float = 0.0
    outcome: str = ""
    cell: int = 0


@dataclass
class Round:
    """One round: its times, bits, joules (sums over the devices) and the model it made."""

    session: int
    round: int
    version: int
    phase: str
    start_s: float
    end_s: float
    latency_s: float
    latency_mean_s: float
    participants: int
    completed: int
    downlink_bits: int
    uplink_bits: int
    energy_j: float
    energy_rx_j: float
    energy_tx_j: float
    energy_compute_j: float
    accuracy: float | None
    loss: float | None
    energy_server_j: float = 0.0  # the base station's, not part of energy_j
    energy_wasted_j: float = 0.0  # part of energy_j spent on updates that were not aggregated
    cell: int = 0


@dataclass
class Session:
    """One session: why it began, who was there, which labels, and how its opening model was made."""

    session: int
    start_s: float
    reason: str
    devices: str
    labels: str
    warm_start: str
    weights: str
    accuracy_start: float | None
    loss_start: float | None
    cell: int = 0


@dataclass
class Event:
    """Something that happened to a device, or to the session of a cell."""

    time_s: float
    event: str
    device: int | None
    session: int | None
    cell: int | None = None
    from_cell: int | None = None  # handovers: the cell the device came from
    stay_s: float | None = None  # handovers: time it had been connected there
    interruption_s: float | None = None  # handovers: time without any cell from then on
    detail: str = ""


@dataclass
class LedgerRow:
    """All joules of one device over the run, by what it was doing. Wasted: part of the first three."""

    device: int
    receive_j: float
    transmit_j: float
    compute_j: float
    idle_j: float
    total_j: float
    wasted_j: float


class Recorder(Protocol):
    """Keeps rows; knows nothing of the simulation."""

    def write(self, *rows: Any) -> None:
        """Append rows to the table of their type."""

    def write_columns(self, row_type: type, **columns: Any) -> None:
        """Append many rows to the table of a type, given by column.

        Args:
            columns: an array [rows], or one value for all of them; what is left out has its default.
        """

    def flush(self) -> None:
        """Make everything written so far readable by others."""
