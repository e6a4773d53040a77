"""The report on costs: where joules and seconds went, and what adaptation costs beyond training."""

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.breakdown import breakdown
from analysis.costs import cost_analysis
from analysis.load import Paths, Runs, load_runs
from analysis.scope import variants_of
from analysis.tables.costs import latex, markdown, tables
from analysis.writing import writing_to

EXPLANATIONS = (
    "Means over seeds, ± standard deviation. Energy: of all devices; wasted: on updates that were not aggregated.",
    "Time of a participation: of completed ones in training rounds; waiting: queued between the steps. The slowest"
    " device's steps add up to the latency of a synchronous round.",
    "Stages (J, section V): pilot sessions; gradient, the V probe rounds of each later session; training. A"
    " broadcast is"
    " a round; uploads are those that arrived. Models kept: in all cells alike, each of the size of a transfer.",
)


@dataclass(frozen=True)
class CostReport:
    """Costs of every variant.

    Attributes:
        breakdown: of `breakdown.breakdown`, a row per run.
        costs: of `costs.cost_analysis`, a row per run and stage.
        tables: title -> [quantities x variants], text.
        explanations: how to read them, one sentence each.
        out: the folder of costs.md, .tex, .csv and costs_stages.csv.
    """

    breakdown: pd.DataFrame = field(repr=False)
    costs: pd.DataFrame = field(repr=False)
    tables: dict[str, pd.DataFrame] = field(repr=False)
    explanations: tuple[str, ...]
    out: Path


def report_costs(runs: Paths | Runs, *, out: str | Path | None = None) -> CostReport:
    """Measure the costs of all runs, and write costs.csv, costs_stages.csv, costs.md and costs.tex.

    Raises:
        ValueError: no completed run, or a folder that cannot be written.
    """
    runs = runs if isinstance(runs, Runs) else load_runs(runs)
    of_runs, stages = breakdown(runs), cost_analysis(runs)
    variants = variants_of(runs.info, None)
    found = tables(of_runs, stages, variants)
    notes = [*runs.left_out, *runs.remarks, *runs.notes]
    explanations = (*EXPLANATIONS, *(f"Note: {note}." for note in notes))
    folder = runs.folder(out)
    with writing_to(folder):
        of_runs.to_csv(folder / "costs.csv", index=False)
        stages.to_csv(folder / "costs_stages.csv", index=False)
        (folder / "costs.md").write_text(markdown(found, explanations), encoding="utf-8")
        (folder / "costs.tex").write_text(latex(found), encoding="utf-8")
    return CostReport(of_runs, stages, found, explanations, folder)
