"""Write the last two lines of a run: its costs and scores, and the command that shows more."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, amount, with_unit
from edgefl.commands import watching
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.progress import Reached, wall_time
from edgefl.run_directory.reading import about_of

WIDTH = 80  # width of a line in columns
SPENT = "epsilon"  # key of run.json


def closing(path: Path) -> tuple[str, str]:
    """Return two closing lines: a completed run's seconds, joules, scores and epsilon, and the next command."""
    about, runs = about_of(path), [run.look() for run in watching.find(path)]  # one entry per federation
    simulated, *scores = _reached(about, runs)
    clocks = f"{simulated} in {wall_time(about['wall_s'])} of wall time"
    energy = with_unit(sum(run.joules for run in runs), ENERGY_UNITS)
    spent = epsilon(path)
    shown = [] if spent is None else [f"{SPENT} {amount(spent)}"]
    lines = (
        " · ".join([clocks, energy, *scores, *shown]),
        " · ".join([simulated, energy, *scores, *shown]),  # a run's scores matter more than its wall time
        " · ".join([clocks, energy, *shown]),
    )
    line = next((one for one in lines if len(one) <= WIDTH), lines[-1])
    one = path / next(iter(about.get("federations") or {}), "")  # a report is about one federation
    return line, f"next: edgefl report {shlex.quote(str(one))}"


def of_study(report: Round | Path) -> Round | Reached:
    """Return a run's report for a study's progress display: a finished round, or the completed run's scores."""
    return report if isinstance(report, Round) else partial(_reached_in, report)


def _reached_in(path: Path) -> Sequence[str]:
    try:
        return _reached(about_of(path), [run.look() for run in watching.find(path)])
    except EdgeflError as error:  # show the error, and let the study continue
        return [str(error)]


def _reached(about: Mapping[str, Any], runs: Sequence[watching.Standing]) -> list[str]:
    """Return a completed run's simulated time, and each federation's score, averaged over cells."""
    return [
        f"{with_unit(about['simulated_s'], TIME_UNITS)} simulated",
        *(
            f"{run.label if len(runs) > 1 else run.score} {100 * run.accuracy:.1f} %"
            for run in runs
            if run.accuracy is not None
        ),
    ]


def epsilon(path: Path) -> float | None:
    """Return the largest epsilon spent by any device of a completed run; None if no noise is added."""
    about = about_of(path)
    spent = [one[SPENT] for one in (about, *(about.get("federations") or {}).values()) if SPENT in one]
    return max(spent, default=None)
