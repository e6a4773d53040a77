"""Write the report's section on energy: bars by class of devices and use, battery charge, and a table."""

import html
from collections.abc import Mapping, Sequence

import pandas as pd

from edgefl.analysis.figures.energy import COLOURS, after, bars_of, battery_words, decimals_of
from edgefl.analysis.html.answer import with_units_kept
from edgefl.analysis.html.words import energy_text, table_html
from edgefl.analysis.measures.energy import (
    BATTERY_MAH,
    CAUSED,
    NOMINAL_V,
    OF_DEVICES,
    SHARES,
    energy_by_class,
)
from edgefl.analysis.measures.scope import variants_of
from edgefl.analysis.page.formatting import NOTHING, amount, counts_of
from edgefl.analysis.runs.load import Runs

SUMS = {
    "energy_j": "energy",
    "wasted_j": "wasted, included",
    "idle_j": "idle, not included",
    "total_j": "energy plus idle",
    "device_j": "energy per device",
}
ABOUT = (
    "The bars show the energy of the devices by use. The joules and mAh of a bar are the energy spent on learning,"
    f" without idle energy. A phone's day is a charge of {BATTERY_MAH:,.0f} mAh at {NOMINAL_V} V."
)


def energy(runs: Runs) -> str:
    """Write the report's section on energy, with the runs' joules by use as means over seeds."""
    bars = bars_of(energy_by_class(runs), variants_of(runs.info, None))
    longest = max(float(of["total_j"]) for of in bars.values())
    shown = [name for name in SHARES if any(of[name] for of in bars.values())]
    key = "".join(
        f'<li><i style="background:{_colour(name)}"></i>{html.escape(SHARES[name])}</li>' for name in shown
    )
    rows = "".join(_bar(label, of, longest) for label, of in bars.items())
    seeds = runs.info.groupby("variant").size()
    over = f", means over {counts_of(seeds, 'seed')}" * bool(max(seeds) > 1)
    title = f"Energy of the devices{over}"
    return (
        '<section id="energy" aria-labelledby="energy-title"><h2 id="energy-title">Energy</h2>'
        f'<p class="hint">{html.escape(ABOUT)}</p><figure class="stack"><figcaption>{html.escape(title)}</figcaption>'
        f'<ul aria-hidden="true">{key}</ul><dl>{rows}</dl></figure><details><summary>All numbers</summary>'
        f"{table_html(_table(bars, shown), title, 'energy')}</details></section>"
    )


def _bar(label: str, of: pd.Series, longest: float) -> str:
    """Write a stacked bar, the total energy, and the battery charge that this energy takes."""
    parts, begin = [], 0.0
    for name in SHARES:
        width = 100 * float(of[name]) / longest if longest else 0.0
        if width:
            title = html.escape(f"{SHARES[name]}: {energy_text(of[name])}")
            look = f"left:{begin:.3f}%;width:{width:.3f}%;background:{_colour(name)}"
            parts.append(f'<b title="{title}" style="{look}"></b>')
        begin += width
    small = html.escape(with_units_kept(battery_words(of)))
    return (
        f'<dt>{html.escape(label)}</dt><dd><span class="bar" aria-hidden="true">{"".join(parts)}</span>'
        f"<span>{energy_text(of['energy_j'])} <small>{small}</small></span></dd>"
    )


def _colour(share: str) -> str:
    return f"var(--c{COLOURS[share]})" if share in COLOURS else "var(--line)"


def _number(name: str, of: pd.Series) -> str:
    decimals = decimals_of(of[name]) if name == "emptied" else None
    return NOTHING if pd.isna(of[name]) else amount(of[name], decimals) + after(name, of)


def _table(bars: Mapping[str, pd.Series], shown: Sequence[str]) -> pd.DataFrame:
    """Write a table with a column per bar: shares, their sum, idle energy, and the mean charge per device."""
    caused = {name: SHARES[name] for name in shown if name in CAUSED}
    columns = {}
    for label, of in bars.items():
        joules = {words: energy_text(of[name]) for name, words in (caused | SUMS).items()}
        rest = {words: _number(name, of) for name, words in OF_DEVICES.items()}
        columns[label] = {"devices": amount(of["devices"], 0), **joules, **rest}
    table = pd.DataFrame(columns)
    return table[(table != NOTHING).any(axis=1)].reset_index(names="")
