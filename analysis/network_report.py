"""The report on the network: its key figures, and its course over simulated time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.figures.column import save
from analysis.figures.network import MOST_SERIES, network_figure
from analysis.load import Paths, Runs, load_runs
from analysis.network import handover_figures, over_time
from analysis.writing import writing_to


@dataclass(frozen=True)
class NetworkReport:
    """What the network did.

    Attributes:
        figures: of `network.handover_figures`, a row per run.
        course: of `network.over_time`, a row per run and period.
        figure: the PNG; a PDF lies beside it. None: no run has a round, and nobody moved.
        notes: what a reader has to know, one sentence each.
    """

    figures: pd.DataFrame = field(repr=False)
    course: pd.DataFrame = field(repr=False)
    figure: Path | None
    notes: Sequence[str]


def report_network(runs: Paths | Runs, *, out: str | Path | None = None) -> NetworkReport:
    """Measure the network of all runs, and write network.csv, network_course.csv, network.png and .pdf.

    Raises:
        ValueError: no completed run, or a folder that cannot be written.
    """
    runs = runs if isinstance(runs, Runs) else load_runs(runs)
    figures, course = handover_figures(runs), over_time(runs)
    notes = [*runs.left_out, *runs.remarks, *runs.notes]
    variants = course["variant"].nunique()
    if variants > MOST_SERIES:
        notes.append(f"the figure shows the first {MOST_SERIES} of {variants} variants")
    folder = runs.folder(out)
    drawn = network_figure(course)
    with writing_to(folder):
        figures.to_csv(folder / "network.csv", index=False)
        course.to_csv(folder / "network_course.csv", index=False)
        if drawn is not None:
            save(drawn, folder / "network.png")
    return NetworkReport(figures, course, folder / "network.png" if drawn is not None else None, notes)
