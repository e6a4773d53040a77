"""Read and check the files that a run has written: run.json, claims and the rows of rounds.csv.

If a value is not of the type that a run writes, an EdgeflError names the file, the fault and a remedy.
"""

import csv
import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO

import yaml

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError, near_path
from edgefl.run_directory.files import reading
from edgefl.run_directory.score import ACCURACY, field_name

FILE = "run.json"
STUDY = "study.yaml"
ROUNDS = "rounds.csv"
STATUSES = ("running", "completed", "interrupted", "failed")
# keys that identify a run; a run that stopped after its claim has none of these
NAMES = ("schema_version", "name", "seed")
SHOWN = 60  # maximum number of characters of a wrong value in a message
LARGEST_PID = 2**31 - 1

# key -> type of a value that is neither missing nor null; for a mapping, the types of its own keys
Kinds = Mapping[str, "type | UnionType | Kinds"]
PROCESS: Kinds = {"host": str, "pid": int, "started": int, "heartbeat": str}
ABOUT: Kinds = {
    **dict.fromkeys(("status", "name", "error", "study", "variant", "reference", "federation"), str),
    **dict.fromkeys(("schema_version", "seed", "resumed"), int),
    **dict.fromkeys(("wall_s", "simulated_s", "epsilon"), int | float),
    **dict.fromkeys(("notes", "variants", "journal_notes"), list),
    **dict.fromkeys(("setting", "settings", "model", "shared", "federations"), dict),
    "score": str,
    "process": PROCESS,
    "identity": {"hash": str, "data": dict, "results_version": int, "code": dict},
    "learning_identity": {"whole": str, "pilot": str, "pilot_sessions": int, "plain": str},
    "learner": {"name": str},
    "rows": dict,
}
# mapping in run.json -> its required keys
WHOLE = {"process": ("host", "pid"), "identity": ("hash", "data", "results_version"), "learner": ("name",)}
# columns of text; all other columns of a Round contain numbers or empty cells
WORDS = {"phase"}
COUNTS = {field.name for field in fields(Round) if field.type in ("int", int)}
EMPTY = {field.name for field in fields(Round) if "None" in str(field.type)}


def about_of(path: Path) -> dict[str, Any]:
    """Read the run.json of a run directory.

    Raises:
        EdgeflError: the file is missing or damaged.
    """
    file = path / FILE
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or type(error).__name__
        hint = "" if path.exists() else near_path(path)
        if (path / STUDY).is_file():
            hint = ", or continue a study with the same `edgefl study` command"
        raise EdgeflError(
            f"{path}: is not a run directory ({FILE}: {why}); give a directory made by `edgefl run`{hint}"
        ) from error
    except (ValueError, RecursionError) as error:
        why = "it is damaged" if has_rows(path) else "the run was probably stopped while it was starting"
        raise EdgeflError(f"{file}: cannot be read: {why}; {repeat(path)}") from error
    if wrong := _wrong(about):
        raise EdgeflError(f"{file}: is damaged: {wrong}; {repeat(path)}")
    checked: dict[str, Any] = about
    return checked


def has_rows(path: Path) -> bool:
    """Return whether a run directory, or a federation's directory in it, has a table of rounds with a row."""
    for file in (path / ROUNDS, *path.glob(f"*/{ROUNDS}")):
        try:
            with file.open("rb") as table:
                if len(table.readlines(2**16)) > 1:
                    return True
        except FileNotFoundError:
            continue
        except OSError:  # a table that cannot be read may have rows
            return True
    return False


def repeat(path: Path) -> str:
    """Return advice on repeating a run that cannot be resumed, which keeps a directory that has rows."""
    of_study = "a study's command repeats its missing runs"
    if not has_rows(path):
        return f"delete {path} and run again; {of_study}"
    return (
        f"its tables can still be read, so keep {path}, and run the scenario again in another one; {of_study}"
    )


def refuse_run_directory(folder: Path) -> None:
    """Refuse to write files of the user into a run directory, or below one."""
    whole = folder.resolve()
    for above in (whole, *whole.parents):
        if all((above / name).is_file() for name in ("run.json", "scenario.yaml")):
            raise EdgeflError(
                f"{above} is a run directory, which holds only the run's files: choose another folder"
            )


def consent(about: Mapping[str, Any]) -> str:
    """Return the option that a command needs to run the own code that run.json lists, or ''."""
    return " --allow-code" if (about.get("identity") or {}).get("code") else ""


def resume_command(path: Path, about: Mapping[str, Any]) -> str:
    """Return the command that resumes the run in a directory, given the content of its run.json.

    A run with an external learner needs the learner's object, so it is resumed by a call in Python.
    """
    if learner := (about.get("learner") or {}).get("name"):
        return f"edgefl.resume({str(path)!r}, learner=...) # in Python, with {learner}"
    return f"edgefl resume {shlex.quote(str(path))}{consent(about)}"


def claim_of(file: Path) -> dict[str, Any] | None:
    """Return the process that made a claim; {} if the claim's file is damaged or incomplete, None if missing."""
    try:
        owner = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    return owner if isinstance(owner, dict) and not _wrong_process(owner) else {}


def study_of(directory: Path) -> dict[str, Any]:
    """Return the content of a study directory's study.yaml; {} if it is missing or damaged."""
    try:
        data = yaml.safe_load((directory / STUDY).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return data if isinstance(data, dict) else {}


class RoundRows:
    """The rows of a run's rounds.csv, read as they are written.

    Args:
        path: the run directory.
    """

    def __init__(self, path: Path) -> None:
        self._file = path / ROUNDS
        self._read = self._lines = 0  # bytes and lines that have been read so far
        self._head: list[str] = []

    def began_anew(self) -> bool:
        """Return whether a resumed run has replaced rounds.csv since the last read."""
        if not self._read:
            return False
        with self._opened() as file:
            if file is None:
                return True
            shorter = self._file.stat().st_size < self._read
            return shorter or len(self._cells(file.readline(), 1)) != len(self._head)

    def new(self, score: str = ACCURACY) -> Iterator[Round]:
        """Yield the rows of rounds.csv written since the last call.

        Args:
            score: name of the accuracy columns in the table.

        Raises:
            EdgeflError: the table cannot be read, or is damaged; the message names the line.
        """
        with self._opened() as file:
            if file is None:
                return
            file.seek(self._read)
            written = file.read()
        written = written[: written.rfind(b"\n") + 1]  # the last line may be incomplete
        self._read += len(written)
        for line in written.splitlines():
            self._lines += 1
            cells = self._cells(line, self._lines)
            if self._head:
                yield self._row(cells)
            else:
                self._head = [field_name(name, score) for name in cells]

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO | None]:
        """Open rounds.csv, or yield None if the file does not exist yet."""
        with reading(self._file):
            try:
                file = self._file.open("rb")
            except FileNotFoundError:
                yield None
                return
            with file:
                yield file

    def _cells(self, line: bytes, number: int) -> list[str]:
        try:
            return next(csv.reader([line.decode()], strict=True), [])
        except (UnicodeDecodeError, csv.Error) as error:
            raise self._damaged(number, f"is not a line of a table ({error})") from error

    def _row(self, cells: list[str]) -> Round:
        if len(cells) != len(self._head):
            many = f"has {len(cells)} cells, but the header has {len(self._head)}"
            raise self._damaged(self._lines, many)
        named = dict(zip(self._head, cells, strict=True))
        values: dict[str, Any] = {}
        for field in fields(Round):
            name = field.name
            text = named.get(name, "")
            try:
                values[name] = text if name in WORDS else _number(name, text)
            except ValueError as error:
                raise self._damaged(self._lines, f"{name} is {text[:SHOWN]!r}, not a number") from error
        return Round(**values)

    def _damaged(self, line: int, what: str) -> EdgeflError:
        return EdgeflError(f"{self._file}:{line}: {what}; repeat the run, or resume it with `edgefl resume`")


def _number(name: str, text: str) -> int | float | None:
    if name in COUNTS:
        return int(text or 0)
    return float(text) if text or name not in EMPTY else None


def _wrong(about: Any) -> str:
    """Return the fault in the content of run.json, or ''."""
    if not isinstance(about, dict):
        return f"it holds {_shown(about)}, not a description of a run"
    if about.get("status") not in STATUSES:
        return f"its status is {_shown(about.get('status'))}, not one of {', '.join(STATUSES)}"
    if wrong := _wrong_kind(about, ABOUT):
        return wrong
    process = about.get("process")
    return "" if process is None else _wrong_process(process)


def _wrong_kind(held: Mapping[str, Any], kinds: Kinds, above: str = "") -> str:
    for key, kind in kinds.items():
        value = held.get(key)
        if value is None:
            continue
        wanted = dict if isinstance(kind, Mapping) else kind
        if isinstance(value, bool) or not isinstance(value, wanted):
            return f"its {above}{key} is {_shown(value)}"
        if isinstance(kind, Mapping) and isinstance(value, dict):
            if lost := [name for name in WHOLE.get(key, ()) if value.get(name) is None]:
                return f"its {above}{key} has no {lost[0]}"
            if wrong := _wrong_kind(value, kind, f"{above}{key}."):
                return wrong
    return ""


def _wrong_process(process: Mapping[str, Any]) -> str:
    if wrong := _wrong_kind({"process": process}, {"process": PROCESS}):
        return wrong
    if not 0 < process["pid"] <= LARGEST_PID:
        return f"its process.pid is {_shown(process.get('pid'))}"
    beat = process.get("heartbeat")
    try:
        if beat is None or datetime.fromisoformat(beat).tzinfo is not None:
            return ""
    except ValueError:
        pass
    return f"its process.heartbeat is {_shown(beat)}, not a time with a time zone"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."
