"""Read tables of phones; each row sets keys of `devices` for the devices assigned to it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import ValidationError

from edgefl.channel.units import FloatArray
from edgefl.config import shipped, table_files
from edgefl.config.error_messages import flat
from edgefl.config.records import READABLE, Record, records
from edgefl.config.registry import nearest
from edgefl.config.units import PREFIXES, with_unit
from edgefl.engine.class_settings import DeviceFile, EveryDevice
from edgefl.engine.settings import DeviceSettings
from edgefl.errors import EdgeflError, quoted

KEYS = (
    *("clock_hz", "flops_per_cycle", "capacitance", "compute_jitter", "transmit_power_dbm", "array_gain_db"),
    *("circuit_power_w", "uplink_circuit_power_w", "pa_efficiency", "idle_power_w"),
    *("battery_j", "recharge_w", "return_share"),
)
LATENCY, SCORE = "latency_s", "score"
NAMES = ("name", "id", "device", "model")  # columns that identify a row
SPEEDS = ("flops_per_cycle", LATENCY, SCORE)  # a table has at most one of these columns


def _accepted() -> dict[str, tuple[str, float]]:
    """Return the accepted columns: name -> key that the column sets, and factor that converts to the key's unit."""
    names = {name: (name, 1.0) for name in (*KEYS, LATENCY, SCORE)}
    for key in (*KEYS, LATENCY):
        stem, _, unit = key.rpartition("_")
        names |= {
            f"{stem}_{other.lower()}": (key, factor) for other, factor in PREFIXES.get(unit, {}).items()
        }
    return names


ACCEPTED = _accepted()


@dataclass(frozen=True)
class DeviceRows:
    """The values of a table of phones.

    Attributes:
        values: key -> [rows] values of the key, nan for empty cells; LATENCY and SCORE count as keys.
        notes: notes on unused columns of the table.
    """

    file: DeviceFile
    values: Mapping[str, FloatArray]
    rows: Sequence[Record] = field(repr=False)
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, file: DeviceFile) -> "DeviceRows":
        """Read and check a table of phones.

        Raises:
            EdgeflError: the table is faulty; the message names file, row, column and remedy.
        """
        if file.path.suffix not in READABLE:
            raise EdgeflError(
                f"{file.path} has an unknown file type: use a name that ends in {', '.join(READABLE)}"
            )
        rows = records(shipped.data(file.path))
        columns = list(dict.fromkeys(name for row in rows for name in row.values))
        used = _used(file, columns)
        values = {key: _numbers(rows, column, factor) for key, (column, factor) in used.items()}
        for key, (column, factor) in used.items():
            times = "" if factor == 1 else f", times {factor:g}"
            _check(key, values[key], rows, "" if column == key else f" (column {quoted(column)}{times})")
        _check_speeds(file, used)
        known = {column for column, _ in used.values()}
        unused = [column for column in columns if column not in known and column.lower() not in NAMES]
        note = f"{file.path}: these columns are not used: {', '.join(map(_hinted, unused[:10]))}"
        return cls(file, values, rows, (note,) if unused else ())

    def __len__(self) -> int:
        return len(self.rows)

    def kinds(self, base: DeviceSettings, rows: np.ndarray) -> Iterator[DeviceSettings]:
        """Yield the settings of devices with these rows; `base` supplies the keys that a row leaves out.

        Raises:
            EdgeflError: a key has no effect with the power model, or a speed is out of range.
        """
        name = next((key for key in self.values if key in base.power.ignores), None)
        if name is not None:
            raise EdgeflError(
                f"{self.file.path}: column {name} has no effect with this power model, which has its own circuits:"
                " remove the column, or set power: journal"
            )
        values = {key: column[rows] for key, column in self.values.items() if key not in (LATENCY, SCORE)}
        speeds = self._flops_per_cycle(base, rows)
        if speeds is not None:
            _check("flops_per_cycle", speeds, [self.rows[row] for row in rows], " by its speed")
            values["flops_per_cycle"] = speeds
        columns = [column.tolist() for column in values.values()]
        for cells in zip(*columns, strict=True):
            own = zip(values, cells, strict=True)
            yield base.model_copy(update={key: value for key, value in own if not math.isnan(value)})

    def _flops_per_cycle(self, base: DeviceSettings, rows: np.ndarray) -> FloatArray | None:
        """Return each row's FLOPs per cycle from its latency or score, nan if empty; None without such a column."""
        clocks_hz = self.values.get("clock_hz", np.full(len(self), np.nan))[rows]
        clocks_hz = np.where(np.isnan(clocks_hz), base.clock_hz, clocks_hz)
        if LATENCY in self.values:
            assert self.file.latency_flops is not None  # checked when the table is read
            return np.asarray(self.file.latency_flops / self.values[LATENCY][rows] / clocks_hz)
        if SCORE in self.values:
            relative = self.values[SCORE][rows] / np.nanmean(self.values[SCORE])
            return np.asarray(base.flops_per_cycle * relative * (base.clock_hz / clocks_hz))
        return None


def _used(file: DeviceFile, columns: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Return the keys that a table of phones sets: key -> column, and factor that converts to the key's unit."""
    for name, column in file.columns.items():
        if name not in ACCEPTED:
            raise EdgeflError(f"columns: unknown key {quoted(name)}{_known(name)}")
        if column not in columns:
            raise EdgeflError(
                f"columns: {file.path} has no column {quoted(column)}; it has {', '.join(columns) or 'none'}"
            )
    renamed = set(file.columns.values())
    given = [
        *file.columns.items(),
        *((name, name) for name in columns if name in ACCEPTED and name not in renamed),
    ]
    used: dict[str, tuple[str, float]] = {}
    for name, column in given:
        key, factor = ACCEPTED[name]
        if key in used:
            raise EdgeflError(
                f"{file.path}: columns {quoted(used[key][0])} and {quoted(column)} both set {key}; remove one"
            )
        used[key] = (column, factor)
    if not used:
        raise EdgeflError(
            f"{file.path}: no column sets a key; it has {', '.join(columns)}. Name columns clock_hz, flops_per_cycle,"
            " ..., or map keys to columns in `columns`"
        )
    return used


def _check_speeds(file: DeviceFile, used: Mapping[str, Any]) -> None:
    speeds = [key for key in SPEEDS if key in used]
    if len(speeds) > 1:
        raise EdgeflError(f"{file.path}: {' and '.join(speeds)} both set a device's speed; remove one")
    if (LATENCY in used) != (file.latency_flops is not None):
        raise EdgeflError(
            f"latency_flops: {file.path} has inference times; set the FLOPs of one inference, such as 0.6e+9"
            if LATENCY in used
            else f"latency_flops: {file.path} has no column latency_ms; name it in columns, or leave the key out"
        )


def _numbers(rows: Sequence[Record], column: str, factor: float) -> FloatArray:
    """Return the numbers [rows] in a column of a table, nan for empty cells."""
    values = np.full(len(rows), np.nan)
    for number, row in enumerate(rows):
        cell = row.values.get(column)
        if cell is None or cell == "":
            continue
        value = table_files.number(cell)
        if value is None:
            remedy = with_unit(column, cell) if isinstance(cell, str) else ""
            raise EdgeflError(
                f"{row.where}: column {quoted(column)} has {quoted(cell)}, not a number"
                f"{remedy or '; write a number, 12.5 for example, or leave the cell empty'}"
                f"{table_files.decimal_comma(cell)}"
            )
        values[number] = value * factor
    return values


def _check(key: str, values: FloatArray, rows: Sequence[Record], named: str) -> None:
    """Check the values [rows] of a key against its bounds; `named` adds the source of the values to messages."""
    for extreme in (np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)):
        if math.isfinite(extreme):
            row = int(np.flatnonzero(values == extreme)[0])
            _check_value(key, float(extreme), f"{rows[row].where}: ", named)


def _check_value(key: str, value: float, before: str, after: str = "") -> None:
    if key in (LATENCY, SCORE):
        if value <= 0:
            raise EdgeflError(f"{before}{key} is {value:g}{after}: it must be above 0")
        return
    try:
        EveryDevice.model_validate({key: value})
    except ValidationError as error:
        fault = flat(error.errors(), EveryDevice)[0]
        raise EdgeflError(f"{before}{key}{after} {fault.message()}") from error


def _known(name: str) -> str:
    near = nearest(name, list(ACCEPTED))
    return f": did you mean {near!r}?" if near else f"; known: {', '.join((*KEYS, 'latency_ms', SCORE))}"


def _hinted(column: str) -> str:
    near = nearest(column.lower(), list(ACCEPTED))
    return f"{quoted(column)} ({near}?)" if near else quoted(column)
