"""How evenly a model serves its devices: quantiles of scores, the worst tenth, gaps between cells and classes."""

from pathlib import Path

import numpy as np
import pandas as pd

from edgefl.analysis import tables
from edgefl.analysis.figures.fairness import fairness_figure
from edgefl.analysis.load import Paths, Runs
from edgefl.analysis.metrics import RUN
from edgefl.analysis.report import Report, noted

QUANTILES = {"lowest": 0.0, "q10": 0.1, "median": 0.5, "q90": 0.9, "highest": 1.0}
MODELS = {"accuracy": "served", "accuracy_personal": "own"}  # column -> whose model it is of
WORST = 0.1  # share of the devices


def report_fairness(runs: Paths | Runs, *, out: str | Path | None = None) -> Report:
    """Compare devices' scores, and write fairness.csv, fairness_devices.csv, fairness.png and .pdf.

    Raises:
        ValueError: no completed run, no run that has written down devices' scores, or a folder that cannot be
            written.
    """
    runs = Runs.of(runs)
    by_device = last_scores(runs)
    by_run = measures(by_device)
    return Report(
        runs.folder(out),
        tables=[("", tables.fairness.headline(by_run))],
        sentences=[*tables.fairness.EXPLANATIONS, *noted([*runs.left_out, *runs.remarks])],
        look=[("Device by device", "fairness_devices.csv"), ("Figure", "fairness.png", " and .pdf")],
        numbers={"fairness_devices.csv": by_device, "fairness.csv": by_run},
        figures={"fairness": fairness_figure(by_device)},
        score=runs.score,
    ).write()


def last_scores(runs: Runs) -> pd.DataFrame:
    """Return each device's scores in the last round of each run and cell in which they were written down.

    Returns:
        variant, seed, cell, device, class (empty without classes), model (`served`, or `own`), samples, accuracy. A
        device without test data, or without a model of its own, has no row; one that has scores in several cells
        counts where it was last.
    """
    table = runs.evaluation
    last = table.groupby([*RUN, "cell"])["end_s"].transform("max")
    table = table[table["end_s"] == last].sort_values("end_s").drop_duplicates([*RUN, "device"], keep="last")
    ledger = runs.ledger
    classes = ledger["class"] if "class" in ledger else pd.Series("", index=ledger.index)
    named = ledger[[*RUN, "device"]].assign(**{"class": classes.fillna("")})
    table = table.merge(named, on=[*RUN, "device"], how="left")
    keys = [*RUN, "cell", "device", "class", "samples"]
    parts = [
        table[[*keys, column]].rename(columns={column: "accuracy"}).assign(model=model)
        for column, model in MODELS.items()
        if column in table and table[column].notna().any()
    ]
    found = pd.concat(parts, ignore_index=True).dropna(subset="accuracy")
    return found.sort_values(
        [*RUN, "model", "device"], ascending=[True, True, False, True], ignore_index=True
    )


def measures(by_device: pd.DataFrame) -> pd.DataFrame:
    """Measure the spread of devices' accuracies, a row per run and model.

    Returns:
        variant, seed, model, devices, mean, by_samples, std, the quantiles of QUANTILES (linear between devices),
        worst_tenth (mean of the tenth with the lowest, rounded up), gini (half the mean absolute difference between
        two devices over the mean: 0 where all are alike), gap_cells and gap_classes (between the highest and the
        lowest mean of one; NaN where there is one).
    """
    rows = []
    for (variant, seed, model), own in by_device.groupby([*RUN, "model"], sort=False):
        accuracy = np.sort(own["accuracy"].to_numpy(float))
        count = len(accuracy)
        ranks = 2 * np.arange(1, count + 1) - count - 1
        total = accuracy.sum()
        rows.append(
            {
                "variant": variant,
                "seed": seed,
                "model": model,
                "devices": count,
                "mean": accuracy.mean(),
                "by_samples": np.average(own["accuracy"], weights=own["samples"]),
                "std": accuracy.std(),
                **{name: np.quantile(accuracy, share) for name, share in QUANTILES.items()},
                "worst_tenth": accuracy[: int(np.ceil(count * WORST - 1e-9))].mean(),
                "gini": float(ranks @ accuracy / (count * total)) if total else 0.0,
                "gap_cells": _gap(own, "cell"),
                "gap_classes": _gap(own, "class"),
            }
        )
    return pd.DataFrame(rows)


def _gap(own: pd.DataFrame, key: str) -> float:
    means = own.groupby(key)["accuracy"].mean()
    return float(means.max() - means.min()) if len(means) > 1 else float("nan")
