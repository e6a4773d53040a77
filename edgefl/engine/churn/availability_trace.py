"""Recorded times at which devices are available, in the format of FedScale's client availability traces."""

import itertools
import json
import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from edgefl.config import scenario_files, shipped
from edgefl.engine.churn import Churn
from edgefl.errors import EdgeflError, quoted
from edgefl.rng import Streams

PLACE = ("devices", "churn", "path")
LEAST_PERIOD_S = 1e-3  # about a slot; a shorter period would take too long to simulate
NEEDED = ("active", "inactive", "finish_time")
KNOWN = (*NEEDED, "duration", "model")


class Client(NamedTuple):
    """Times at which a client is on, in the units of its file: ascending (from, to), repeated with a period.

    The last one may end in the next period, before the first one of that period begins. No two touch, except a single
    one that fills the whole period.
    """

    period: float
    spells: tuple[tuple[float, float], ...]


class AvailabilityTrace(Churn):
    """Devices are on as recorded in a file, repeated with a period for each device.

    The file is a JSON object with an entry for each client, in the format that FedScale documents for its client
    availability trace:

        {"3834": {"active": [12788, 100044], "inactive": [65881, 133574], "finish_time": 518400}, ...}

    A client is on from active[i] to inactive[i] and off otherwise; from finish_time on this repeats. Times ascend
    between 0 and finish_time. Spells that touch are merged, empty ones are dropped, and a client without any is never
    on. `duration`, the time on per period, and `model` are allowed and ignored; any other key is an error. The ids
    may be any text: the file's first client is device 0, the next one device 1, and so on (in a class of devices: the
    first device of the class, the second one ...).

    FedScale's own file is a Python pickle, which can run any code when it is read, and is not accepted. If you trust
    it, convert it to JSON: json.dump(pickle.load(open("client_behave_trace", "rb")), file).

    Source: https://github.com/SymbioticLab/FedScale, benchmark/dataset/data/device_info/README.md; the meaning of the
    fields follows `is_active` of its clients.
    """

    own_numbers: ClassVar[bool] = True

    path: Path = Field(description="the JSON file; relative to the scenario's file")
    time_scale: float = Field(
        1.0, ge=1e-6, le=1e6, description="simulated seconds per unit of time of the file"
    )
    begin: float = Field(
        0.0, ge=0, le=1e12, description="time of the file, in its unit, at which the simulation begins"
    )
    reuse: bool = Field(
        False,
        description="devices beyond the file's last client start again with its first; otherwise an error",
    )

    def switches(self, device: int, streams: Streams) -> Iterator[float]:
        try:
            status = shipped.data(self.path).stat()
        except OSError as error:
            why = f"{self.path}: cannot be read ({error.strerror}) in {Path.cwd()}"
            raise EdgeflError(f"{why}; {scenario_files.WHERE}", PLACE) from error
        clients = _read(shipped.data(self.path), Path.cwd(), status.st_mtime_ns, status.st_size)
        if device >= len(clients) and not self.reuse:
            raise EdgeflError(
                f"{self.path} has {len(clients)} clients, but there are more devices: use at most as many "
                "devices, or set reuse: true to start again with the first client",
                PLACE,
            )
        client = clients[device % len(clients)]
        if (period_s := client.period * self.time_scale) < LEAST_PERIOD_S:
            raise EdgeflError(
                f"{self.path}: the period of client number {device % len(clients)} is {period_s:g} s; a device is"
                f" switched at most every {LEAST_PERIOD_S:g} s: raise time_scale, or correct its finish_time",
                PLACE,
            )
        return self._times_s(client)

    def _times_s(self, client: Client) -> Iterator[float]:
        if client.spells == ((0.0, client.period),):
            yield 0.0
            return
        if not client.spells:
            return
        # a spell that began in the period before the simulation's may last into it
        for number in itertools.count(math.floor(self.begin / client.period) - 1):
            since = number * client.period - self.begin
            for from_, to in client.spells:
                if since + to > 0:
                    yield self.time_scale * max(0.0, since + from_)
                    yield self.time_scale * (since + to)


@lru_cache(maxsize=4)
def _read(path: Path, folder: Path, changed_ns: int, size: int) -> list[Client]:
    """Read the clients of a file in order; a changed file is read again."""
    try:
        entries = json.loads(path.read_bytes(), object_pairs_hook=_pairs, parse_constant=_no_number)
    except OSError as error:
        raise EdgeflError(f"{path}: cannot be read ({error.strerror})", PLACE) from error
    except json.JSONDecodeError as error:
        raise EdgeflError(f"{path}:{error.lineno}: is not JSON ({error.msg})", PLACE) from error
    except UnicodeDecodeError as error:
        raise EdgeflError(
            f"{path}: is not text. Convert a pickle of FedScale to JSON first, see `edgefl describe"
            " churn/availability_trace`",
            PLACE,
        ) from error
    except (ValueError, RecursionError) as error:
        raise EdgeflError(f"{path}: {error or 'is nested too deeply'}", PLACE) from error
    if not isinstance(entries, dict) or not entries:
        raise EdgeflError(f"{path}: has no clients; write an object with an entry for each", PLACE)
    clients = []
    for name, entry in entries.items():
        try:
            clients.append(_client(entry))
        except ValueError as error:
            raise EdgeflError(f"{path}: client {quoted(name)}: {error}", PLACE) from error
    return clients


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{quoted(name)} occurs twice")
        values[name] = value
    return values


def _no_number(word: str) -> float:
    raise ValueError(f"contains {word}, which is not a time")


def _client(entry: Any) -> Client:
    if not isinstance(entry, dict):
        raise ValueError(f"is {quoted(entry)}; write an object with {', '.join(NEEDED)}")
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
        raise ValueError(f"has {len(begins)} times in active and {len(ends)} in inactive: give equally many")
    last, spells = 0.0, list[tuple[float, float]]()
    for i, (from_, to) in enumerate(zip(begins, ends, strict=True)):
        if not last <= from_ <= to <= period:
            raise ValueError(
                f"active[{i}] {from_:g} and inactive[{i}] {to:g} do not ascend between {last:g} and"
                f" {'finish_time ' if i == len(begins) - 1 else ''}{period:g}"
            )
        last = to
        if spells and spells[-1][1] == from_:
            spells[-1] = spells[-1][0], to
        elif from_ < to:
            spells.append((from_, to))
    if len(spells) > 1 and spells[0][0] == 0 and spells[-1][1] == period:
        (_, first_ends), *spells = spells
        spells[-1] = spells[-1][0], period + first_ends
    return Client(period, tuple(spells))


def _times(name: str, values: Any) -> list[float]:
    if not isinstance(values, list):
        raise ValueError(f"{name} is {quoted(values)}; write a list of times")
    return [_time(f"{name}[{i}]", value) for i, value in enumerate(values)]


def _time(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise ValueError(f"{name} is {quoted(value)}; a time must be a number of at least 0")
    return float(value)
