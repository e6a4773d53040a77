"""Report how evenly a model serves its devices, by quantiles, the worst tenth, and gaps of cells and classes."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import DASHES, PALETTE, legend, panels
from edgefl.analysis.measures.metrics import RUN
from edgefl.analysis.page.markup import Quantity, quantities
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.choices import Names, Out, Partial
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_as_variants

QUANTILES = {"lowest": 0.0, "q10": 0.1, "median": 0.5, "q90": 0.9, "highest": 1.0}
MODELS = {"accuracy": "served", "accuracy_personal": "own"}  # column -> kind of model
WORST = 0.1  # share of the devices that counts as the worst


def report_fairness(
    *runs: Paths | Runs, partial: Partial = False, names: Names = (), out: Out = None
) -> Report:
    """Compare devices' scores, and write fairness.csv, fairness_devices.csv, fairness.png and .pdf.

    Raises:
        ValueError: no run is completed, no run has recorded devices' scores, or the folder cannot be written.
    """
    given = given_runs(runs, load_as_variants, names=names, partial=partial)
    by_device = _last_scores(given)
    by_run = measures(by_device)
    several = by_run["model"].nunique() > 1
    named = by_run["variant"] + (" (" + by_run["model"] + ")" if several else "")
    return Report(
        given.folder(out),
        tables=[("", quantities(by_run.assign(variant=named).drop(columns="model"), ROWS))],
        sentences=[*EXPLANATIONS, *noted([*given.left_out, *given.remarks])],
        look=[("Device by device", "fairness_devices.csv"), ("Figure", "fairness.png", " and .pdf")],
        numbers={"fairness_devices.csv": by_device, "fairness.csv": by_run},
        figures={"fairness": _fairness_figure(by_device)},
        score=given.score,
    ).write()


def _last_scores(runs: Runs) -> pd.DataFrame:
    """Return each device's scores in the last round of each run and cell that recorded them.

    Returns:
        variant, seed, cell, device, class (empty without classes), model (`served`, or `own`), samples, accuracy. A
        device without test data, or without a personal model, has no row; a device with scores in several cells
        counts in its last cell.
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
    """Measure the spread of devices' accuracies; one row per run and model.

    Returns:
        variant, seed, model, devices, mean, by_samples, std, the quantiles of QUANTILES (linear between devices),
        worst_tenth (mean of the lowest tenth, with the number of devices rounded up), gini (half the mean absolute
        difference between two devices divided by the mean: 0 if all are equal, NaN with a negative score), gap_cells
        and gap_classes (difference of the highest and the lowest mean of a cell or class; NaN with only one).
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
                "gini": math.nan if accuracy[0] < 0 else ranks @ accuracy / (count * total) if total else 0.0,
                "gap_cells": _gap(own, "cell"),
                "gap_classes": _gap(own, "class"),
            }
        )
    return pd.DataFrame(rows)


def _gap(own: pd.DataFrame, key: str) -> float:
    means = own.groupby(key)["accuracy"].mean()
    return float(means.max() - means.min()) if len(means) > 1 else float("nan")


ROWS: dict[str, Quantity] = {
    "devices": ("devices with test data", "{:.0f}", 1),
    "mean": ("accuracy, mean over devices", "{:.1f} %", 100),
    "by_samples": ("accuracy, mean over test samples", "{:.1f} %", 100),
    "std": ("standard deviation over devices", "{:.1f} %", 100),
    "worst_tenth": ("mean of the worst tenth", "{:.1f} %", 100),
    "lowest": ("lowest", "{:.1f} %", 100),
    "q10": ("10th percentile", "{:.1f} %", 100),
    "median": ("median", "{:.1f} %", 100),
    "q90": ("90th percentile", "{:.1f} %", 100),
    "highest": ("highest", "{:.1f} %", 100),
    "gini": ("Gini coefficient", "{:.3f}", 1),
    "gap_cells": ("gap between best and worst cell", "{:.1f} %", 100),
    "gap_classes": ("gap between best and worst class", "{:.1f} %", 100),
}
EXPLANATIONS = (
    "Scores are from the last round that recorded them (learning.evaluation.scores_every), on each device's own test"
    " data; `own` is the score of the device's own model, if it keeps one.",
    (
        "The figure shows the share of devices whose accuracy is at most the value on the horizontal axis;"
        " quantiles are averaged over seeds."
    ),
)
SHARES = np.linspace(0, 1, 101)


def _fairness_figure(by_device: pd.DataFrame) -> Figure:
    """Draw the cumulative distribution of accuracies in the table of `_last_scores`, by variant and kind of model."""
    figure, (ax,) = panels(1, 2.6)
    variants, several = list(dict.fromkeys(by_device["variant"])), by_device["model"].nunique() > 1
    for (variant, model), own in by_device.groupby(["variant", "model"], sort=False):
        of_seeds = [np.quantile(one["accuracy"], SHARES) for _, one in own.groupby("seed")]
        ax.plot(
            100 * np.mean(of_seeds, axis=0),
            100 * SHARES,
            color=PALETTE[variants.index(variant) % len(PALETTE)],
            linestyle=DASHES[(model == "own") % len(DASHES)],
            linewidth=1.3,
            label=f"{variant} ({model})" if several else str(variant),
        )
    ax.set_ylim(0, 100)
    ax.set_xlabel("accuracy on a device's own test data (%)")
    ax.set_ylabel("devices (%)")
    legend(figure, ax)
    return figure
