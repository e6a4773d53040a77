"""Call the command line in this process, under a limit of processor time."""

import contextlib
import faulthandler
import io
import os
import signal
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

LONGEST_WALL_S = 120  # ends the whole process if a call hangs in compiled code, which handles no signals


class Hang(BaseException):
    """The error of a call that has used up its processor time."""


@dataclass(frozen=True)
class CallResult:
    """The exit code and output of a call; crash: the traceback that a user would see."""

    code: int
    out: str
    err: str
    crash: str = ""
    warned: tuple[str, ...] = ()


def call(arguments: Sequence[str], folder: Path, cpu_s: float) -> CallResult:
    """Call `edgefl` with these arguments in a folder."""
    from edgefl.commands.cli import main

    out, err, crash, code = io.StringIO(), io.StringIO(), "", 0
    with (
        _in_folder(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as warned,
        _limited(cpu_s),
    ):
        warnings.simplefilter("always", RuntimeWarning)
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except Hang:
            crash = "Hang: " + "".join(traceback.format_exc().splitlines(keepends=True)[-7:])
        except BaseException:
            crash = traceback.format_exc()
    texts = [str(each.message) for each in warned if issubclass(each.category, RuntimeWarning)]
    return CallResult(code, out.getvalue(), err.getvalue(), crash, tuple(texts))


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _limited(cpu_s: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    faulthandler.dump_traceback_later(LONGEST_WALL_S, exit=True, file=2)  # the process's standard error
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, before)
