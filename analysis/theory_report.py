"""The report on theory: the bound of J's Theorem 1 along runs, as tables and one figure."""

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.figures.column import save
from analysis.figures.theory import MOST_PANELS, theory_figure
from analysis.load import Paths, Runs, load_runs
from analysis.metrics import training_rounds
from analysis.theory import along
from analysis.writing import writing_to


@dataclass(frozen=True)
class TheoryReport:
    """The bound along every run.

    Attributes:
        by_round: of `theory.along`, a row per measured round.
        by_run: the constants, and means over rounds.
        figure: the PNG; a PDF lies beside it.
        out: the folder of theory.csv and theory_rounds.csv.
        notes: what a reader has to know, one sentence each.
    """

    by_round: pd.DataFrame = field(repr=False)
    by_run: pd.DataFrame = field(repr=False)
    figure: Path
    out: Path
    notes: tuple[str, ...]


def report_theory(runs: Paths | Runs, *, out: str | Path | None = None) -> TheoryReport:
    """Compute the bound along all runs, and write theory.csv, theory_rounds.csv, theory.png and .pdf.

    Raises:
        ValueError: no completed run, no run that has measured gradients, or a folder that cannot be written.
    """
    runs = runs if isinstance(runs, Runs) else load_runs(runs)
    by_round, by_run = along(runs)
    lengths = training_rounds(runs.rounds).groupby("session")["round"].max()
    notes = [*runs.left_out, *runs.remarks]
    variants = by_round["variant"].nunique()
    if variants > MOST_PANELS:
        notes.append(f"the figure shows the first {MOST_PANELS} of {variants} variants")
    folder = runs.folder(out)
    with writing_to(folder):
        by_round.to_csv(folder / "theory_rounds.csv", index=False)
        by_run.to_csv(folder / "theory.csv", index=False)
        save(theory_figure(by_round, lengths), folder / "theory.png")
    return TheoryReport(by_round, by_run, folder / "theory.png", folder, tuple(notes))
