"""Rows of the run directory's tables; programs that read the tables rely on the column names."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from edgefl.contract import averages
from edgefl.engine.parts import Outcome, Part, Span, total


@dataclass
class DeviceRound:
    """A row for each device in each round: activities, bits, joules and outcome; None for activities not reached."""

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
    energy_tail_j: float = 0.0  # tails of both transfers, until the device's next transfer
    energy_j: float = 0.0  # sum of the four energies above; excludes idle energy
    outcome: str = ""
    cell: int = 0


@dataclass
class Round:
    """A row for each round, with times, bits, joules (sums over the devices) and the new model's quality.

    energy_j: joules that the round's devices use for receiving, sending, computing and tails, but not for idling.
    latency_s: time until the new model is made. latency_mean_s: mean time until a device's part ends.
    """

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
    energy_tail_j: float
    accuracy: float | None
    loss: float | None
    # joules of the base station, by `power_over_share`, and of the aggregating server; not part of energy_j
    energy_server_j: float = 0.0
    energy_wasted_j: float = 0.0  # part of energy_j spent on updates that were not aggregated
    # joules of tails that would follow if the run ended with the round; not part of energy_j
    energy_cut_j: float = 0.0
    cell: int = 0


@dataclass
class Session:
    """A row for each session: why it began, its devices and labels, and the source of its opening model."""

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
    """A row for each event of a device or of a cell's session."""

    time_s: float
    event: str
    device: int | None
    session: int | None
    cell: int | None = None
    from_cell: int | None = None  # handovers: the previous cell
    stay_s: float | None = None  # handovers: time for which the previous cell served the device
    interruption_s: float | None = None  # handovers: time without any cell after the handover
    detail: str = ""


class EventName(StrEnum):
    """Values of the column `event` of events.csv."""

    SESSION_START = "session_start"  # detail: why
    SESSION_END = "session_end"  # detail: why
    WAITING_FOR_DEVICES = "waiting_for_devices"  # a cell is empty, and its federation waits
    CLOUD_MODEL = (
        "cloud_model"  # the cloud has made a model; detail: the model's version, and cell:share of each cell
    )
    NO_UPDATES = "no_updates"  # too few updates arrived in a round to change the model
    ARRIVAL = "arrival"  # a device entered the cells' area; cell: its serving cell, empty if it is off
    DEPARTURE = "departure"  # a device left the cells' area; cell: its last serving cell
    HANDOVER = "handover"  # a device changed its cell; detail: ping_pong for a quick return
    SWITCHED_ON = "switched_on"  # cell: the device's serving cell from now on
    SWITCHED_OFF = "switched_off"  # cell: the device's last serving cell
    BATTERY_EMPTY = "battery_empty"
    RADIO_LINK_FAILURE = "radio_link_failure"  # the link could not carry the lowest rate throughout T310
    REESTABLISHED = (
        "reestablished"  # link is back; interruption_s: time without a link; from_cell: old cell, if another
    )
    BATTERY_BACK = "battery_back"  # the battery has enough charge to take part again


@dataclass
class LedgerRow:
    """A row for each device, with its joules over the run by activity.

    energy_j: joules caused by learning, the sum of receive_j to tail_j. wasted_j: the part of energy_j spent on
    updates that were not aggregated. total_j: energy_j plus idle_j, the energy of a device that is on without
    activity or tail. With a battery, total_j = capacity_j + recharged_j - left_j; on mains the last two are None.
    """

    device: int
    receive_j: float
    transmit_j: float
    compute_j: float
    tail_j: float
    energy_j: float
    idle_j: float
    total_j: float
    wasted_j: float
    recharged_j: float | None = None  # energy taken in by recharging, which stops when the battery is full
    left_j: float | None = None


@dataclass
class Position:
    """A row for each device present at a sampling time, with its position and link.

    cell: serving cell, or None. gain_db: large-scale gain of the link, with penetration loss; None without a cell,
    or if gains are drawn by round. sinr_db: downlink SINR averaged over fading, for a round that has the
    cell to itself and full power over the whole band; it includes noise figure, margin, and the mean interference of
    other sites, which send at full power in a fraction `radio.neighbour_load` of the slots (load 0: SINR = SNR).
    """

    time_s: float
    device: int
    x_m: float
    y_m: float
    cell: int | None
    gain_db: float | None
    sinr_db: float | None


@dataclass
class DeviceScore:
    """One device's scores on its own test data after a round; None if it has no test data, or no model of that kind.

    accuracy, loss: scores of the downloaded model. accuracy_personal, loss_personal: scores of the personal model.
    """

    session: int
    round: int
    phase: str
    cell: int
    end_s: float
    device: int
    samples: int
    accuracy: float | None = None
    loss: float | None = None
    accuracy_personal: float | None = None
    loss_personal: float | None = None


class Recorder(Protocol):
    """Store rows, for example in the tables of the run directory."""

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        """Append rows to the table of their type.

        Args:
            further: values of extra columns, which follow those of the type; None leaves a cell empty.
        """

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        """Append many rows, given column by column, to the table of a type.

        Args:
            further: extra columns, which follow those of the type, with a value per row; None leaves a cell empty.
            columns: an array or list [rows], or one value for all rows; a missing column has its default.
        """

    def flush(self) -> None:
        """Make all rows written so far readable by other processes."""


class Nowhere:
    """A recorder that discards all rows."""

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        pass

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        pass

    def flush(self) -> None:
        pass


# joules of a round by activity; their sum is energy_j
ENERGIES = ("energy_rx_j", "energy_tx_j", "energy_compute_j", "energy_tail_j")
# extra column of Round with coverage: devices in the cell without a link when the round began
OUT_OF_COVERAGE = "out_of_coverage"
# extra column of Round if links can fail: devices that were reconnecting when the round was due; synchronous rounds
# wait for these devices
CONNECTING = "connecting"


def device_columns(parts: Sequence[Part]) -> dict[str, Any]:
    """Return columns of DeviceRound from a round's parts, as lists [parts]; `energy_columns` returns the rest."""
    activities: dict[str, Sequence[Span | None]] = {
        "downlink": [part.downlink for part in parts],
        "compute": [part.compute for part in parts],
        "uplink": [part.uplink for part in parts],
    }
    columns: dict[str, Any] = {"device": [part.device for part in parts]}
    for name, spans in activities.items():
        columns[f"{name}_start_s"] = [span and span.start_s for span in spans]
        columns[f"{name}_end_s"] = [span and span.end_s for span in spans]
    columns["iterations"] = [part.iterations for part in parts]
    for name in ("downlink", "uplink"):
        columns[f"{name}_bits"] = [span.bits if span else 0 for span in activities[name]]
    for cause, name in (("rx", "downlink"), ("tx", "uplink"), ("compute", "compute")):
        columns[f"energy_{cause}_j"] = [span.energy_j if span else 0.0 for span in activities[name]]
    columns["outcome"] = [part.outcome for part in parts]
    return columns


def energy_columns(columns: Mapping[str, Any], tails_j: list[float]) -> dict[str, list[float]]:
    """Return the columns of DeviceRound with the tail energy [parts] and the total energy of each part.

    Args:
        columns: columns of the round's devices, from `device_columns`.
    """
    causes = (columns[name] for name in ("energy_rx_j", "energy_tx_j", "energy_compute_j"))
    energy_j = [rx + tx + compute + tail for rx, tx, compute, tail in zip(*causes, tails_j, strict=True)]
    return {"energy_tail_j": tails_j, "energy_j": energy_j}


def average_columns(
    averaged: Mapping[str, str], scalars: Mapping[str, Sequence[float | None]]
) -> dict[str, float | None]:
    """Return mean, standard deviation and sample-weighted mean of the devices' scalars; None without values."""
    found: dict[str, float | None] = {}
    for name, samples in averaged.items():
        cells = zip(scalars[name], scalars[samples], strict=True)
        filled = [(value, weight) for value, weight in cells if value is not None and weight]
        found |= dict.fromkeys(averages(name))
        if filled:
            values, weights = np.array(filled, dtype=float).T
            each = float(values.mean()), float(values.std()), float(np.average(values, weights=weights))
            found |= zip(averages(name), each, strict=True)
    return found


def round_columns(
    columns: Mapping[str, Any], start_s: float, end_s: float, starts_s: Sequence[float] | None = None
) -> dict[str, Any]:
    """Return the columns of Round that sum or average the columns of the round's devices.

    Args:
        starts_s: start of each device's part, or None if all parts began with the round.
    """
    mean_s = total(_ends_s(columns, start_s)) / len(columns["device"]) - start_s
    if starts_s is not None and any(began_s != start_s for began_s in starts_s):
        pairs = zip(starts_s, _ends_s(columns, -math.inf), strict=True)
        mean_s, start_s = total(max(0.0, b - a) for a, b in pairs) / len(starts_s), -math.inf
    return {
        # if all devices end at once, rounding of the sum must not make the mean exceed the maximum
        "latency_mean_s": min(mean_s, end_s - start_s),
        "participants": len(columns["device"]),
        "completed": columns["outcome"].count(Outcome.COMPLETED),
        "downlink_bits": sum(columns["downlink_bits"]),
        "uplink_bits": sum(columns["uplink_bits"]),
    }


def round_energies(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of Round with its devices' joules, from `device_columns` and `energy_columns`."""
    sums = {name: total(columns[name]) for name in ENERGIES}
    return {"energy_j": total(sums.values()), **sums}


def _ends_s(columns: Mapping[str, Any], start_s: float) -> list[float]:
    """Return [parts] the time at which each participant finished or left, but no earlier than the round's start."""
    last: list[float | None] = columns["uplink_end_s"]
    if None in last:
        ends = zip(last, columns["compute_end_s"], columns["downlink_end_s"], strict=True)
        last = [next(end_s for end_s in last_first if end_s is not None) for last_first in ends]
    return [max(start_s, end_s) for end_s in last if end_s is not None]
