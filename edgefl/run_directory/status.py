"""Write and read run.json, with a run's description, status and process."""

import json
import math
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from edgefl.errors import EdgeflError
from edgefl.run_directory.files import replace, writing
from edgefl.run_directory.reading import FILE, about_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HEARTBEAT_S = 10.0
# A process on another machine is known to be alive only by its heartbeat after each round, and rounds may be long.
SILENT_S = 3600.0
# The file is padded to this size, so that it can be overwritten in place when the disk is full.
ROOM = 4096


class RunStatus:
    """The run.json of a run in progress.

    Args:
        path: the run directory.
        about: content of run.json, with the status `running`.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self._file = path / FILE
        self._about = about
        self._began = time.monotonic()
        self._earlier_s = float(about.get("wall_s") or 0.0)
        self._beat = -math.inf
        self._folder: tuple[int, int] | None = None  # the folder's inode, which survives renaming
        self.beat()

    @classmethod
    def take_over(cls, path: Path, about: dict[str, Any]) -> Self:
        """Take over an unfinished run.

        Args:
            about: new values for entries of run.json.

        Raises:
            EdgeflError: the run is complete, or its process is still alive.
        """
        with _alone(path):
            left = resumable(path)
            left.pop("error", None)
            left |= about
            return cls(path, {**left, "status": "running", "resumed": (left.get("resumed") or 0) + 1})

    def beat(self) -> None:
        """Write a heartbeat to run.json, at most once in HEARTBEAT_S.

        Raises:
            EdgeflError: the run directory is missing; `tell` and `end` raise this error, too.
        """
        self._require_own()
        if time.monotonic() - self._beat < HEARTBEAT_S:
            return
        self._beat = time.monotonic()
        self._about["process"] = {**this_process(), "heartbeat": _now().isoformat(timespec="seconds")}
        with writing(self._file):
            self._write()
            self._folder = self._folder or _which(self._file.parent)

    def tell(self, **about: Any) -> None:
        """Write entries to run.json immediately."""
        self._require_own()
        self._about |= about
        with writing(self._file):
            self._write()

    def complete(self, parts: Mapping[str, Mapping[str, Any]], **about: Any) -> None:
        """Mark the run as completed, with further entries of each federation; a single federation is ''."""
        for name, own in (self._about.get("federations") or {}).items():
            own |= parts[name]
        self.end("completed", **parts.get("", {}), **about)

    def end(self, status: str, **about: Any) -> None:
        """Write the run's final status; `wall_s` is summed over all processes of the run."""
        self._require_own()
        self._about.pop("process", None)
        wall_s = about.pop("wall_s", time.monotonic() - self._began)
        self._about |= {"status": status, **about, "wall_s": round(self._earlier_s + wall_s, 3)}
        with writing(self._file):
            self._write()

    def _require_own(self) -> None:
        """Raise if the run's folder is missing, or was replaced by another run's folder."""
        path = self._file.parent
        if self._folder is None or (self._file.exists() and _which(path) == self._folder):
            return
        with suppress(EdgeflError):  # some file systems change a folder's inode
            if self._file.exists() and (about_of(path).get("process") or {}).get("pid") == os.getpid():
                return
        raise EdgeflError(
            f"{path}: no longer exists: the run's folder was moved, renamed or deleted during the run;"
            " continue it in its new place with: edgefl resume FOLDER"
        )

    def _write(self) -> None:
        for file, about in _files(self._file.parent, self._about):
            text = json.dumps(about, indent=2) + "\n"
            if about["status"] == "running":
                text = text.rstrip().ljust((len(text) // ROOM + 2) * ROOM - 1) + "\n"
            try:
                replace(file, text)
            except OSError:
                _write_over(file, about, text.rstrip())


def _files(path: Path, about: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the run.json of each federation with its own run directory, and finally the run's own run.json."""
    for name, own in (about.get("federations") or {}).items():
        (path / name).mkdir(exist_ok=True)
        rest = {key: value for key, value in about.items() if key != "federations"}
        yield path / name / FILE, {**rest, **own, "federation": name}
    yield path / FILE, dict(about)


def _write_over(file: Path, about: Mapping[str, Any], text: str) -> None:
    """Overwrite an existing file in place; cut the error text if it is too long."""
    room = file.stat().st_size
    if len(text) >= room and "error" in about:
        short = str(about["error"])[: room - len(text) - 1]  # a negative index cuts the text's end
        text = json.dumps({**about, "error": short}, indent=2)
    with file.open("r+b") as opened:
        opened.write((text.ljust(room - 1) + "\n").encode())


def resumable(path: Path) -> dict[str, Any]:
    """Return the run.json of an unfinished run.

    Raises:
        EdgeflError: the run is complete, its process is still alive, or the file is damaged.
    """
    about = about_of(path)
    if name := about.get("federation"):
        raise EdgeflError(
            f"{path}: is federation {name} of a run: resume the whole run, {path.resolve().parent}"
        )
    if about["status"] == "completed":
        raise EdgeflError(f"{path}: is complete; there is nothing to resume")
    process = about.get("process")
    if about["status"] == "running" and process:
        host, pid = process["host"], process["pid"]
        silent_s = _silent_s(process)
        if host == platform.node():
            if same_process(process):
                raise EdgeflError(f"{path}: process {pid} is running it; let it finish, or end it first")
        elif silent_s < SILENT_S:
            ago = f"{silent_s:.0f} s ago" if silent_s >= 0 else f"{-silent_s:.0f} s ahead of this clock"
            raise EdgeflError(
                f"{path}: process {pid} on {host} was still running it {ago}; resume the run there,"
                f' or, if you know that process {pid} has ended, write "status": "interrupted" into {path / FILE}'
            )
    return about


def _which(folder: Path) -> tuple[int, int]:
    """Return the device and inode numbers of a folder."""
    with writing(folder):
        status = folder.stat()
    return status.st_dev, status.st_ino


def _now() -> datetime:
    return datetime.now(UTC)


def _silent_s(process: dict[str, Any]) -> float:
    """Return the seconds since a process's last heartbeat; inf without a heartbeat."""
    beat = process.get("heartbeat")
    return (_now() - datetime.fromisoformat(beat)).total_seconds() if beat else math.inf


def this_process() -> dict[str, Any]:
    """Return this process's host, process number and start time."""
    return {"pid": os.getpid(), "host": platform.node(), "started": _started(os.getpid())}


def is_there(process: dict[str, Any], *, claimed: bool) -> bool:
    """Return whether a process named in run.json is running.

    Args:
        claimed: whether the process held a claim on the run that has since expired. If not, a process on another
            machine counts as running while its last heartbeat is less than SILENT_S old, or later than this
            machine's clock.
    """
    if process["host"] == platform.node():
        return same_process(process)
    return not claimed and _silent_s(process) < SILENT_S


def give_up(path: Path, *, damaged: bool = False) -> None:
    """Mark a run as interrupted on behalf of its process, which has ended.

    Args:
        damaged: whether to replace an unreadable run.json; a resuming process writes the rest of its content.
    """
    try:
        about = about_of(path)
    except EdgeflError:
        if not damaged:
            raise
        about = {"status": "running"}
    about.pop("process", None)
    if about["status"] == "running":
        with writing(path / FILE):
            for file, left in _files(path, {**about, "status": "interrupted"}):
                replace(file, json.dumps(left, indent=2) + "\n")


def describe_again(path: Path, entries: Mapping[str, Any]) -> None:
    """Write entries of run.json of a complete run again, if they have changed since the run; skip other runs."""
    try:
        about = about_of(path)
    except EdgeflError:
        return
    entries = json.loads(json.dumps(entries))  # as in the file, where tuples are lists
    changed = any(about.get(key) != value for key, value in entries.items())
    if about["status"] == "completed" and changed:
        with writing(path / FILE):
            for file, own in _files(path, {**about, **entries}):
                replace(file, json.dumps(own, indent=2) + "\n")


def is_gone(process: Mapping[str, Any]) -> bool:
    """Return whether a recorded process ran on this machine and has ended, which is certain."""
    return process.get("host") == platform.node() and not same_process(dict(process))


def same_process(process: dict[str, Any]) -> bool:
    """Return whether a recorded process on this machine is still alive; its number may have been reused."""
    if os.name != "posix":
        return process.get("heartbeat") is None or _silent_s(process) < SILENT_S
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    started = process.get("started")
    return bool(started is None or _started(process["pid"]) == started)


def _started(pid: int) -> int | None:
    """Return a process's start in clock ticks since boot, on Linux; None if the process has ended or is a zombie."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[18]) if state != "Z" else None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let only one process at a time take over a run; a second process waits."""
    handle = None
    if fcntl is not None:
        with suppress(OSError):  # some file systems do not support locks
            handle = os.open(path, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)
