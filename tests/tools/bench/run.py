"""Split the wall time of a run into parts: engine, radio, drawing fading, training, evaluation, writing.

A timer interrupts the main thread every two milliseconds and samples its stack. A tracing profiler would slow the
run down and overstate many small calls. A sampling thread would see mostly the moments in which the main thread
releases the interpreter's lock, such as writing.
"""

import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from edgefl.scenario.scenario import Scenario

PERIOD_S = 0.002
TESTS = "edgefl.learning.scores."  # learning code that is called from here counts as evaluation
# module -> part of the program; the innermost frame with a known module counts, and longer names take precedence
ROOMS = {
    "edgefl.channel.fading": "drawing",
    "edgefl.channel": "radio",
    "edgefl.engine.air.radio": "radio",
    "edgefl.engine.air.radio_round": "radio",
    "edgefl.engine.air.many_transfers": "radio",
    "edgefl.engine.air.band": "radio",
    "edgefl.engine.air.gains": "radio",
    "edgefl.engine": "engine",
    "simpy": "engine",
    "edgefl.mobility": "engine",
    "edgefl.learning": "training",
    "edgefl.run_directory": "writing",
}
NAMES = ("training", "evaluation", "engine", "radio", "drawing", "writing", "start and end")


class Sampler:
    """A context manager that samples which part of the program the main thread is in."""

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self.counts: Counter[str] = Counter()
        self._period_s = period_s
        self._before: Any = None

    def __enter__(self) -> "Sampler":
        self._before = signal.signal(signal.SIGALRM, self._look)
        signal.setitimer(signal.ITIMER_REAL, self._period_s, self._period_s)
        return self

    def __exit__(self, *args: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def shares(self) -> dict[str, float]:
        """Return each part's share of the samples, in the order of NAMES."""
        total = max(1, self.counts.total())
        return {name: self.counts[name] / total for name in NAMES}

    def _look(self, number: int, frame: FrameType | None) -> None:
        self.counts[room_of(frame)] += 1


def room_of(frame: FrameType | None) -> str:
    """Return the part of the innermost known frame; `evaluation` if a frame tests models; NAMES[-1] outside SimPy."""
    names = []
    while frame is not None:
        names.append(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    if not any(name == "simpy.core" for name in names):
        return NAMES[-1]  # SimPy does not run while modules are loaded, data read, or tables closed
    if any(name.startswith(TESTS) for name in names):
        return "evaluation"
    for name in names:
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            if room := ROOMS.get(".".join(parts[:length])):
                return room
    return "engine"


def run(scenario: Scenario, *, device: str = "auto", threads: int | None = None) -> dict[str, Any]:
    """Run a scenario once into a temporary directory.

    Returns: `wall_s`, `rounds`, `shares` (part -> share of the wall time, sum 1) and `other`: of the time in which
    SimPy runs, the share that is neither training nor evaluation.
    """
    from edgefl.run.api import simulate

    rounds = 0

    def count(_: object) -> None:
        nonlocal rounds
        rounds += 1

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with Sampler() as sampler:
            simulate(scenario, Path(folder) / "run", device=device, threads=threads, on_round=count)
        wall_s = time.perf_counter() - began
    shares = sampler.shares()
    running = 1.0 - shares[NAMES[-1]]
    learning = shares["training"] + shares["evaluation"]
    return {
        "scenario": scenario.name,
        "wall_s": wall_s,
        "rounds": rounds,
        "shares": shares,
        "other": (running - learning) / running if running else 0.0,
    }
