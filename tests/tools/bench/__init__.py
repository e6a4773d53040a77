"""Measure speed relative to named rivals in the same run."""

import sys
import time
from collections.abc import Callable, Mapping
from statistics import median

from edgefl.learning.memory import peak_bytes


def say(what: str) -> None:
    """Report progress on standard error: some measurements take minutes."""
    print(f"  {what}", file=sys.stderr, flush=True)


def interleaved(jobs: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Measure the median rate of each job over interleaved repeats (A B C A B C ...), after one warm-up each.

    Args:
        jobs: name -> function that works and returns the amount of work done.
        repeats: measured runs of each job.

    Returns:
        name -> work per second.
    """
    rates: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(repeats + 1):
        for name, job in jobs.items():
            say(f"{name}: {f'repeat {number} of {repeats}' if number else 'warm-up'}")
            began = time.perf_counter()
            work = job()
            if number:
                rates[name].append(work / (time.perf_counter() - began))
    return {name: median(job_rates) for name, job_rates in rates.items()}


def median_s(
    job: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the median duration of a job in s by a clock, after one warm-up."""
    job()
    taken_s = []
    for _ in range(repeats):
        began_s = clock()
        job()
        taken_s.append(clock() - began_s)
    return median(taken_s)


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process so far, MB."""
    return peak_bytes() / 1024**2
