"""Write the last two lines of a run: its costs and scores, and the command that shows more."""

import shlex
from pathlib import Path

from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, with_unit
from edgefl.commands import watching
from edgefl.run.progress import wall_time
from edgefl.run_directory.reading import about_of

WIDTH = 80  # columns


def closing(path: Path) -> tuple[str, str]:
    """Return a completed run's two closing lines: seconds, joules, scores and epsilon; then the next command."""
    about, runs = about_of(path), [run.look() for run in watching.find(path)]  # one per federation
    clocks = f"{with_unit(about['simulated_s'], TIME_UNITS)} simulated in {wall_time(about['wall_s'])} by the clock"
    energy = with_unit(sum(run.joules for run in runs), ENERGY_UNITS)
    scores = [
        f"{run.label if len(runs) > 1 else run.score} {100 * run.accuracy:.1f} %"
        for run in runs
        if run.accuracy is not None
    ]
    spent = _epsilons(path)
    line = " · ".join([clocks, energy, *scores, *spent])
    if len(line) > WIDTH:
        line = " · ".join([clocks, energy, *spent])
    return line, f"next: edgefl report {shlex.quote(str(path))}"


def _epsilons(path: Path) -> list[str]:
    """Return the largest epsilon of all devices as text; empty if no noise is added."""
    import pandas as pd

    column = "epsilon"
    # most runs have no such column, and their table of devices may be large
    files = [
        file
        for file in (path / "devices.csv", *sorted(path.glob("*/devices.csv")))
        if file.is_file() and column in pd.read_csv(file, nrows=0)
    ]
    spent = pd.Series(
        [pd.read_csv(file, usecols=[column])[column].max() for file in files], dtype=float
    ).max()
    return [f"{column} {spent:.3g}"] if spent == spent else []
