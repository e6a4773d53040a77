"""The run directory, the contract between edgefl and everything that reads it.

Tables are CSV, appended and flushed each round, so that a killed process leaves readable files. run.json has the
status `running`, with the process, until the run is `completed`, `interrupted` or `failed`.
"""

import json
import math
import platform
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from edgefl.engine.records import DeviceRound, DeviceScore, Event, LedgerRow, Position, Round, Session
from edgefl.errors import EdgeflError
from edgefl.run_directory import status as run_status
from edgefl.run_directory.circumstances import SCENARIO
from edgefl.run_directory.circumstances import versions as packages
from edgefl.run_directory.files import replace, writing
from edgefl.run_directory.interruption import Interrupted, held
from edgefl.run_directory.parquet import ParquetTable
from edgefl.run_directory.reading import resume_command
from edgefl.run_directory.score import ACCURACY
from edgefl.run_directory.settings import RecordSettings
from edgefl.run_directory.status import RunStatus
from edgefl.run_directory.tables import Table
from edgefl.version import __version__

SCHEMA_VERSION = 1
MAP = "map.json"
LARGEST = "epsilon"  # column of devices.csv whose largest value run.json keeps
TABLES: dict[type, str] = {
    Round: "rounds.csv",
    DeviceRound: "devices.csv",
    Event: "events.csv",
    Session: "sessions.csv",
    LedgerRow: "ledger.csv",
    Position: "positions.csv",  # written only if record.positions_s is set
    DeviceScore: "evaluation.csv",  # exists once it has rows
}
# Tables with a row per device and time, which may be Parquet instead of CSV.
LARGE = {DeviceRound, DeviceScore, Position}
NO_STUDY: dict[str, Any] = {"study": None, "variant": None, "reference": None, "setting": {}}
# Tables with extra columns, named by learners and by classes of devices.
GROWING = {DeviceRound, Round, LedgerRow}


def require_free(path: Path) -> None:
    """Raise an error unless a path is free, that is, does not exist or is an empty directory.

    Raises:
        EdgeflError: the path is a file or a directory that is not empty; the message suggests resuming an unfinished
            run.
    """
    if path.is_dir() and any(path.iterdir()):
        # only a run is safe to delete: the folder may hold anything
        how = "choose another --out" + ", or delete it" * (path / run_status.FILE).is_file()
        with suppress(EdgeflError):
            about = run_status.resumable(path)
            if (path / SCENARIO).is_file():
                again = f"continue its run with `{resume_command(path, about)}`"
                # a failure that follows from the scenario would come again
                failed = about["status"] == "failed"
                how = (
                    f"{how}, or, unless its scenario made the run fail, {again}"
                    if failed
                    else f"{again}, {how}"
                )
        raise EdgeflError(f"{path}: is not empty; {how}")
    if path.exists() and not path.is_dir():
        raise EdgeflError(f"{path}: is a file; choose another --out, or delete it")


def fresh_directory(path: Path, claim: str = run_status.FILE) -> Path:
    """Create a directory for results; an existing directory must be empty.

    Args:
        claim: name of an empty file that is created in the directory, so that no second process can claim it.

    Raises:
        EdgeflError: the directory is not empty, or cannot be written.
    """
    try:
        require_free(path)
        path.mkdir(parents=True, exist_ok=True)
        (path / claim).touch(exist_ok=False)
    except FileExistsError as error:  # another process has just made the directory
        what = "is not empty" if path.is_dir() else "is a file"
        raise EdgeflError(f"{path}: {what}; choose another --out, or delete it") from error
    except OSError as error:
        raise EdgeflError(f"{path}: cannot be written ({error.strerror}); choose another --out") from error
    return path


def free_directory(parent: Path, name: str) -> Path:
    """Create `parent/name`, or `parent/name-2`, `-3` ... if it exists: results are never overwritten."""
    path, number = parent / name, 1
    with writing(path):
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                path.mkdir()
                return path
            except FileExistsError:
                number += 1
                path = parent / f"{name}-{number}"


@dataclass(frozen=True)
class Described:
    """A scenario as recorded in its run directory.

    text: the whole scenario as YAML. parts: federation -> its scenario as YAML, if several federations share cells.
    """

    name: str
    seed: int
    record: RecordSettings
    text: str
    parts: Mapping[str, str] = field(default_factory=dict)


class _RunTables:
    """The tables of a run directory, as a recorder.

    Attributes:
        largest: the largest value of the column LARGEST, also in rounds whose devices are not recorded, or None.

    Args:
        path: the folder of the tables.
        score: name of the accuracy columns.
        beat: called at each flush, to write a heartbeat.
    """

    def __init__(self, path: Path, record: RecordSettings, score: str, beat: Callable[[], None]) -> None:
        self._path, self._record, self._score, self._beat = path, record, score, beat
        self._tables: dict[type, Table | ParquetTable] = {}
        self.largest: float | None = None
        for row_type in TABLES:
            if row_type is not DeviceScore and (row_type is not Position or record.positions_s != "none"):
                self._tables[row_type] = self._table(row_type)

    def _table(self, row_type: type) -> Table | ParquetTable:
        path = self._path / TABLES[row_type]
        how: dict[str, Any] = {"grows": row_type in GROWING, "score": self._score}
        if row_type in LARGE and self._record.tables == "parquet":
            return ParquetTable(path.with_suffix(".parquet"), row_type, **how)
        return Table(path, row_type, **how)

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        """Append rows to a run's tables, each row to the table of its type.

        Raises:
            EdgeflError: an extra column was not in the table's first rows.
        """
        for row in rows:
            self._tables[type(row)].write(row, further or {})

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        """Append rows, given by column, to the table of their type.

        Raises:
            KeyError, TypeError, EdgeflError: in the same cases as `Table.write_columns`.
        """
        if row_type is DeviceRound:
            every = (self.largest, *(further or {}).get(LARGEST, ()))
            self.largest = max((one for one in every if one is not None and math.isfinite(one)), default=None)
            if not self._record.keeps(columns["round"]):
                return
        if row_type not in self._tables:
            self._tables[row_type] = self._table(row_type)
        self._tables[row_type].write_columns(further or {}, columns)

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows of each table, so that readers notice if a copy of a file is incomplete."""
        return {Path(TABLES[row_type]).stem: table.rows for row_type, table in self._tables.items()}

    def flush(self) -> None:
        """Pass everything written so far to the operating system, and write a heartbeat."""
        for table in self._tables.values():
            table.flush()
        self._beat()

    def close(self) -> None:
        """Write the remaining rows of all tables; an error in one table does not stop the others."""
        first: EdgeflError | None = None
        for table in self._tables.values():
            try:
                table.close()
            except EdgeflError as error:
                first = first or error
        if first is not None:
            raise first


class RunDirectory:
    """The directory of one run, to be used as a context manager that calls `complete` at the end.

    If several federations share the cells, each federation has its own run directory inside this one, with the
    federation's scenario and all tables about its devices.

    Args:
        path: a new or empty directory, or with `resume` the directory of an unfinished run.
        about: additional content of run.json.
        resume: whether to write the tables of an unfinished run again, from the first row on.

    Attributes:
        tables: federation ('' for a single federation) -> the recorder of the federation's tables.

    Raises:
        EdgeflError: the directory is not new or empty, cannot be written, or holds a run that cannot be resumed.
    """

    def __init__(
        self, path: Path, scenario: Described, about: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self.path = path
        self.tables: dict[str, _RunTables] = {}
        try:
            with held():  # an interruption here would leave the run marked as running
                self._begin(scenario, about, resume=resume)
        except Interrupted as error:
            if not hasattr(self, "_status"):  # a second signal is not deferred
                raise
            raise self._interrupted(error) from None

    def _begin(self, scenario: Described, about: Mapping[str, Any], *, resume: bool) -> None:
        path = self.path
        name = {"schema_version": SCHEMA_VERSION, "status": "running", "name": scenario.name}
        name |= {"devices_recorded": scenario.record.devices}
        seed = {
            "seed": scenario.seed,
            "edgefl_version": __version__,
            "versions": {"python": platform.python_version(), **packages()},
            **about,
        }
        if resume:
            self._status = RunStatus.take_over(path, {**name, **seed})
        else:
            fresh_directory(path)
            try:
                self._status = RunStatus(path, {**name, **NO_STUDY, **seed})
            except EdgeflError:  # the disk may be full; leave the folder free for the next attempt
                for part in scenario.parts:
                    shutil.rmtree(path / part, ignore_errors=True)
                (path / run_status.FILE).unlink()
                raise
        scores = {part: of.get("score") for part, of in about.get("federations", {}).items()}
        try:
            for part, text in {"": scenario.text, **scenario.parts}.items():
                if not resume:
                    with writing(path / part / "scenario.yaml"):
                        (path / part).mkdir(exist_ok=True)
                        (path / part / "scenario.yaml").write_text(text, encoding="utf-8")
                if part or not scenario.parts:
                    score = scores.get(part) or about.get("score") or ACCURACY
                    self.tables[part] = _RunTables(path / part, scenario.record, score, self._status.beat)
            self.flush()
        except EdgeflError as error:
            self.fail(str(error))
            raise

    def flush(self) -> None:
        """Pass everything written so far to the operating system, and write a heartbeat."""
        for tables in self.tables.values():
            tables.flush()

    def draw(self, drawing: Mapping[str, Any]) -> None:
        """Write map.json, the scenario's areas and streets in metres, if there are any."""
        for part in self.tables if drawing else ():
            with writing(self.path / part / MAP):
                replace(self.path / part / MAP, json.dumps(drawing))

    def tell(self, **about: Any) -> None:
        """Write entries to run.json immediately."""
        self._status.tell(**about)

    def complete(self, **about: Any) -> None:
        """Mark the run as completed."""
        for tables in self.tables.values():
            tables.close()
        parts = {
            part: {"rows": own.rows, **({} if own.largest is None else {LARGEST: own.largest})}
            for part, own in self.tables.items()
        }
        self._status.complete(parts, **about)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyboardInterrupt):
            raise self._interrupted(error) from None
        if error is not None:
            self.fail(str(error) or type(error).__name__)

    def _interrupted(self, error: KeyboardInterrupt) -> Interrupted:
        """Mark the run as interrupted; return the `Interrupted` to raise."""
        # the main process may receive several signals: one sent to the whole job, and more from two of its processes
        with suppress(Interrupted), held():
            self._end("interrupted")
        return Interrupted(error.args[0] if isinstance(error, Interrupted) else signal.SIGINT, self.path)

    def fail(self, error: str) -> None:
        """Mark the run as failed, with the reason."""
        with held():  # an interruption here would leave the run marked as running
            self._end("failed", error=error)

    def _end(self, status: str, **about: Any) -> None:
        """Close a run's files after an error; suppress further errors, so that the first error is reported."""
        for tables in self.tables.values():
            with suppress(EdgeflError):
                tables.close()
        with suppress(EdgeflError):
            self._status.end(status, **about)
