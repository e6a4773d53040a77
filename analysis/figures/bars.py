"""Grouped bars, one colour per variant."""

import pandas as pd
from matplotlib.axes import Axes

from edgefl.analysis.figures.style import INK, Styles, plain
from edgefl.analysis.page.formatting import amount

MOST_BARS_WITH_VALUES = 18
WIDEST_BAR, WIDEST_SHARE = 0.4, 0.09  # of its group, and of the axis: few bars stay slim


def draw_bars(ax: Axes, bars: pd.DataFrame, groups: list[str], styles: Styles) -> None:
    """Draw grouped bars, with values if there is room; hatched: the target was missed somewhere."""
    plain(ax, grid=True)
    width, order = min(0.8 / len(styles), WIDEST_BAR), list(styles)
    for bar in bars.itertuples():
        x = bar.group + (order.index(bar.variant) - (len(order) - 1) / 2) * width
        colour, open_ended = styles[bar.variant]["color"], bar.missed > 0
        look = (
            {"facecolor": "white", "edgecolor": colour, "hatch": "/////"} if open_ended else {"color": colour}
        )
        ax.bar(x, bar.mean, width * 0.92, linewidth=0.9, zorder=3, **look)
        spread = bar.std if bar.std > 0 else 0.0
        if spread:
            ax.errorbar(x, bar.mean, spread, color=INK, linewidth=0.9, zorder=5)
        if len(bars) <= MOST_BARS_WITH_VALUES:
            text = f"{'>' if open_ended else ''}{amount(bar.mean)}"
            top = (x, bar.mean + spread)
            ax.annotate(text, top, (0, 2), textcoords="offset points", ha="center", fontsize=7, color=INK)
    middle, half = (len(groups) - 1) / 2, max(len(groups) / 2, width / (2 * WIDEST_SHARE))
    ax.set_xlim(middle - half, middle + half)
    ax.set_xticks(range(len(groups)), groups)
    ax.margins(y=0.14)
    ax.set_ylim(bottom=0)
