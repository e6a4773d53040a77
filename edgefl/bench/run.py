"""Where the wall time of a run goes, by room: engine, radio, drawing, training, evaluation, writing.

A thread looks at the main thread's stack every few milliseconds. The run is not slowed down as by a tracing
profiler, which would charge many small calls for more than they cost.
"""

import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from edgefl.scenario import Scenario

PERIOD_S = 0.002
# module -> room, the innermost frame that has one decides; a longer name is asked first
ROOMS = {
    "channel.fading": "drawing",
    "channel": "radio",
    "edgefl.engine.radio": "radio",
    "edgefl.engine.band": "radio",
    "edgefl.engine.gains": "radio",
    "edgefl.engine": "engine",
    "simpy": "engine",
    "edgefl.mobility": "engine",
    "edgefl.learning.evaluation": "evaluation",
    "edgefl.learning": "training",
    "edgefl.results": "writing",
    "edgefl.journal": "writing",
    "edgefl.snapshot": "writing",
}
NAMES = ("training", "evaluation", "engine", "radio", "drawing", "writing", "start and end")


class Sampler:
    """A context manager that samples in which room the thread that enters it is."""

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self.counts: Counter[str] = Counter()
        self._period_s = period_s
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._stop.set()
        self._thread.join()

    def shares(self) -> dict[str, float]:
        """Return each room's share of the samples, in the order of NAMES."""
        total = max(1, self.counts.total())
        return {name: self.counts[name] / total for name in NAMES}

    def _watch(self) -> None:
        while not self._stop.wait(self._period_s):
            self.counts[room_of(sys._current_frames().get(self._watched))] += 1


def room_of(frame: FrameType | None) -> str:
    """Return the room of a stack: that of its innermost frame that has one; "start and end" outside the clock."""
    names = []
    while frame is not None:
        names.append(frame.f_globals.get("__name__", ""))
        frame = frame.f_back
    if not any(name == "simpy.core" for name in names):
        return NAMES[-1]  # the clock does not run: modules are loaded, data read, tables closed
    for name in names:
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            if room := ROOMS.get(".".join(parts[:length])):
                return room
    return "engine"


def run(scenario: Scenario, *, device: str = "auto", threads: int | None = None) -> dict[str, Any]:
    """Run a scenario once into a temporary directory, and measure where its wall time goes.

    Returns:
        `wall_s`, `rounds`, `shares` (room -> share of the wall time, sum 1) and `other`: the share of what
        is neither training nor evaluation in the time while the clock runs.
    """
    from edgefl.simulation import simulate

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
