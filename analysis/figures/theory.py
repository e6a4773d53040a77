"""The terms of the convergence bound along a run, at column width."""

import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.column import DASHES, MARKS, SMALL, legend, panels
from edgefl.analysis.figures.style import INK, PALETTE, SOFT

MOST_PANELS = 4  # variants below one another
MOST_MARKS = 10  # on a line
TERMS = {"a": "(a) progress", "b": "(b) steps", "c": "(c) drift", "d": "(d) divergence"}


def theory_figure(by_round: pd.DataFrame, lengths: pd.Series) -> Figure:
    """Draw the bound's four terms, their sum and the gradient that it bounds over rounds, a panel per variant.

    Means over seeds and cells. The axis is logarithmic: a term that is zero or negative in a round has a gap there. A
    round has no bound if one of the seeds has none: its learning rate is beyond (14).

    Args:
        by_round: of `edgefl.analysis.theory.along`.
        lengths: training rounds of each session, by its number.
    """
    names = list(dict.fromkeys(by_round["variant"]))[:MOST_PANELS]
    starts = lengths.cumsum() - lengths
    figure, axes = panels(len(names), 0.9 + (2.3 if len(names) == 1 else 1.5 * len(names)), sharex=True)
    for ax, name in zip(axes, names, strict=True):
        own = by_round[by_round["variant"] == name]
        means = _means(own, starts)
        every = max(1, len(means) // MOST_MARKS)
        ax.plot(means["bound"], color=INK, linewidth=1.6, label="bound (sum)", zorder=5)
        ax.plot(means["gradient2"], color=SOFT, linewidth=2.6, alpha=0.55, label="‖∇F‖² seen", zorder=3)
        for number, (term, words) in enumerate(TERMS.items()):
            look = {"color": PALETTE[number], "linestyle": DASHES[1 + number], "marker": MARKS[number]}
            shown = means[term].where(means[term] > 0)
            if shown.notna().any():
                ax.plot(shown, linewidth=1.0, markersize=2.8, markevery=every, label=words, zorder=4, **look)
        without = means.index[means["bound"].isna() & means["gradient2"].notna()]
        if len(without):
            low = ax.get_xaxis_transform()
            ax.plot(
                without,
                [0.02] * len(without),
                "|",
                color=INK,
                markersize=5,
                transform=low,
                label="no bound (14)",
            )
        for start in starts.iloc[1:]:
            ax.axvline(start, color="#c9ced3", linewidth=0.6, zorder=1)
        ax.set_yscale("log")
        ax.minorticks_off()
        ax.set_xlim(0, 1.015 * lengths.sum())
        ax.set_ylabel("bound on ‖∇F‖²")
        if len(names) > 1:
            ax.set_title(name, fontsize=SMALL + 0.5, color=INK, loc="left", pad=3)
    axes[-1].set_xlabel("training round" + ("; lines: sessions begin" if len(starts) > 1 else ""))
    legend(figure, *axes)
    return figure


def _means(own: pd.DataFrame, starts: pd.Series) -> pd.DataFrame:
    """Average over seeds and cells, NaN where one has no value; sessions are parted by an empty row."""
    rounds = own.groupby(["session", "round"])[[*TERMS, "bound", "gradient2"]]
    means = rounds.mean().where(rounds.count().eq(rounds.size(), axis=0))
    places = means.index.get_level_values("session").map(starts) + means.index.get_level_values("round")
    empty = pd.DataFrame(float("nan"), starts.to_numpy() + 0.5, means.columns)
    return pd.concat([means.set_axis(places), empty]).sort_index()
