"""Work on tasks in several processes, which exit when the process that started them does.

Each worker keeps one end of a pipe open. On every system, a pipe closes when the process at its other end ends in any
way. A worker whose pipe closes interrupts its own work (SIGTERM), and exits at most GRACE_S later.
"""

import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, TypeVar

from edgefl.config import outside
from edgefl.errors import EdgeflError
from edgefl.run_directory.interruption import Interrupted

# An interrupted run ends in moments. A worker that takes longer hangs; once it is killed, its run can be resumed.
GRACE_S = 10.0
LOOK_AGAIN_S = 0.5  # seconds between two checks of other processes' work
# Workers are not forked from this process, where PyTorch may have threads whose state a child would inherit, but
# from a server process that loads modules once for all workers and computes nothing. Only on Linux do all libraries
# support this.
_FORKS = multiprocessing.get_context("forkserver") if sys.platform == "linux" else None

T = TypeVar("T")
Made = TypeVar("Made", covariant=True)
# A worker's work: a task, and a function that sends a report to the process that started the worker.
Work = Callable[[T, Callable[[Any], None]], None]


@dataclass(frozen=True)
class Failure:
    """The reason why a task failed.

    trace: traceback of the failure; empty if the failure is a user's error, including one in the user's own code.
    """

    error: str
    trace: str = ""

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """Return a caught error as a `Failure`."""
        if isinstance(error, EdgeflError):
            return cls(str(error))
        if (where := outside.blame(error)) and not os.environ.get("EDGEFL_TRACEBACK"):
            return cls(f"{where}; EDGEFL_TRACEBACK=1 shows the traceback")
        return cls(
            f"{type(error).__name__}: {error}".removesuffix(": "), "".join(traceback.format_exception(error))
        )


@dataclass
class _Worker(Generic[T]):
    process: BaseProcess
    pipe: Connection
    task: T | None = None


class Supply(Protocol[Made]):
    """A source of tasks."""

    def take(self) -> Made | None:
        """Return a task to start now, or None if no task is ready."""

    def waits(self) -> bool:
        """Return whether a task may be added later, even if no task is running in this process."""


class InOrder(Generic[T]):
    """A supply that returns a list of tasks, in order."""

    def __init__(self, tasks: Sequence[T]) -> None:
        self._tasks = deque(tasks)

    def take(self) -> T | None:
        """Return the list's next task, or None at its end."""
        return self._tasks.popleft() if self._tasks else None

    def waits(self) -> bool:
        """Return False, since no task is added later."""
        return False


def side_by_side(
    tasks: Supply[T],
    work: Work[T],
    count: int,
    *,
    reported: Callable[[T, Any], None],
    ended: Callable[[T, Failure | None], None],
    modules: Sequence[str] = (),
) -> None:
    """Work on all tasks in order, at most `count` at a time.

    If a task's process dies, the task fails and other tasks continue. An error raised by `reported` or `ended`, or a
    signal that interrupts this process, ends running tasks as SIGTERM would; waiting tasks are not started.

    Args:
        work: a module-level function, since another process calls it.
        reported: called with a task and each of its reports.
        ended: called once with each task, and with its failure or None.
        modules: names of modules that the work imports; loaded once for all workers if the system supports it.
    """
    if _FORKS is not None:
        _FORKS.set_forkserver_preload(list(modules))
    busy: dict[Connection, _Worker[T]] = {}
    idle: list[_Worker[T]] = []
    try:
        while True:
            while len(busy) < count and (task := tasks.take()) is not None:
                worker = idle.pop() if idle else _start(work)
                worker.task = task
                busy[worker.pipe] = worker
                with suppress(BrokenPipeError):  # the worker died while idle, which the pipe shows below
                    worker.pipe.send(task)
            if not busy and not tasks.waits():
                return
            for ready in wait(list(busy), LOOK_AGAIN_S if tasks.waits() else None):
                assert isinstance(ready, Connection)
                worker = busy[ready]
                assert worker.task is not None
                try:
                    over, message = ready.recv()
                except (EOFError, OSError):
                    del busy[ready]
                    ended(worker.task, Failure(_death(worker)))
                    continue
                if not over:
                    reported(worker.task, message)
                    continue
                idle.append(busy.pop(ready))
                ended(worker.task, message)
    finally:
        _end([*idle, *busy.values()])


def _start(work: Work[T]) -> _Worker[T]:
    ours, theirs = multiprocessing.Pipe()
    start = (_FORKS or multiprocessing.get_context("spawn")).Process
    process = start(target=_serve, args=(theirs, work, dict(os.environ)))
    with _without_script(), _without_interrupts():
        process.start()
    theirs.close()  # if another process held that end open, the worker's death would go unnoticed
    return _Worker(process, ours)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C, which reaches all processes of a terminal, in processes that start and cannot handle it yet."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_script() -> Iterator[None]:
    """Hide the calling script's file from new workers, which do not need it and would run its study again."""
    main: dict[str, Any] = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        main.update(hidden)


def _end(workers: Sequence[_Worker[Any]]) -> None:
    for worker in workers:
        worker.pipe.close()
    deadline = time.monotonic() + GRACE_S + 5.0
    for worker in workers:
        worker.process.join(max(0.0, deadline - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()


def _death(worker: _Worker[Any]) -> str:
    worker.process.join(GRACE_S)
    code = worker.process.exitcode
    worker.pipe.close()
    if code == -getattr(signal, "SIGKILL", 9):
        return "its process was killed, possibly for lack of memory"
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return f"its process ended {how}"


# -- in the worker --------------------------------------------------------------------------------------


def _serve(pipe: Connection, work: Work[T], environment: dict[str, str]) -> None:
    # copy the environment of the calling process, which may have changed since the first task
    os.environ.clear()
    os.environ.update(environment)
    # Ctrl-C reaches all processes of a terminal, but only the starting process decides whether and when they end
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    tasks: queue.SimpleQueue[T] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks), name="edgefl listening", daemon=True).start()
    while True:
        task = tasks.get()
        try:
            work(task, lambda report: _tell(pipe, False, report))
            failure = None
        except Interrupted as error:
            raise SystemExit(error.exit_code) from None
        except Exception as error:
            failure = Failure.of(error)
        _tell(pipe, True, failure)


def _listen(pipe: Connection, tasks: "queue.SimpleQueue[Any]") -> None:
    """Receive tasks until the pipe closes, then end this process."""
    while True:
        try:
            tasks.put(pipe.recv())
        except (EOFError, OSError):
            break
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        # signal the main thread, since only it handles signals, and a signal to another thread would not wake it
        signal.pthread_kill(main, signal.SIGTERM)
    else:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(128 + signal.SIGTERM)


def _tell(pipe: Connection, over: bool, message: Any) -> None:
    try:
        pipe.send((over, message))
    except OSError:  # the other process has ended, and the listening thread is about to end this process
        while True:
            time.sleep(0.01)  # sleep briefly, since a signal just before a sleep is handled after it
