"""Functions in C, compiled for this machine: once, and kept in the user's cache."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

from edgefl.errors import EdgeflError, clipped
from edgefl.learning.user_cache import user_cache

COMPILERS = ("cc", "gcc", "clang")
NATIVE = "-mcpu=native" if platform.machine().lower() in ("arm64", "aarch64") else "-march=native"
# products and sums are fused by every compiler or by none: their results are then the same
OPTIONS = ("-O3", NATIVE, "-ffp-contract=fast", "-std=gnu11", "-fPIC", "-shared")
OF_PROCESSOR = ("model name", "flags", "CPU part", "Features")  # lines of /proc/cpuinfo


def compiler() -> list[str] | None:
    """Return the command of the C compiler: the variable CC, or what is installed; None: there is none."""
    named = shlex.split(os.environ.get("CC", ""))
    there = [named] if named else [[name] for name in COMPILERS]
    return next((words for words in there if shutil.which(words[0])), None)


def version() -> str:
    """Return what the compiler says that it is; empty: there is none, or it does not say."""
    words = compiler()
    return "" if words is None else _version(tuple(words))


def load(source: Path) -> ctypes.CDLL:
    """Load the functions of a file in C; compiling them takes a second.

    Where the cache cannot be written, each process does so again.

    Raises:
        EdgeflError: there is no C compiler, or it fails; how the user can do without is for the caller to say.
    """
    words = compiler()
    if words is None:
        named = os.environ.get("CC") or ", ".join(COMPILERS)
        raise EdgeflError(
            f"there is no C compiler ({named}): install one (apt-get install gcc), or name it in the variable CC"
        )
    command = [*words, *OPTIONS, *shlex.split(os.environ.get("CFLAGS", ""))]
    kept = user_cache() / "compiled" / f"{source.stem.strip('_')}-{_digest(source, command)}.so"
    with suppress(OSError):  # it is not there, or of no use
        return ctypes.CDLL(str(kept))
    with tempfile.TemporaryDirectory(prefix="edgefl-") as folder:
        made = Path(folder) / kept.name
        found = subprocess.run([*command, str(source), "-o", str(made)], capture_output=True, text=True)
        if found.returncode:
            told = clipped(found.stderr.strip(), 300)
            raise EdgeflError(
                f"{shlex.join(command)} fails ({told}): name another compiler in the variable CC"
            )
        _keep(made, kept)
        try:
            return ctypes.CDLL(str(made))
        except OSError as error:
            raise EdgeflError(
                f"what was compiled cannot be loaded ({error}): name a folder for programs in the variable TMPDIR"
            ) from error


def _keep(made: Path, kept: Path) -> None:
    """Put what was made into the cache, whole or not at all; several processes, on several machines, may do so."""
    draft = kept.with_name(f".{kept.name}.{uuid4().hex}.part")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, draft)
        draft.replace(kept)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _digest(source: Path, command: list[str]) -> str:
    """Name what a compilation depends on: a home may be shared by machines with different processors."""
    content = hashlib.sha256(source.read_bytes())
    for part in (*command, str(shutil.which(command[0])), version(), *_processor()):
        content.update(b"\0" + part.encode())
    return content.hexdigest()[:20]


@cache
def _version(command: tuple[str, ...]) -> str:
    try:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.partition("\n")[0].strip()


def _processor() -> list[str]:
    """Describe the processor; where the system does not, name the machine."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = [line.strip() for line in iter(file.readline, "\n") if line]
    except OSError:
        first = []
    return [line for line in first if line.startswith(OF_PROCESSOR)] or [
        platform.processor(),
        platform.node(),
    ]
