"""Lock runs by plain files, so that several processes, on several machines, share a study.

`claims/RUN/N.json` is the N-th claim on a run; the newest one is valid. A process claims an abandoned run by creating
file N + 1, which only one process can do. The owner updates the file's time every few seconds; an owner that finds a
claim newer than its own was considered dead, and exits at once. A copy made by rsync -a keeps the claims' old times,
so these claims count as expired.

The clocks of machines differ and are adjusted, so an old file time is only a reason to watch the file: another
machine's claim is taken over once its file has not changed for longer than the owner's update interval.
"""

import json
import os
import platform
import re
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from edgefl.errors import EdgeflError
from edgefl.run_directory.files import writing
from edgefl.run_directory.reading import claim_of
from edgefl.run_directory.status import is_gone, same_process, this_process

FOLDER = "claims"
BEAT_S = 10.0
# A process on another machine seems dead if its last beat is older than this by the local clock, or in the future.
STALE_S = 120.0
CLAIM = re.compile(r"([0-9]{1,9})\.json")
TAKEN_OVER = 75  # exit code, EX_TEMPFAIL: another process has the run


def held(directory: Path, run: Path) -> bool | None:
    """Return whether a live process has claimed a run.

    Args:
        directory: the study's directory.
        run: directory of the run, relative to the study's directory.

    Returns:
        Whether the claim's process is alive, or None if no process has claimed the run.
    """
    folder = directory / FOLDER / run
    newest = _newest(folder)
    return None if newest is None else _alive(folder / f"{newest}.json")


def take(directory: Path, run: Path) -> "_RunLock | None":
    """Lock a run.

    A run that another machine seems to have abandoned is watched for 1.5 BEAT_S before it is locked.

    Returns:
        The lock, or None if another process has claimed the run.
    """
    folder = directory / FOLDER / run
    while True:
        newest = _newest(folder)
        if newest is not None and (_alive(folder / f"{newest}.json") or _beats(folder / f"{newest}.json")):
            return None
        path = folder / f"{(newest or 0) + 1}.json"
        with writing(path):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8") as file:
                    json.dump(this_process(), file)
                return _RunLock(path)
            except FileExistsError:
                return None
            except FileNotFoundError:  # another process has just released its claim and removed the folder
                continue


def revoke(directory: Path, run: Path, owner: Mapping[str, object]) -> float:
    """Invalidate the claim of a process that is reported dead.

    Args:
        owner: the process, as `this_process` on its machine describes it; claims of other processes are kept.

    Returns:
        Seconds after which the process is certainly dead: a process that is cut off from this machine but not from
        the files finds its claim gone at its next heartbeat, and ends.
    """
    folder = directory / FOLDER / run
    newest = _newest(folder)
    if newest is None or claim_of(folder / f"{newest}.json") != owner:
        return 0.0
    gone = is_gone(owner)
    _RunLock(folder / f"{newest}.json").release()
    return 0.0 if gone else 1.5 * BEAT_S


class _RunLock:
    """This process's claim on a run, a context manager that keeps the claim alive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._beat, name="edgefl beating", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.release()

    def release(self) -> None:
        """Release the lock, so that other processes may take the run."""
        own = int(self._path.stem)
        for number in _numbers(self._path.parent):
            if number <= own:
                with suppress(OSError):  # the claim is gone, or is not a file
                    self._path.with_name(f"{number}.json").unlink()
        folder = self._path.parent
        with suppress(OSError):  # the folder is not empty
            while folder.name != FOLDER:
                folder.rmdir()
                folder = folder.parent
            folder.rmdir()

    def lost(self) -> bool:
        """Return whether another process has taken the run over."""
        return _newest(self._path.parent) != int(self._path.stem)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            with suppress(OSError):
                os.utime(self._path)
            with suppress(EdgeflError):  # unreadable claims prove nothing
                if self.lost() and not self._ended.is_set():
                    print(
                        f"edgefl: error: {self._path}: another process has taken over this run, or the "
                        "study's folder was moved; this process ends",
                        file=sys.stderr,
                        flush=True,
                    )
                    os._exit(TAKEN_OVER)  # the directory now belongs to the other process


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(number[1]) for name in os.listdir(folder) if (number := CLAIM.fullmatch(name))]
    except FileNotFoundError:
        return []
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise EdgeflError(f"{folder}: is not a folder of claims ({why}); delete it") from error


def _newest(folder: Path) -> int | None:
    return max(_numbers(folder), default=None)


def _alive(path: Path) -> bool:
    """Return whether a claim's process seems to be alive; for a process on this machine the answer is certain."""
    try:
        silent_s = time.time() - path.lstat().st_mtime
    except FileNotFoundError:
        return False
    owner = claim_of(path)
    if owner is None:
        return False
    if owner.get("host") == platform.node():
        return same_process(owner)
    return abs(silent_s) < STALE_S


def _beats(path: Path) -> bool:
    """Watch a seemingly abandoned claim for longer than its update interval; return whether the owner updates it."""
    try:
        before = path.lstat().st_mtime_ns
        owner = claim_of(path)
        if owner is None or owner.get("host") == platform.node():
            return False
        until = time.monotonic() + 1.5 * BEAT_S
        while time.monotonic() < until:
            time.sleep(BEAT_S / 10)
            if path.lstat().st_mtime_ns != before:
                return True
    except FileNotFoundError:  # the claim was released
        pass
    return False
