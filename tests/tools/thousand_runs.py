"""Measure the time of `compare` for a thousand runs of a study, including figures; the goal is ten seconds.

python -m tests.tools.thousand_runs
"""

import sys
import tempfile
import time
from pathlib import Path

from edgefl.analysis.commands.line import main
from tests.unit.analysis.conftest import write_study

VARIANTS, SEEDS, TIME_S = 10, 100, 10.0


def measure(folder: Path) -> float:
    """Write the runs, compare them, and return the processor time of the comparison in s."""
    root = write_study(
        folder / "study",
        variants=tuple(f"v{i}" for i in range(VARIANTS)),
        seeds=tuple(range(SEEDS)),
        sessions=4,
        rounds=10,
        reference="v0",
    )
    begin = time.process_time()
    assert main(["compare", str(root)]) == 0
    return time.process_time() - begin


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        took_s = measure(Path(folder))
    print(f"{VARIANTS * SEEDS} runs in {took_s:.1f} s of processor time; the limit is {TIME_S:g} s")
    sys.exit(took_s > TIME_S)
