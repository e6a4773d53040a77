"""Write the report's first section, on the variants' cost to reach the target, in words, bars and a table."""

import html
import math
import re
from inspect import unwrap

import pandas as pd

from edgefl.analysis.figures.sweep import words_of
from edgefl.analysis.html.words import NO_BREAK, table_html
from edgefl.analysis.measures.notes import own_notes
from edgefl.analysis.measures.results import OF_ROUND, TO_TARGET, Comparison
from edgefl.analysis.measures.uncertainty import LEAST, shown_ends
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, Units, amount, lower_bound, unit_for
from edgefl.analysis.page.score_words import said
from edgefl.analysis.reports.comparison import caption, compare
from edgefl.analysis.reports.comparison_tables import headline
from edgefl.analysis.runs.load import Runs

WIDEST = 0.92  # share of the width that the longest bar or interval takes
LONGEST = 3.0  # an interval is drawn up to this multiple of the longest bar


def answer(runs: Runs) -> str:
    """Write the section that answers a study's question; empty if there is nothing to compare."""
    if runs.info["variant"].nunique() < 2:
        return ""
    try:
        comparison = unwrap(compare)(runs)  # nothing is written
    except ValueError as error:  # the report continues without it
        return _section(f"<p>Not compared: {html.escape(str(error))}.</p>")
    sentences = "".join(
        f"<li>{html.escape(with_units_kept(verdict))}</li>" for verdict in comparison.verdicts
    )
    kinds = zip(TO_TARGET if comparison.target else OF_ROUND, (TIME_UNITS, ENERGY_UNITS), strict=True)
    bars = "".join(_figure(comparison, name, units) for name, units in kinds)
    elsewhere = {*runs.left_out, *own_notes(runs.info)}  # the page's other notes
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in comparison.notes if note not in elsewhere)
    table = headline(comparison).T.reset_index(names="")
    section = _section(
        f'<ul class="verdicts">{sentences}</ul>',
        f'<div class="bars">{bars}</div>',
        f'<ul class="notes">{notes}</ul>' if notes else "",
        "<details><summary>All numbers</summary>",
        table_html(table, caption(comparison), "answer"),
        "</details>",
    )
    return said(section, runs.score)


def with_units_kept(sentence: str) -> str:
    """Put a no-break space between a number and the next word."""
    return re.sub(r"(?<=\d) (?=\D)", NO_BREAK, sentence)


def _section(*parts: str) -> str:
    heading = '<h2 id="answer-title">Answer</h2>'
    return f'<section id="answer" aria-labelledby="answer-title">{heading}{"".join(parts)}</section>'


def _figure(comparison: Comparison, name: str, units: Units) -> str:
    """Write a bar chart of the variants' time, or energy, to reach the target or for a round."""
    table, target = comparison.table, comparison.target
    means = table[f"{name}_at_least" if target else f"{name}_mean"]
    if not means.notna().any():
        return ""
    missed = (table["not_reached"] > 0) & (target is not None)
    unit, size = unit_for(means, units)
    seeds = len(comparison.seeds)
    known = zip(means, table[f"{name}_ci"], missed, strict=True)
    spans = [(math.nan, math.nan) if bound else shown_ends(mean, half, seeds) for mean, half, bound in known]
    # an interval that is much longer than all bars is cut off, and marked
    longest = float(means.max())
    longest = max(longest, *(min(high, LONGEST * longest) for _, high in spans if math.isfinite(high)), 0.0)
    rows = []
    for variant, mean, (low, high), bound in zip(table["variant"], means, spans, missed, strict=True):
        number = f"{f'>{lower_bound(mean / size)}' if bound else amount(mean / size)}{NO_BREAK}{unit}"
        sure = f" ({amount(low / size)} to {amount(high / size)})" if math.isfinite(high) else ""
        rows.append(_row(str(variant), mean / longest, low / longest, high / longest, number, sure, bound))
    title = words_of(name, target)
    lines = f"95{NO_BREAK}% intervals" if seeds >= LEAST else "range of two seeds"
    several = f", lines: {lines}" if seeds > 1 else ""
    what = f"{title[0].upper()}{title[1:]} ({unit}{several})"
    return f"<figure><figcaption>{html.escape(what)}</figcaption><dl>{''.join(rows)}</dl></figure>"


def _row(variant: str, share: float, low: float, high: float, number: str, sure: str, bound: bool) -> str:
    """Write a variant's bar, the bar's value, and a line for the value's interval, open where it is cut off."""
    whisker = ""
    if math.isfinite(low) and not math.isnan(high):
        begin, end = (100 * min(1.0, WIDEST * place) for place in (low, high))
        cut = " class=cut" * (WIDEST * high > 1.0)
        whisker = f'<i{cut} style="left:{begin:.2f}%;width:{end - begin:.2f}%"></i>'
    bar = (
        "" if pd.isna(share) else f'<b{" class=bound" * bound} style="width:{100 * WIDEST * share:.2f}%"></b>'
    )
    return (
        f'<dt>{html.escape(variant)}</dt><dd><span class="bar" aria-hidden="true">{bar}{whisker}</span>'
        f"<span>{html.escape(number)}<small>{html.escape(sure)}</small></span></dd>"
    )
