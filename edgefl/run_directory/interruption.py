"""Handle Ctrl-C and termination signals so that the run they end can be resumed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A request to end a run.

    Args:
        signal_: the signal's number.
        path: the run directory, set once its files are consistent.
    """

    def __init__(self, signal_: int = signal.SIGINT, path: Path | None = None) -> None:
        # args must contain signal and path, since pickle rebuilds an exception from its args
        super().__init__(signal_, path)
        self.path = path
        self.exit_code = 128 + signal_

    def __str__(self) -> str:
        name = signal.Signals(self.args[0]).name
        further = f"; continue it with edgefl.resume({str(self.path)!r}), and the run's own learner, if any"
        return f"{name} ended the run{further if self.path else ''}"


class _Holder:
    """Defer a signal while an operation must not be interrupted; a second signal is not deferred."""

    def __init__(self) -> None:
        self.depth = 0
        self.waiting: int | None = None
        self.raised: int | None = None

    def arrived(self, number: int, frame: FrameType | None) -> None:
        if self.depth and self.waiting is None:
            self.waiting = number
            return
        self.raised = number
        raise Interrupted(number)

    def release(self) -> None:
        if self.waiting is not None and not self.depth:
            self.raised, self.waiting = self.waiting, None
            raise Interrupted(self.raised)


_holder = _Holder()


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGINT, SIGTERM and SIGHUP raise `Interrupted`; signals that the caller ignores stay ignored.

    Only the main thread handles signals; in other threads nothing changes.
    """
    before = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) in (signal.SIG_IGN, None):
            continue  # nohup and background jobs ignore the signal
        try:
            before[number] = signal.signal(number, interrupt)
        except ValueError:
            break
    _holder.waiting = _holder.raised = None
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _holder.raised = None


def interrupt(number: int, frame: FrameType | None = None) -> None:
    """Raise `Interrupted` for a signal, once no code inside `held` is running.

    Raises:
        Interrupted: immediately, unless code inside `held` is still running.
    """
    _holder.arrived(number, frame)


def insist() -> None:
    """Raise an interruption again that own code has caught, since this code may have returned another result.

    Raises:
        Interrupted: a signal has been raised as an exception since `interruptible` began.
    """
    if _holder.raised is not None:
        raise Interrupted(_holder.raised)


@contextmanager
def held() -> Iterator[None]:
    """Defer an interruption until the `with` block is done; a second interruption is not deferred."""
    _holder.depth += 1
    try:
        yield
    finally:
        _holder.depth -= 1
    _holder.release()
