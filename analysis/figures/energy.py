"""Draw joules as stacked bars, with a bar for each variant and class of device, and a segment for each share."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import DPI, INK, PALETTE, SOFT, note, plain
from edgefl.analysis.measures.energy import NOMINAL_V, SHARES, energy_of_all, groups
from edgefl.analysis.page.formatting import ENERGY_UNITS, amount, unit_for, with_unit

COLOURS = {"receive_j": 5, "amplifier_j": 0, "circuit_j": 3, "compute_j": 1, "tail_j": 2}  # of the palette
IDLE: dict[str, Any] = {"color": "#e3e7ea", "hatch": "////", "edgecolor": "#9aa0a6", "linewidth": 0.0}
MOST_BARS = 24
WIDTH_INCH, BAR_INCH = 7.2, 0.42
LETTER_INCH = 0.058  # average width of a letter at 7 points


def bars_of(by_class: pd.DataFrame, variants: Sequence[str]) -> dict[str, pd.Series]:
    """Average rows of `energy_by_class` over seeds, label -> means; merge the classes if there are too many bars."""
    whole = energy_of_all(by_class)
    rows = groups(by_class, variants, whole)
    if len(rows) > MOST_BARS:
        rows = {name: whole[whole["variant"] == name] for name in variants}
    return {label: of.mean(numeric_only=True) for label, of in rows.items()}


def battery_words(of: pd.Series) -> str:
    """Describe the charge that an average device uses: `2.69 mAh per device, 0.0538 % of a phone's day`."""
    words = f"{amount(of['device_mah'])} mAh per device, {amount(of['phone_day_percent'])} % of a phone's day"
    own, emptied = of["battery_percent"], of["emptied"]
    many = f"{amount(emptied, decimals_of(emptied))}{after('emptied', of)}" if emptied > 0 else ""
    if math.isnan(own):
        return f"{words}; {many} batteries ran empty" if many else words
    share = f"{amount(own)} % of its battery, idle included{after('battery_percent', of)}"
    return f"{words}; {share}; {many} empty" if many else f"{words}; {share}"


def after(name: str, of: pd.Series) -> str:
    """Return the words after a number: ` (recharged)` above 100 % of a battery, ` of 5` after empty batteries."""
    if name == "emptied":
        return f" of {amount(of['batteries'], decimals_of(of['batteries']))}"
    # an empty battery may have lost 100.00000000000001 % to rounding
    return " (recharged)" if name == "battery_percent" and round(of[name], 6) > 100 else ""


def decimals_of(count: float) -> int | None:
    """Return the decimals of a mean count: none for a whole number, otherwise those of any number."""
    return 0 if float(count).is_integer() else None


def energy_figure(by_class: pd.DataFrame, variants: Sequence[str]) -> Figure:
    """Draw `energy_by_class` as one stacked bar per variant and class, means over seeds."""
    bars = bars_of(by_class, variants)
    table = pd.DataFrame(bars).T
    unit, size = unit_for(table["total_j"], ENERGY_UNITS)
    names_inch = LETTER_INCH * 1.3 * max(map(len, bars)) + 0.2
    # long labels make the figure wider, since bars keep a fifth of the width
    longest_inch = LETTER_INCH * max(len(battery_words(of)) for of in bars.values())
    width_inch = max(WIDTH_INCH, names_inch + longest_inch / 0.8)
    figure = Figure(figsize=(width_inch, 1.1 + BAR_INCH * len(bars)), dpi=DPI, layout="constrained")
    ax = figure.subplots()
    plain(ax)
    ax.grid(axis="y", visible=False)
    places = list(range(len(bars), 0, -1))
    ends = table[[*SHARES]].cumsum(axis=1) / size
    for name, words in SHARES.items():
        lengths = table[name] / size
        if lengths.any():
            look = {"color": PALETTE[COLOURS[name]]} if name in COLOURS else IDLE
            label = words if name in COLOURS else f"{words}, not included"
            ax.barh(places, lengths, left=ends[name] - lengths, height=0.62, label=label, **look)
    axes_inch = width_inch - names_inch
    # shares of the width that bars may take; the labels to their right take the rest
    rooms = [1 - LETTER_INCH * len(battery_words(of)) / axes_inch for of in bars.values()]
    longest = float(table["total_j"].max()) / size
    ax.set_xlim(0, float((table["total_j"] / size / rooms).max()) or 1.0)
    ax.set_xticks([tick for tick in ax.get_xticks() if tick <= 1.05 * longest])
    ax.spines["bottom"].set_bounds(0, longest)
    texts: tuple[dict[str, Any], ...] = ({"fontsize": 9.5, "color": INK}, {"fontsize": 7, "color": SOFT})
    for place, of in zip(places, bars.values(), strict=True):
        lines = with_unit(of["energy_j"], ENERGY_UNITS), battery_words(of)
        for text, up, look in zip(lines, (5.5, -5.5), texts, strict=True):
            at = (of["total_j"] / size, place)
            note(ax, text, at, (5, up), va="center", **look)
    ax.set_yticks(places, list(bars))
    ax.tick_params(axis="y", length=0, labelsize=9)
    ax.set_xlabel(f"energy of the devices ({unit}); mAh at {NOMINAL_V} V")
    handles, labels = ax.get_legend_handles_labels()
    frame: dict[str, Any] = {"loc": "outside upper left", "ncols": 3, "frameon": False}
    figure.legend(handles, labels, fontsize=8, labelcolor=INK, **frame)
    return figure
