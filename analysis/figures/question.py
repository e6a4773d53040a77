"""Where one variant is better than the other: a map of two axes, or an interval for each setting."""

import itertools
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from edgefl.analysis.figures.column import SMALL, panels
from edgefl.analysis.figures.style import INK, PALETTE, SOFT
from edgefl.analysis.formatting import amount

TINTS = (
    "#9ecae1",
    "#fdd49e",
    "#ffffff",
)  # the first variant, the second, neither; told apart in grey by text


def question_figure(table: pd.DataFrame, axes: Sequence[str], variants: tuple[str, str], unit: str) -> Figure:
    """Draw the difference in each setting, with its interval and who is better.

    Args:
        table: as in `edgefl.analysis.question.Answer`.
    """
    scale = 100.0 if unit == "percentage points" else 1.0
    title = f"{variants[0]} minus {variants[1]} ({unit})"
    draw = _map if len(axes) == 2 else _intervals
    return draw(table, axes, variants, scale, title)


def _map(
    table: pd.DataFrame, axes: Sequence[str], variants: tuple[str, str], scale: float, title: str
) -> Figure:
    across, down = (list(dict.fromkeys(table[axis])) for axis in axes)
    figure, (ax,) = panels(1, 0.9 + 0.5 * len(down))
    for i, j in itertools.product(range(len(across)), range(len(down))):
        own = table[(table[axes[0]] == across[i]) & (table[axes[1]] == down[j])]
        if own.empty:
            continue
        row = own.iloc[0]
        tint = TINTS[variants.index(row["better"])] if row["better"] in variants else TINTS[2]
        hatch = None if row["better"] in variants else "...."
        square = Rectangle(
            (i - 0.5, j - 0.5), 1, 1, facecolor=tint, hatch=hatch, edgecolor=SOFT, linewidth=0.5
        )
        ax.add_patch(square)
        half = scale * (row["high"] - row["low"]) / 2
        text = f"{amount(scale * row['mean'])} ± {amount(half)}\n{row['better']}"
        ax.text(i, j, text, ha="center", va="center", fontsize=SMALL - 1, color=INK)
    ax.set_xlim(-0.5, len(across) - 0.5)
    ax.set_ylim(-0.5, len(down) - 0.5)
    ax.set_xticks(range(len(across)), across)
    ax.set_yticks(range(len(down)), down)
    ax.grid(False)
    ax.set_xlabel(axes[0])
    ax.set_ylabel(axes[1])
    ax.set_title(title, fontsize=SMALL, color=INK, loc="left")
    return figure


def _intervals(
    table: pd.DataFrame, axes: Sequence[str], variants: tuple[str, str], scale: float, title: str
) -> Figure:
    names = [", ".join(map(str, row)) for row in table[list(axes)].itertuples(index=False, name=None)]
    figure, (ax,) = panels(1, 0.9 + 0.22 * len(names))
    known = table["high"].abs() < float("inf")
    for place, (_, row) in enumerate(table.iterrows()):
        if known.loc[row.name]:
            which = variants.index(row["better"]) if row["better"] in variants else 2
            colour, marker = (*PALETTE[:2], SOFT)[which], "osx"[which]
            ax.plot([scale * row["low"], scale * row["high"]], [place, place], color=colour, linewidth=1.2)
            ax.plot(scale * row["mean"], place, marker=marker, color=colour, markersize=4)
    ax.axvline(0, color=INK, linewidth=0.7)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(title)
    ax.set_ylabel(", ".join(axes))
    return figure
