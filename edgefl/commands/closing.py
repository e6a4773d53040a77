"""The last two lines of a run: what it took and reached, and the command that shows more."""

import shlex
from pathlib import Path

from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, with_unit
from edgefl.commands import watching
from edgefl.run.progress import wall_time
from edgefl.run_directory.reading import about_of

WIDTH = 80  # columns


def closing(path: Path) -> tuple[str, str]:
    """Return both lines of a completed run: seconds, simulated and of the clock, joules, scores; the next command."""
    about, runs = about_of(path), [run.look() for run in watching.find(path)]  # one per federation
    clocks = f"{with_unit(about['simulated_s'], TIME_UNITS)} simulated in {wall_time(about['wall_s'])} by the clock"
    energy = with_unit(sum(run.joules for run in runs), ENERGY_UNITS)
    scores = [
        f"{run.label if len(runs) > 1 else run.score} {100 * run.accuracy:.1f} %"
        for run in runs
        if run.accuracy is not None
    ]
    line = " · ".join([clocks, energy, *scores])
    if len(line) > WIDTH:
        line = " · ".join([clocks, energy])
    return line, f"next: edgefl report {shlex.quote(str(path))}"
