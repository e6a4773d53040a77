"""Run pytest in children forked from a process with all code loaded, so that each starts in a tenth of a second."""

import contextlib
import importlib
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# exit codes of pytest (INTERRUPTED: tests cannot be collected), and of a child that exceeds its limit
PASSED, FAILED, INTERRUPTED, SLOW = 0, 1, 2, 124
IDLE = 10  # a child's longest wall time, relative to its limit of CPU time
OPTIONS = ("-n", "0", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--no-header", "--tb=line")


def warm(packages: Sequence[str] = ("edgefl",)) -> None:
    """Load all modules of the project, except modules whose optional packages are not installed."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import hypothesis  # noqa: F401

    for package in packages:
        found = importlib.import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            if "edgefl.flower" in module.name or module.name.endswith("__main__"):
                continue
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def run_pytest(
    nodes: Sequence[str],
    before: Callable[[pytest.MonkeyPatch], None] | None = None,
    *,
    limit_s: float = 120.0,
) -> tuple[int, str, float]:
    """Run pytest in a forked child.

    Args:
        nodes: files or node ids.
        before: a function that changes the child's code before the tests.
        limit_s: limit of CPU time, which other load does not affect; then the child is killed.

    Returns:
        pytest's exit code or SLOW, its output, and the CPU time of pytest and its children in s.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as written:
        child = os.fork()
        if child == 0:
            _be_child(nodes, before, written.fileno(), limit_s)
        status, cpu_s = _wait(child, began + IDLE * limit_s)
        written.seek(0)
        text = written.read()
    code = SLOW if status is None else os.waitstatus_to_exitcode(status)
    return (SLOW if code == -signal.SIGXCPU else code), text, cpu_s


def _be_child(
    nodes: Sequence[str], before: Callable[[pytest.MonkeyPatch], None] | None, output: int, limit_s: float
) -> None:
    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s) + 5))
        os.dup2(output, 1)
        os.dup2(output, 2)
        with pytest.MonkeyPatch.context() as monkeypatch:
            if before is not None:
                before(monkeypatch)
            code = int(pytest.main([*OPTIONS, *nodes]))
        sys.stdout.flush()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(code)


def _wait(child: int, until: float) -> tuple[int | None, float]:
    """Wait for a child, and kill its process group at the time limit; return status (None if killed) and CPU time."""
    while time.monotonic() < until:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            return status, used.ru_utime + used.ru_stime
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, _, used = os.wait4(child, 0)
    return None, used.ru_utime + used.ru_stime
