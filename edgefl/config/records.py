"""Read records, which map names to values, from CSV, JSON and YAML, with each record's position in the file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from edgefl.config import foreign_files, table_files
from edgefl.config.yaml_nodes import FaultyText, read
from edgefl.errors import EdgeflError, quoted

READABLE = (".csv", ".json", ".yaml", ".yml")
MOST_BYTES = {".json": 500_000_000, ".yaml": 10_000_000, ".yml": 10_000_000}


class Record(NamedTuple):
    """A record with its position in the file: a line (int), or the record's name or number (str)."""

    path: Path
    place: int | str
    values: dict[str, Any]

    @property
    def where(self) -> str:
        """The file and the record's position in it, with which error messages about the record begin."""
        if isinstance(self.place, int):
            return f"{self.path}:{self.place}"
        return f"{self.path}: entry {quoted(self.place)}"


def records(path: Path) -> list[Record]:
    """Read the records of a CSV, JSON or YAML file.

    A CSV file has a line of names, then one record per line; all its values are strings. A JSON or YAML file contains
    a list of objects, or an object of objects.

    Raises:
        EdgeflError: the file is faulty; the message names the file, the line or entry, and the remedy.
    """
    with foreign_files.reading(path):
        found = list(_of_csv(path) if path.suffix == ".csv" else _of_document(path))
    if not found:
        raise EdgeflError(f"{path}: has no entries; write at least one")
    return found


def read_json(path: Path) -> Any:
    """Read a JSON file strictly: refuse NaN, and objects with duplicate names.

    Raises:
        EdgeflError: the file is faulty; the message names file, line and fault.
    """
    try:
        content = foreign_files.whole(path, MOST_BYTES[".json"])
        return json.loads(content, object_pairs_hook=_pairs, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise EdgeflError(f"{path}:{error.lineno}: is not JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise EdgeflError(
            f"{path}: is not text; convert a Python pickle to JSON first:"
            ' json.dump(pickle.load(open("FILE", "rb")), open("FILE.json", "w"))'
        ) from error
    except (ValueError, RecursionError) as error:
        raise EdgeflError(f"{path}: {error or 'is nested too deeply'}") from error


def _of_csv(path: Path) -> Iterator[Record]:
    table = table_files.Table(path)
    names = table.names
    for name in names:
        if names.count(name) > 1:
            raise table.error(1, f"has column {quoted(name)} twice; remove or rename one")
    for line, cells in table.rows:
        if any(map(str.strip, cells)):
            yield Record(path, line, dict(zip(names, map(str.strip, cells), strict=True)))


def _of_document(path: Path) -> Iterator[Record]:
    lines: dict[str, int] = {}
    if path.suffix == ".json":
        document = read_json(path)
    else:
        try:
            node = read(foreign_files.whole(path, MOST_BYTES[path.suffix]).decode("utf-8-sig"))
        except FaultyText as fault:
            raise EdgeflError(f"{path}:{fault.line}: {fault.message}") from fault
        document, lines = (node.data(), node.lines) if node else ([], {})
    if not isinstance(document, dict | list):
        raise EdgeflError(
            f"{path}: is {quoted(document)}; write a list of objects, or an object whose keys name the entries"
        )
    named = isinstance(document, dict)
    for number, name in enumerate(document if named else range(1, len(document) + 1)):
        entry = document[name] if named else document[number]
        one = Record(path, lines.get(str(name if named else number), str(name)), entry)
        if not isinstance(entry, dict):
            raise EdgeflError(f"{one.where}: is {quoted(entry)}; write an object of names and values")
        yield one


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"{quoted(name)} occurs twice")
        values[name] = value
    return values


def _no_number(word: str) -> float:
    raise ValueError(f"contains {word}, which is not a number")
