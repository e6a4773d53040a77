"""Devices' scores from the lowest to the highest, at column width."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.column import DASHES, legend, panels
from edgefl.analysis.figures.style import PALETTE

SHARES = np.linspace(0, 1, 101)


def fairness_figure(by_device: pd.DataFrame) -> Figure:
    """Draw, for each variant and kind of model, the accuracy below which a share of the devices lies.

    Args:
        by_device: of `edgefl.analysis.fairness.last_scores`.
    """
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
