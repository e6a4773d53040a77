"""Run edgefl commands in processes of their own that begin at once: forked where PyTorch is loaded already.

Loading takes three seconds of CPU, which tests of killed or stopped processes do not need. All
else is as in a terminal: a process id, signals, an exit code, and a command line that `edgefl.commands.cli` reads.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from edgefl.studies.execution import RUNS, TRAINS

_FORKS = multiprocessing.get_context("forkserver")
# Loaded once, in the process from which commands are forked; nothing is computed there, so no thread runs in it.
# "pytest": what is __main__ here is imported in each process
_FORKS.set_forkserver_preload(["pytest", "edgefl.studies.execution", *RUNS, *TRAINS])


class Command:
    """An edgefl command under way; to be used like a `subprocess.Popen` whose outputs are pipes."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        new_session: bool = False,
    ) -> None:
        """Start it.

        Args:
            folder: where it runs; None: here.
            environment: in place of this process's.
            new_session: whether it leads a group of processes.
        """
        self._scratch = tempfile.TemporaryDirectory()
        self._files = (Path(self._scratch.name, "stdout"), Path(self._scratch.name, "stderr"))
        self._process = _FORKS.Process(
            target=_carry_out,
            args=(list(arguments), folder, dict(environment or os.environ), new_session, self._files),
        )
        self._process.start()
        while new_session and self.poll() is None and os.getpgid(self.pid) != self.pid:
            pass

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal that ended it; None: it is under way."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return `returncode`."""
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Wait until it has ended, and return what it wrote.

        Raises:
            subprocess.TimeoutExpired: it is still under way.
        """
        self._process.join(timeout)
        if self._process.is_alive():
            assert timeout is not None
            raise subprocess.TimeoutExpired("edgefl", timeout)
        written = [file.read_bytes() if file.exists() else b"" for file in self._files]
        return written[0], written[1]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()


def loaded_after(code: str, packages: set[str]) -> set[str]:
    """Return which of these packages a new process has imported after some code, and what edgefl trains with."""
    here, there = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=_say_loaded, args=(code, packages, there))
    process.start()
    there.close()  # so that this process notices when a child dies
    found: set[str] = here.recv()
    process.join()
    return found


def _say_loaded(code: str, packages: set[str], answer: Connection) -> None:
    exec(code, {})
    answer.send(packages & set(sys.modules))


def _carry_out(
    arguments: list[str],
    folder: Path | None,
    environment: dict[str, str],
    new_session: bool,
    files: tuple[Path, Path],
) -> None:
    from edgefl.commands.cli import main

    if new_session:
        os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    if folder is not None:
        os.chdir(folder)
    for descriptor, file in enumerate(files, start=1):
        with file.open("wb") as written:
            os.dup2(written.fileno(), descriptor)
    sys.argv = ["edgefl", *arguments]
    main()
