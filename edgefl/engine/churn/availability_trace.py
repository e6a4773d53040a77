"""Read times of availability from FedScale's client availability traces, JSON lists or CSV tables."""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from edgefl.config import foreign_files, shipped, table_files
from edgefl.config.records import read_json, records
from edgefl.engine.churn import Churn
from edgefl.errors import EdgeflError, about, quoted
from edgefl.rng import Streams

PLACE = ("devices", "churn", "path")
LEAST_PERIOD_S = 1e-3  # about the length of a slot; a shorter period would take too long to simulate
NEEDED = ("active", "inactive", "finish_time")
KNOWN = (*NEEDED, "duration", "model")
COLUMNS = ("client", "on_s", "off_s")


class _Client(NamedTuple):
    """Intervals in which a client is on, ascending (from, to) in the units of its file, repeated with a period.

    The last interval may end in the next period, before the first interval of that period. No two intervals touch,
    but one interval may fill the period. Without repetition the period is inf, and the last interval may be endless.
    """

    period: float
    spells: tuple[tuple[float, float], ...]


class AvailabilityTrace(Churn):
    """Devices are on as recorded in a file, optionally repeated with a period.

    The file is a CSV table with columns client, on_s and off_s and a row for each interval in which a client is on:

        client,on_s,off_s
        a,0,30
        a,90,120
        b,20,

    or a JSON object with a list for each client, either of pairs [on, off] or of alternate on and off times:

        {"a": [[0, 30], [90, 120]], "b": [20]}

    or a JSON object in the format that FedScale documents for its client availability trace:

        {"3834": {"active": [12788, 100044], "inactive": [65881, 133574], "finish_time": 518400}, ...}

    A client is off outside its intervals. If the last off time is missing, the client stays on; without any times
    it is never on. A client's times ascend; they repeat with its finish_time in FedScale's format, and otherwise with
    `period` if set. Adjacent intervals are merged, and empty intervals are dropped. FedScale's keys `duration` and
    `model` are ignored; any other key is an error.
    The ids may be any text: the file's first client is device 0, the next client device 1, and so on; in a class,
    clients are assigned to its devices in order.

    FedScale's own file is a Python pickle, which can run any code when it is read, and is not accepted. If you trust
    the pickle, convert it to JSON: json.dump(pickle.load(open("client_behave_trace", "rb")), file).

    Source: https://github.com/SymbioticLab/FedScale, benchmark/dataset/data/device_info/README.md; the meaning of the
    fields follows `is_active` of its clients. Lists of times were requested in
    https://github.com/TL-System/plato/issues/101.
    """

    own_numbers: ClassVar[bool] = True

    path: Path = Field(description="path of the .csv or .json file, relative to the scenario's file")
    time_scale: float = Field(1.0, ge=1e-6, le=1e6, description="simulated seconds per time unit of the file")
    begin: float = Field(
        0.0, ge=0, le=1e12, description="time in the file at which the simulation begins, in the file's unit"
    )
    period: float | None = Field(
        None,
        gt=0,
        le=1e12,
        description="period, in the file's unit, after which a list or a table repeats: 86400 for a day; "
        "null: no repetition. Files in FedScale's format state their own period",
    )
    reuse: bool = Field(
        False,
        description="what happens if devices outnumber clients. true: the clients repeat from the first;"
        " false: an error",
    )

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        path = shipped.data(self.path)
        clients = _read(path, foreign_files.stamp(path, *PLACE))
        if device >= len(clients) and not self.reuse:
            raise EdgeflError(
                f"{self.path} has {len(clients)} clients, but there are more devices: use at most {len(clients)} "
                "devices, or set reuse: true to start again with the first client",
                PLACE,
            )
        number = device % len(clients)
        client = clients[number]
        if self.period is not None:
            with about(*PLACE[:-1], "period"):
                client = _repeated(client, self.period, f"{self.path}: client number {number}")
        if (period_s := client.period * self.time_scale) < LEAST_PERIOD_S:
            raise EdgeflError(
                f"{self.path}: the period of client number {number} is {period_s:g} s, but must be"
                f" at least {LEAST_PERIOD_S:g} s: raise time_scale, or the period",
                PLACE,
            )
        return self._times_s(client)

    def _times_s(self, client: _Client) -> Iterator[float]:
        if client.spells == ((0.0, client.period),):
            yield 0.0
            return
        if not client.spells:
            return
        # an interval of the period before the simulation may last into the simulation
        first = math.floor(self.begin / client.period) - 1
        for number in itertools.count(first) if client.period < math.inf else (0,):
            since = (number * client.period if number else 0.0) - self.begin
            for from_, to in client.spells:
                if since + to > 0:
                    yield self.time_scale * max(0.0, since + from_)
                if 0 < since + to < math.inf:
                    yield self.time_scale * (since + to)


@lru_cache(maxsize=4)
def _read(path: Path, stamp: tuple[Path, int, int]) -> list[_Client]:
    """Return the clients of a file in order; a changed file is read again."""
    with about(*PLACE):
        if path.suffix == ".csv":
            return _of_table(path)
        with foreign_files.reading(path):
            entries = read_json(path)
        if not isinstance(entries, dict | list) or not entries:
            raise EdgeflError(f"{path}: has no clients; write an object with an entry per client")
        named = entries.items() if isinstance(entries, dict) else enumerate(entries)
        clients = []
        for name, entry in named:
            try:
                clients.append(_of_list(entry) if isinstance(entry, list) else _client(entry))
            except ValueError as error:
                raise EdgeflError(f"{path}: client {quoted(name)}: {error}") from error
    return clients


def _of_table(path: Path) -> list[_Client]:
    """Read the clients of a CSV table, in order of appearance."""
    spells: dict[str, list[tuple[float, float]]] = {}
    for row in records(path):
        missing = [name for name in COLUMNS if name not in row.values]
        if missing:
            raise EdgeflError(
                f"{path}:1: has no column {missing[0]}; the first line names the columns {', '.join(COLUMNS)}"
            )
        name, *texts = (row.values[column] for column in COLUMNS)
        own = spells.setdefault(name, [])
        try:
            times = [_number(column, text) for column, text in zip(COLUMNS[1:], texts, strict=True) if text]
            if not texts[0] and times:
                raise ValueError(
                    "has off_s without on_s; write both, or neither for a client that is never on"
                )
            own += [(times[0], times[1] if times[1:] else math.inf)] if times else []
            _ordered(own[-2:], "on_s {on:g} and off_s {off:g} do")
        except ValueError as error:
            raise EdgeflError(f"{row.where}: client {quoted(name)}: {error}") from error
    return [_Client(math.inf, _ordered(own, LISTED)) for own in spells.values()]


def _number(name: str, text: str) -> float:
    number = table_files.number(text)
    return _time(name, text if number is None else number)


def _of_list(entry: Sequence[Any]) -> _Client:
    """Build a client from pairs [on, off], or from a list of alternate on and off times."""
    if entry and all(isinstance(pair, list) for pair in entry):
        for pair in entry:
            if not 1 <= len(pair) <= 2:
                raise ValueError(f"has {quoted(pair)}; write pairs [on, off]")
        pairs = [_times(f"[{number}]", pair) for number, pair in enumerate(entry)]
    else:
        times = _times("", entry)
        pairs = [times[at : at + 2] for at in range(0, len(times), 2)]
    spells = [(pair[0], pair[1] if pair[1:] else math.inf) for pair in pairs]
    return _Client(math.inf, _ordered(spells, LISTED))


def _repeated(client: _Client, period: float, who: str) -> _Client:
    """Repeat a client's intervals, read from a list or a table, with a period."""
    if client.period < math.inf:
        raise EdgeflError(f"{who} has a finish_time, which is its period; leave period out")
    last = client.spells[-1:]
    if last and last[0][1] == math.inf:
        last = ((last[0][0], period),)
    try:
        spells = _ordered([*client.spells[:-1], *last], LISTED, period, "period ")
        return _Client(period, _wrapped(spells, period))
    except ValueError as error:
        raise EdgeflError(f"{who}: {error}") from error


def _client(entry: Any) -> _Client:
    if not isinstance(entry, dict):
        raise ValueError(f"is {quoted(entry)}; write a list of times, or an object with {', '.join(NEEDED)}")
    for name in entry:
        if name not in KNOWN:
            raise ValueError(f"has {quoted(name)}, which is not one of {', '.join(KNOWN)}")
    for name in NEEDED:
        if name not in entry:
            raise ValueError(f"has no {name}")
    period = _time("finish_time", entry["finish_time"])
    if period <= 0:
        raise ValueError(f"finish_time is {period:g}; it must be above 0")
    begins, ends = (_times(name, entry[name]) for name in ("active", "inactive"))
    if len(begins) != len(ends):
        raise ValueError(f"has {len(begins)} times in active, but {len(ends)} in inactive: make them equal")
    spells = _ordered(list(zip(begins, ends, strict=True)), FEDSCALE, period, "finish_time ")
    return _Client(period, _wrapped(spells, period))


FEDSCALE = "active[{i}] {on:g} and inactive[{i}] {off:g} do"
LISTED = "pair {i}, {on:g} to {off:g}, does"


def _ordered(
    times: Sequence[tuple[float, float]], what: str, end: float = math.inf, its: str = ""
) -> tuple[tuple[float, float], ...]:
    """Return the intervals from on to off times, and merge adjacent intervals.

    Args:
        what: start of an error message, with {i}, {on} and {off}. end: latest time. its: name of `end` in messages.
    """
    last, spells = 0.0, list[tuple[float, float]]()
    for i, (from_, to) in enumerate(times):
        if not last <= from_ <= to <= end:
            ends = f" to {its}{end:g}" if end < math.inf else ""
            raise ValueError(f"{what.format(i=i, on=from_, off=to)} not ascend from {last:g}{ends}")
        last = to
        if spells and spells[-1][1] == from_:
            spells[-1] = spells[-1][0], to
        elif from_ < to:
            spells.append((from_, to))
    return tuple(spells)


def _wrapped(spells: tuple[tuple[float, float], ...], period: float) -> tuple[tuple[float, float], ...]:
    """Join the last interval with the first interval of the next period, if the two touch."""
    if len(spells) > 1 and spells[0][0] == 0 and spells[-1][1] == period:
        (_, first_ends), *rest = spells
        rest[-1] = rest[-1][0], period + first_ends
        return tuple(rest)
    return spells


def _times(name: str, values: Any) -> list[float]:
    if not isinstance(values, list):
        raise ValueError(f"{name} is {quoted(values)}; write a list of times")
    return [_time(f"{name}[{i}]", value) for i, value in enumerate(values)]


def _time(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        comma = table_files.decimal_comma(value)
        raise ValueError(f"{name} is {quoted(value)}; a time must be a number of at least 0{comma}")
    return float(value)
