"""The spread over devices in words and rounded numbers."""

import pandas as pd

from edgefl.analysis.tables.runs import named_runs

ROWS = {
    "devices": "devices with test data",
    "mean": "accuracy, mean over devices",
    "by_samples": "mean over test samples",
    "std": "deviation over devices",
    "worst_tenth": "mean of the worst tenth",
    "lowest": "lowest",
    "q10": "a tenth is below",
    "median": "half is below",
    "q90": "nine tenths are below",
    "highest": "highest",
    "gini": "Gini coefficient",
    "gap_cells": "between best and worst cell",
    "gap_classes": "between best and worst class",
}
EXPLANATIONS = (
    "Scores are of the last round in which they were written down (learning.scores_every), on each device's own test"
    " data; own: with the device's own model, where it keeps one.",
    "Figure: the share of the devices whose accuracy is at most that of the line; means of quantiles over seeds.",
)


def headline(by_run: pd.DataFrame) -> pd.DataFrame:
    """Write the measures, [quantities x runs]; of many runs, [quantities x variants]."""
    several = by_run["model"].nunique() > 1
    names = by_run["variant"] + (" (" + by_run["model"] + ")" if several else "")
    named = named_runs(by_run.assign(variant=names).drop(columns="model"))
    return pd.DataFrame(
        {str(name): [_text(key, row[key]) for key in ROWS] for name, row in named.iterrows()},
        index=list(ROWS.values()),
    )


def _text(key: str, value: float) -> str:
    if pd.isna(value):
        return "—"
    return f"{value:.0f}" if key == "devices" else f"{value:.3f}" if key == "gini" else f"{100 * value:.1f} %"
