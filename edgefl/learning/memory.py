"""Refuse a run if a lower bound of the memory that it needs exceeds the available memory."""

import ctypes
import math
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from edgefl.errors import EdgeflError

# parameters of glibc's mallopt: how much freed memory is kept, and the size from which freed memory is returned
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_REUSED, KEPT_FREE = 2**26, 2**27
MUCH = 100_000_000  # bytes; smaller needs are not checked, since merely starting the program takes as much


@dataclass(frozen=True)
class Need:
    """A need for memory, with a lower bound in bytes, the key that determines the bound, and the purpose in words."""

    place: tuple[str, ...]
    size: float  # lower bound in bytes
    what: str


def require(needs: Sequence[Need], available: float | None = None) -> None:
    """Check that the memory for all needs is available; the error names the largest need.

    Args:
        available: available memory in bytes; None: this machine's memory, looked up only if the needs are large.

    Raises:
        EdgeflError: there is too little memory; the error names the largest need, its purpose, and the available
        memory.
    """
    total = sum(need.size for need in needs)
    if available is None:
        available = available_bytes() if total > MUCH else math.inf
    if total <= available:
        return
    largest = max(needs, key=lambda need: need.size)
    raise EdgeflError(
        f"needs at least {_gb(total)} of memory, {_gb(largest.size)} of it for {largest.what};"
        f" {_gb(available)} are available here",
        largest.place,
    )


def available_bytes(root: Path = Path("/")) -> float:
    """Return the bytes of memory that this process may still allocate, including swap; inf if unknown.

    Args:
        root: folder that contains /proc and /sys.
    """
    kilobytes = {}
    for line in _lines(root / "proc/meminfo"):
        name, _, value = line.partition(":")
        kilobytes[name] = int(value.split()[0])
    swap = 1024.0 * kilobytes.get("SwapFree", 0)
    limits = [limit + swap for limit in _group_limits(root)]
    if "MemAvailable" in kilobytes:
        limits.append(1024.0 * kilobytes["MemAvailable"] + swap)
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=math.inf)


def held_bytes() -> float:
    """Return the bytes of memory that this process uses now; NaN if unknown."""
    return _of_status("VmRSS")


def peak_bytes() -> float:
    """Return the peak memory of this process in bytes.

    On Linux, getrusage includes the memory of the parent process, so it is used only without /proc.
    """
    peak = _of_status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0 if math.isnan(peak) else peak


def _of_status(wanted: str) -> float:
    for line in _lines(Path("/proc/self/status")):
        name, _, value = line.partition(":")
        if name == wanted:
            return 1024.0 * int(value.split()[0])
    return math.nan


@cache
def reuse_freed() -> bool:
    """Make the C library reuse freed memory instead of returning it to the system and requesting new pages.

    Convolutions allocate tens of megabytes in each step; with new pages, a fifth of the time of convolutions went
    into filling these pages with zeros. The process keeps up to KEPT_FREE more memory than it needs.

    Returns:
        Whether the C library supports reuse: glibc, the library of all major Linux distributions, does.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library or operating system lacks mallopt
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_REUSED) and mallopt(M_TRIM_THRESHOLD, KEPT_FREE))


def _group_limits(root: Path) -> list[float]:
    """Return the memory limits, in bytes, of this process's control groups (version 1 or 2)."""
    limits = []
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, group = line.split(":", 2)
        if number == "0":
            folder, file = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            folder, file = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        inner = folder / group.lstrip("/")
        # in a container, the path may be the group's path on the host; then only the mount point exists
        for place in (inner, *inner.parents):
            for text in _lines(place / file) if place.is_relative_to(folder) else ():
                limits += [float(text)] if text.isdecimal() else []  # `max` means that there is no limit
    return limits


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # this system lacks the file


def _gb(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e14 else f"{size / 1e12:,.0f} TB"
