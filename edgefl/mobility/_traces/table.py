"""Read tables in CSV, with plain columns, SUMO's columns, or T-Drive's columns without a header."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from edgefl.config import registry
from edgefl.config.table_files import miscounted, rows
from edgefl.errors import EdgeflError, clipped
from edgefl.mobility._traces._lines import Head
from edgefl.mobility._traces._samples import LISTED, LOGGED, BadRow, Samples
from edgefl.mobility._traces._units import LENGTHS, TIMES

# names by which a column is recognised, in lower case and without spaces, hyphens or underscores
_COMMON = {
    "t": "t time timestamp datetime utctime utc gpstime trackedat",
    "id": "id device deviceid user userid uid vehicle vehicleid carid taxi taxiid busid bus node nodeid track trackid"
    " trajid trajectoryid tripid imei mmsi",
    "x": "x xm posx xpos",
    "y": "y ym posy ypos",
    "lon": "lon lng long longitude gpslon gpslongitude",
    "lat": "lat latitude gpslat gpslatitude",
    "type": "type class mode",
}
COMMON = {role: names.split() for role, names in _COMMON.items()}
WANTED = (
    "name the columns in the first line t,id,x,y (s and m) or t,id,lon,lat (degrees), or list them:"
    " columns: {t: NAME, id: NAME, x: NAME, y: NAME}, with lon and lat instead of x and y for degrees, and numbers"
    " from 1 if there is no header"
)
DATE = r"\d{4}[-/]\d\d?[-/]\d\d?[ T]\d"
# https://www.microsoft.com/en-us/research/publication/t-drive-trajectory-data-sample/: id, time, longitude, latitude
T_DRIVE: Mapping[str, str | int] = {"id": 1, "t": 2, "lon": 3, "lat": 4}
# symbol of a unit at the end of a column's name -> the unit
SYMBOLS = {"us": "microseconds", "ms": "milliseconds", "min": "minutes", "h": "hours"}
SYMBOLS |= {"mm": "millimetres", "cm": "centimetres", "km": "kilometres"}
REMEDY = "write a number, 12.5 for example"


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is a table with a header, or has T-Drive's columns."""
    if not head.lines or head.is_xml or head.binary:
        return False
    cells = re.split(r"[,;\t]", head.lines[0])
    return _is_t_drive(cells) or any(_known(cell, role) for cell in cells for role in COMMON)


def read(path: Path, samples: Samples) -> None:
    """Add the samples of a table in CSV."""
    columns = None
    for line, cells in rows(path, blanks=True):
        if columns is None:
            names, columns = _header(cells, samples)
            if names:
                continue
        columns.add(line, cells)
    if columns is None:
        raise samples.error(1, f"is empty; {WANTED}")


def _header(cells: Sequence[str], samples: Samples) -> tuple[bool, "Columns"]:
    """Return whether the first row of a table is a header, and the table's columns."""
    names = [cell.strip() for cell in cells]
    numbered = samples.wanted.columns or (T_DRIVE if _is_t_drive(names) else {})
    places = [at for at in numbered.values() if isinstance(at, int)]
    if not places:
        return True, Columns.of(names, samples)
    without = all(_is_value(names[at - 1]) for at in places if at <= len(names) and at != numbered.get("id"))
    return not without, Columns.of(names, samples, numbered)


def _is_value(cell: str) -> bool:
    return re.fullmatch(rf"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?|{DATE}.*", cell.strip()) is not None


def _is_t_drive(cells: Sequence[str]) -> bool:
    return len(cells) == 4 and re.match(DATE, cells[1]) is not None and all(map(_is_value, cells[2:]))


def _known(name: str, role: str) -> bool:
    return re.sub(r"[\s_.-]", "", name.lower()) in COMMON[role]


def _with_unit(names: Sequence[str], role: str) -> str:
    """Return a remedy for columns with a unit in their names, such as time_ms, or ''."""
    key, units, roles = ("time_scale", TIMES, "t") if role == "t" else ("scale", LENGTHS, "xy")
    for symbol in (symbol for symbol, unit in SYMBOLS.items() if unit in units):
        ends = f"_{symbol}"
        of = {
            each: name
            for each in roles
            for name in names
            if name.endswith(ends) and _known(name.removesuffix(ends), each)
        }
        if role in of:
            columns = ", ".join(f"{each}: {name}" for each, name in of.items())
            return f"set columns: {{{columns}}} and {key}: {units[SYMBOLS[symbol]]:g}, or "
    return ""


class _Device(NamedTuple):
    """Indices of the columns that contain a device's sample; -1 if the table has no column of ids or types."""

    kind: str
    id: int
    x: int
    y: int
    type: int


@dataclass(frozen=True)
class Columns:
    """The columns of a table, and the conversion of its rows to samples.

    names: names of all columns. t: index of the time column. devices: the columns of each kind of device. alone: id
    of the only device, '' if a column has ids. of_sumo: whether the table has SUMO's columns: every row has the
    columns of every kind, filled for one kind; a row without any id is a time step without devices.
    """

    names: Sequence[str]
    samples: Samples
    t: int
    devices: Sequence[_Device]
    alone: str = ""
    of_sumo: bool = False

    @classmethod
    def of(
        cls, names: Sequence[str], samples: Samples, columns: Mapping[str, str | int] | None = None
    ) -> "Columns":
        """Find the columns of a table.

        Args:
            columns: role -> name or number (from 1) of a column; None for the scenario's `columns`. A column that is
                named as x is in degrees if it is called longitude, unless `geo` is false.

        Raises:
            EdgeflError: a column is missing, or cannot be distinguished from others.
        """
        if "timestep_time" in names and not samples.wanted.columns:
            return cls._of_sumo(names, samples)
        place = _finder(names, samples, columns or samples.wanted.columns)
        x, y = place("x"), place("y")
        named = x is not None and _known(names[x], "lon")
        lon, lat = place("lon"), place("lat")
        chosen = {"x", "y", "lon", "lat"} & set(columns or samples.wanted.columns)
        if not chosen and samples.wanted.degrees is None and None not in (x, y, lon, lat):
            # a phone's log may have x and y of its acceleration beside the position
            lon_, lat_, x_, y_ = (names[at] for at in (lon, lat, x, y) if at is not None)
            raise samples.error(
                1,
                f"has {lon_}, {lat_} and {x_}, {y_}: choose with columns: {{lon: {lon_}, lat: {lat_}}} or"
                f" {{x: {x_}, y: {y_}}}",
            )
        told = chosen & {"lon", "lat"}
        degrees = {lon, lat} != {None} and bool(told or samples.wanted.degrees or {x, y} == {None})
        if degrees:
            x, y = lon, lat
        t, id_, type_ = place("t"), place("id"), place("type")
        for role, at in zip(
            ("t", "lon" if degrees else "x", "lat" if degrees else "y"), (t, x, y), strict=True
        ):
            if at is None:
                known = f"none of the columns {clipped(', '.join(names))} is {role}"
                raise samples.error(1, f"{known}; {_with_unit(names, role)}{WANTED}")
        declared = samples.wanted.degrees
        samples.in_degrees(degrees or (named if declared is None else declared))
        if id_ is None:
            known = f"known: {', '.join(COMMON['id'])}"
            samples.nameless = f"no column has ids; the columns are {clipped(', '.join(names))} ({known})"
        id_at, type_at = (-1 if at is None else at for at in (id_, type_))
        device = _Device("row", id_at, x or 0, y or 0, type_at)
        return cls(names, samples, t or 0, [device], samples.name if id_ is None else "")

    @classmethod
    def _of_sumo(cls, names: Sequence[str], samples: Samples) -> "Columns":
        kinds = samples.wanted.kinds
        devices = []
        for kind in [kind for kind in kinds if f"{kind}_id" in names] or kinds[:1]:
            at = [_only(f"{kind}_{what}", names, samples) for what in ("id", "x", "y")]
            type_ = names.index(f"{kind}_type") if f"{kind}_type" in names else -1
            devices.append(_Device(kind, at[0], at[1], at[2], type_))
        samples.in_degrees(bool(samples.wanted.degrees))
        return cls(names, samples, _only("timestep_time", names, samples), devices, of_sumo=True)

    @property
    def read(self) -> list[int]:
        """The indices of the columns to read from each row, in order."""
        return sorted({self.t, *(at for device in self.devices for at in device[1:] if at >= 0)})

    def add(self, line: int, cells: Sequence[Any]) -> None:
        """Add the samples of a table's row; cells are strings, or values in typed tables."""
        try:
            if len(cells) != len(self.names):
                raise self.samples.bad_row(line, miscounted(len(cells), len(self.names)))
            if self.of_sumo:
                self.samples.step(self.samples.time_s(line, self.names[self.t], cells[self.t]))
            for device in self.devices:
                self._add(line, cells, device)
        except BadRow as bad:
            self.samples.skip(bad)

    def _add(self, line: int, cells: Sequence[Any], device: _Device) -> None:
        kind, id_at, x_at, y_at, type_at = device
        samples, names = self.samples, self.names
        id_ = self.alone or ("" if cells[id_at] is None else str(cells[id_at]).strip())
        if not id_:
            if self.of_sumo:
                return
            raise samples.bad_row(line, "id is empty; name the device")
        time_s = samples.time_s(line, names[self.t], cells[self.t])
        x = samples.number(line, names[x_at], cells[x_at], REMEDY)
        y = samples.number(line, names[y_at], cells[y_at], REMEDY)
        type_ = "" if type_at < 0 or cells[type_at] is None else str(cells[type_at]).strip()
        samples.add(line, kind, id_, time_s, x, y, lost=LISTED if self.of_sumo else LOGGED, type_=type_)


def _finder(
    names: Sequence[str], samples: Samples, columns: Mapping[str, str | int]
) -> Callable[[str], int | None]:
    """Return a function that finds the column of a role: by the given name, the role's own name, or a common name."""

    def found(role: str) -> int | None:
        told = columns.get(role)
        if isinstance(told, int):
            if told > len(names):
                raise samples.error(
                    1, f"has only {len(names)} columns, but columns: {{{role}: {told}}} needs more"
                )
            return told - 1
        if told is not None:
            fits = [at for at, name in enumerate(names) if name == told]
            if not fits:
                hint = clipped(registry.did_you_mean(told, list(names)), 300)
                raise samples.error(1, f"has no column '{told}', named in columns: {{{role}: {told}}}{hint}")
        else:
            fits = [at for at, name in enumerate(names) if name == role]
            fits = fits or [at for at, name in enumerate(names) if _known(name, role)]
        if len(fits) > 1:
            which = " and ".join(dict.fromkeys(names[at] for at in fits))
            if which in names:
                raise _twice(which, names, samples)
            raise samples.error(
                1, f"{which} could each be {role}; choose one: columns: {{{role}: {names[fits[0]]}}}"
            )
        return fits[0] if fits else None

    return found


def _only(name: str, names: Sequence[str], samples: Samples) -> int:
    if names.count(name) != 1:
        raise _twice(name, names, samples)
    return names.index(name)


def _twice(name: str, names: Sequence[str], samples: Samples) -> EdgeflError:
    return samples.error(
        1, f"column '{clipped(name)}' occurs {names.count(name)} times; a table needs it once"
    )
