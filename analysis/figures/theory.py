"""The terms of the convergence bound along a run, at column width."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.column import DASHES, MARKS, SMALL, legend, panels
from analysis.figures.style import INK, PALETTE, SOFT

MOST_PANELS = 4  # variants below one another
MOST_MARKS = 10  # on a line
TERMS = {"a": "(a) progress", "b": "(b) step noise", "c": "(c) drift noise", "d": "(d) divergence"}
NO_BOUND = "no bound: rate beyond (14)"


def theory_figure(by_round: pd.DataFrame, lengths: pd.Series) -> Figure:
    """Draw the bound's four terms, their sum and the gradient that it bounds over rounds, a panel per variant.

    Means over seeds and cells. The axis is logarithmic: a term that is zero or negative in a round has a gap there.

    Args:
        by_round: of `analysis.theory.along`.
        lengths: training rounds of each session, by its number.
    """
    names = list(dict.fromkeys(by_round["variant"]))[:MOST_PANELS]
    starts = lengths.cumsum() - lengths
    figure, axes = panels(len(names), 0.9 + (2.3 if len(names) == 1 else 1.5 * len(names)), sharex=True)
    for ax, name in zip(axes, names, strict=True):
        own = by_round[by_round["variant"] == name]
        means = own.groupby(["session", "round"])[[*TERMS, "bound", "gradient2"]].mean()
        places = means.index.get_level_values("session").map(starts) + means.index.get_level_values("round")
        means = means.set_axis(places)
        every = max(1, len(means) // MOST_MARKS)
        ax.plot(means["bound"], color=INK, linewidth=1.6, label="bound (a)+(b)+(c)+(d)", zorder=5)
        ax.plot(
            means["gradient2"], color=SOFT, linewidth=2.6, alpha=0.55, label="squared gradient norm", zorder=3
        )
        for number, (term, words) in enumerate(TERMS.items()):
            look = {"color": PALETTE[number], "linestyle": DASHES[1 + number], "marker": MARKS[number]}
            shown = means[term].where(means[term] > 0)
            if shown.notna().any():
                ax.plot(shown, linewidth=1.0, markersize=2.8, markevery=every, label=words, zorder=4, **look)
        without = means.index[means["bound"].isna()]
        if len(without):
            low = ax.get_xaxis_transform()
            ax.plot(
                without, [0.02] * len(without), "|", color=INK, markersize=5, transform=low, label=NO_BOUND
            )
        for start in starts.iloc[1:]:
            ax.axvline(start, color="#c9ced3", linewidth=0.6, zorder=1)
        ax.set_yscale("log")
        ax.set_xlim(0, lengths.sum())
        ax.set_ylabel("squared gradient norm")
        if len(names) > 1:
            ax.set_title(name, fontsize=SMALL + 0.5, color=INK, loc="left", pad=3)
    axes[-1].set_xlabel("training round" + ("; lines: sessions begin" if len(starts) > 1 else ""))
    legend(figure, axes[0])
    return figure
