"""Run edgefl commands in processes that start at once, forked from a process with PyTorch loaded.

Loading takes three seconds of CPU time, which tests of killed or stopped processes save. Otherwise the processes
are as in a terminal: they have an id, signals, an exit code, and a command line that `edgefl.commands.cli` reads.
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
# The process from which commands are forked loads these once. This process computes nothing, so it has no threads.
# "pytest" is the __main__ of this process, which each forked process imports.
_FORKS.set_forkserver_preload(["pytest", "edgefl.studies.execution", *RUNS, *TRAINS])


class Command:
    """A running edgefl command, with the interface of a `subprocess.Popen` whose outputs are pipes."""

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
            folder: working directory, by default this one.
            environment: variables that replace those of this process.
            new_session: whether the command leads a new process group.
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
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, the negative number of the signal that ended the process, or None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return `returncode`."""
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Wait until the command has ended, and return its output.

        Raises:
            subprocess.TimeoutExpired: the command still runs.
        """
        self._process.join(timeout)
        if self._process.is_alive():
            assert timeout is not None
            raise subprocess.TimeoutExpired("edgefl", timeout)
        written = [file.read_bytes() if file.exists() else b"" for file in self._files]
        return written[0], written[1]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()


def loaded_after(code: str, packages: set[str]) -> set[str]:
    """Return which of these packages a new process has imported after some code; training packages are preloaded."""
    here, there = _FORKS.Pipe(duplex=False)
    process = _FORKS.Process(target=_say_loaded, args=(code, packages, there))
    process.start()
    there.close()  # without this, the process would not notice that a child died
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
