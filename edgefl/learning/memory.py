"""Memory that is needed for certain, and how much there is; more than that is refused with the estimate."""

import ctypes
import math
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from edgefl.errors import EdgeflError

# glibc's malloc.h: from which size on memory is not kept, and how much of it is
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_REUSED, KEPT_FREE = 2**26, 2**27
MUCH = 100_000_000  # bytes; less is there, or the program would not have started


@dataclass(frozen=True)
class Need:
    """Memory that is needed for certain, the setting that makes it large, and what it is for."""

    place: tuple[str, ...]
    size: float  # bytes
    what: str


def require(needs: Sequence[Need], available: float | None = None) -> None:
    """Refuse needs that together exceed what is available; the message is about the largest.

    Args:
        available: bytes; None: of this machine, asked only where much is needed.

    Raises:
        EdgeflError: says how much is needed, for what, and how much there is.
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
    """Return the memory that this process may still take, swap included; infinite where nobody says.

    Args:
        root: where /proc and /sys are.
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


def held_bytes(root: Path = Path("/")) -> float:
    """Return the memory that this process holds now, in bytes; NaN if the system does not tell."""
    return _of_status("VmRSS", root)


def peak_bytes(root: Path = Path("/")) -> float:
    """Return the most memory that this process has held.

    Linux's getrusage would count what the process held that has begun this one: it is asked where /proc is missing.
    """
    peak = _of_status("VmHWM", root)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0 if math.isnan(peak) else peak


def _of_status(wanted: str, root: Path) -> float:
    for line in _lines(root / "proc/self/status"):
        name, _, value = line.partition(":")
        if name == wanted:
            return 1024.0 * int(value.split()[0])
    return math.nan


@cache
def reuse_freed() -> bool:
    """Let the C library hand out again what is freed, in place of giving it back and asking for fresh pages.

    What convolutions make of a batch is tens of megabytes, at each step anew: a fifth of their time went into pages
    that the system had to fill with zeros. The process keeps up to KEPT_FREE more memory than it needs.

    Returns:
        Whether the library does so: glibc, which all larger distributions of Linux have.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another library, another system
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_REUSED) and mallopt(M_TRIM_THRESHOLD, KEPT_FREE))


def _group_limits(root: Path) -> list[float]:
    """Return the limits in bytes of the control groups, of either version, that this process belongs to."""
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
        # in a container the group may be named as seen from outside: then only the mount itself is there
        for place in (inner, *inner.parents):
            for text in _lines(place / file) if place.is_relative_to(folder) else ():
                limits += [float(text)] if text.isdecimal() else []  # else `max`
    return limits


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # not on this system


def _gb(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e14 else f"{size / 1e12:,.0f} TB"
