"""Compare a study's variants in every setting of its grid, as in the papers' large tables."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import DPI, INK, variant_styles
from edgefl.analysis.measures import settings as numbers
from edgefl.analysis.measures.metrics import TIE, training_rounds
from edgefl.analysis.measures.notes import on_power, own_notes
from edgefl.analysis.measures.results import SettingsTable
from edgefl.analysis.measures.scope import own_seeds, reference_of, variants_of
from edgefl.analysis.measures.uncertainty import LEAST
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    TIME_UNITS,
    count_of,
    first_rounds_named,
    numbered,
    unit_for,
    with_spread,
)
from edgefl.analysis.page.markup import latex_escape, latex_tabular, markdown_table
from edgefl.analysis.page.report import Report, reporting
from edgefl.analysis.runs.choices import FIRST_ROUNDS, Names, Out, Partial, Reference
from edgefl.analysis.runs.load import Paths, Settings, given_runs, load_settings, named
from edgefl.analysis.runs.scenario_keys import of_points


@reporting
def compare_settings(
    *runs: Paths | Settings,
    partial: Partial = False,
    names: Names = (),
    out: Out = None,
    reference: Reference = None,
    sessions: Annotated[
        Sequence[int] | None,
        typer.Option("--session", help="Only this session; may be repeated. Default: recurring sessions."),
        list[int] | None,
    ] = None,
    first_rounds: Annotated[int, typer.Option(help="Rounds to average over.")] = FIRST_ROUNDS,
) -> SettingsTable:
    """Compare the variants in every setting and write settings.csv, .md, .tex and .png.

    Runs without training are compared by latency and energy. A variant without a completed run in a setting leaves
    a gap and a note.

    Raises:
        ValueError: no run is completed, the study has no grid, settings differ in axes or seeds, only some settings
            have accuracies, the reference or a session is unknown, no round is recorded, or writing failed.
    """
    by_setting = given_runs(runs, load_settings, names=names, partial=partial)
    if not next(iter(by_setting)):
        raise ValueError(f"the runs in {by_setting.first.path} belong to no grid: use `edgefl compare`")
    info, notes = by_setting.info, by_setting.said()
    notes += [*own_notes(info), *on_power(of_points(info).values()), *numbers.on_servers(info)]
    seeds = numbers.seeds_of(by_setting, notes)
    reference = reference_of(info, reference, notes)
    variants = variants_of(info, reference)
    table, shown = _measured(by_setting, seeds, variants, sessions, first_rounds, reference, notes)
    axes = tuple(table.columns[: len(next(iter(by_setting)))])
    every = training_rounds(pd.concat([own.rounds for own in by_setting.values()]))
    most = int(min([first_rounds, *every.loc[every["session"].isin(shown), "round"].nlargest(1)]))
    if by_setting.trained:
        numbers.note_alike(by_setting, seeds, notes)
        notes += numbers.on_fewer(table, axes, most, len(seeds))
    else:
        notes.append("no run has an accuracy (runs without training): only costs are shown")
    return SettingsTable(
        score=by_setting.first.score,
        table=table,
        axes=axes,
        variants=tuple(variants),
        reference=reference,
        seeds=tuple(seeds),
        own_seeds=own_seeds(info, seeds),
        sessions=tuple(sorted({int(session) for session in shown.union(sessions or ())})),
        first_rounds=most,
        trained=by_setting.trained,
        out=by_setting.first.folder(out),
        notes=tuple(notes),
    )


def _measured(
    by_setting: Settings,
    seeds: list[int],
    variants: list[str],
    sessions: Sequence[int] | None,
    first_rounds: int,
    reference: str | None,
    notes: list[str],
) -> tuple[pd.DataFrame, set[Any]]:
    """Measure each setting; return the rows of all settings, and the sessions that these rows show."""
    parts, shown, axes = [], set[Any](), [axis for axis, _ in next(iter(by_setting))]
    of_each = numbers.rounds_of(by_setting, seeds, sessions, notes)
    for (setting, own), rounds in zip(by_setting.items(), of_each, strict=True):
        if [axis for axis, _ in setting] != axes:
            raise ValueError(f"{own.path} differs in axes from other settings: give one study's folder")
        if missing := [name for name in variants if name not in set(own.info["variant"])]:
            notes.append(f"no completed run of {', '.join(missing)} in {named(setting)}")
        if by_setting.trained:
            part = numbers.accuracies(own, rounds, variants, first_rounds, reference)
            shown |= set(part["session"])
        else:
            part = numbers.costs(rounds, variants)
            shown |= set((rounds if sessions else own.rounds)["session"])
        for place, (axis, label) in enumerate(setting):
            part.insert(place, f"{axis} (axis)" if axis in part else axis, label)
        parts.append(part)
    return pd.concat(parts, ignore_index=True), shown


# Columns for runs without training: quantity of `SettingsTable.table` -> heading, units
SHOWN_COSTS = {
    "latency_s": ("Latency", TIME_UNITS),
    "latency_mean_s": ("Mean latency", TIME_UNITS),
    "round_energy_j": ("Energy", ENERGY_UNITS),
}

COSTS_EXPLAINED = (
    "Latency: of the slowest device, for which a synchronous round waits. Mean latency: mean over devices. Energy:"
    " sum over devices. Probe rounds are left out."
)


class _Group(NamedTuple):
    """Columns of every variant that belong together, for the accuracy in one session or for one cost.

    Attributes:
        short: prefix of the variants' names in column headings.
        title: the group's name in full.
        unit: unit of the numbers after multiplication by `scale`.
        means, stds: means and standard deviations over seeds, [settings x variants].
    """

    short: str
    title: str
    unit: str
    scale: float
    decimals: int | None
    means: pd.DataFrame
    stds: pd.DataFrame


def _groups(settings: SettingsTable) -> list[_Group]:
    """Split the table of settings into groups of columns, each with a column per variant."""
    table, axes, cut = settings.table, list(settings.axes), []
    if settings.trained:
        for session in settings.sessions:
            every, own = table[axes].drop_duplicates(), table[table["session"] == session]
            rows = every.merge(own, on=axes, how="left")
            cut.append(
                _Group(f"session {session}", f"Session {session}", "%", 100, 1, *_columns(rows, settings))
            )
        return cut
    for quantity, (words, units) in SHOWN_COSTS.items():
        means, stds = _columns(table, settings, f"_{quantity}")
        unit, size = unit_for(means.to_numpy().ravel(), units)
        cut.append(_Group(f"{words} ({unit})", f"{words} ({unit})", unit, 1 / size, None, means, stds))
    return cut


def _columns(rows: pd.DataFrame, settings: SettingsTable, quantity: str = "") -> Iterator[pd.DataFrame]:
    """Yield the variants' means, then their standard deviations, each [settings x variants]."""
    variants = list(settings.variants)
    for kind in ("mean", "std"):
        columns = rows[[f"{variant}{quantity}_{kind}" for variant in variants]]
        yield columns.set_axis(variants, axis=1).reset_index(drop=True)


def _cells(
    settings: SettingsTable, cell: Callable[[str, bool], str] = lambda text, best: text
) -> pd.DataFrame:
    """Write accuracies in percent, or costs in their units, [settings x (group, variant)].

    The function `cell` formats a cell's text, given whether it is the best of several accuracies.
    """
    labels = settings.table[list(settings.axes)].drop_duplicates()
    columns = {axis: [cell(str(label), False) for label in labels[axis]] for axis in settings.axes}
    for group in _groups(settings):
        best = group.means.max(axis=1)
        compared = settings.trained and settings.table["best"].any()
        several = compared and group.means.notna().sum(axis=1).max() > 1
        for variant in settings.variants:
            numbers = zip(group.means[variant], group.stds[variant], best, strict=True)
            columns[f"{group.short}: {variant}"] = [
                cell(
                    with_spread(group.scale * mean, group.scale * std, group.decimals),
                    several and mean == highest,
                )
                for mean, std, highest in numbers
            ]
    return pd.DataFrame(columns)


def _setting_names(settings: SettingsTable) -> list[str]:
    """Name each setting by its labels on one line, with the name of the axis before a label that is a number."""
    return [
        "  ".join(
            f"{axis} {label}" if _is_number(label) else str(label)
            for axis, label in zip(settings.axes, labels, strict=True)
        )
        for labels in settings.table[list(settings.axes)].drop_duplicates().to_numpy().tolist()
    ]


def _caption(settings: SettingsTable) -> str:
    """Return the caption of the table of settings."""
    seeds, sessions = settings.named_seeds(), numbered("session", settings.sessions)
    if not settings.trained:
        return f"Latency and energy of a round, mean over the rounds of {sessions} ({seeds})"
    at_most = "at most " * bool((settings.table["averaged_rounds"] < settings.first_rounds).any())
    return f"Mean accuracy (%) over {at_most}the {first_rounds_named(settings.first_rounds)} of {sessions} ({seeds})"


def _verdicts(settings: SettingsTable) -> list[str]:
    """Return sentences on the settings in which the reference leads, and the settings in which it does not."""
    if not (settings.trained and len(leads := settings.table["lead"].dropna())):
        return []
    tested, many = len(settings.seeds) >= LEAST, count_of(len(settings.seeds), "seed")
    ahead, level = settings.table[settings.table["lead"] > TIE], int((leads.abs() <= TIE).sum())
    sure = f"{ahead['lead_clear'].sum()} of these leads are clear (paired 95 % interval)"
    by = f", by {100 * ahead['lead'].median():.1f} points (median; {many}: {sure if tested else 'no test'})"
    behind = settings.table[settings.table["lead"] < -TIE].to_dict("records")
    return [
        f"{settings.reference} is ahead of all others in {len(ahead)} of {len(leads)} pairs of setting and session"
        f"{by * bool(len(ahead))}{f', and level with the best of them in {level}' * bool(level)}.",
        *(
            f"It is behind at {named((axis, row[axis]) for axis in settings.axes)}, session {row['session']}: "
            f"{row['best']} leads by {-100 * row['lead']:z.1f}{' (not clear)' * (tested and not row['lead_clear'])}."
            for row in behind
        ),
    ]


def report(settings: SettingsTable) -> Report:
    """Return the report of a table of settings; in Markdown and LaTeX the best of each session is bold."""
    axes = list(settings.axes)
    best = _cells(settings, lambda text, best: f"**{text}**" if best else text).set_index(axes[0])
    return Report.of(
        settings,
        _caption(settings),
        verdicts=_verdicts(settings),
        tables=[("", _cells(settings).drop(columns=axes).set_axis(_setting_names(settings)))],
        small_print=[] if settings.trained else [COSTS_EXPLAINED],
        look=[("Figure", "settings.png"), ("More", "settings.md")],
        emphasised=settings.reference if len(settings.variants) > 1 else None,
        above=[markdown_table(best, axes[0])],
        latex=_latex(settings),
        pdf=False,
    )


def _latex(settings: SettingsTable) -> str:
    """Write the table of settings as a LaTeX tabular, for the package booktabs."""

    def cell(text: str, best: bool) -> str:
        return rf"\textbf{{{latex_escape(text)}}}" if best else latex_escape(text)

    table = _cells(settings, cell)
    count, width = len(settings.axes), len(settings.variants)
    titles = [group.title for group in _groups(settings)]
    above = [rf"\multicolumn{{{width}}}{{c}}{{{latex_escape(title)}}}" for title in titles]
    names = [latex_escape(name) for name in (*settings.axes, *settings.variants * len(titles))]
    layout = "l" * count + "r" * (table.shape[1] - count)
    return latex_tabular(_caption(settings), layout, [[""] * count + above, names], table)


def _is_number(label: object) -> bool:
    try:
        float(str(label))
    except ValueError:
        return False
    return True


ROW_INCH, PANEL_INCH, MARGIN_INCH = 0.26, 3.1, 1.0
LABEL_INCH, CHARACTERS_AN_INCH = 0.075, 9.5  # letter width beside the panels; density of the title
MARKS = "oDsv^P"
DODGE = 0.16  # distance between marks of costs, as a share of a row, so that equal marks stay visible
WIDEST = 6  # panels side by side; a page does not hold more


def figures(settings: SettingsTable) -> dict[str, Figure]:
    """Draw accuracy, or costs, of each variant in each setting; whiskers are one standard deviation over seeds."""
    shown = _groups(settings)[:WIDEST]
    names = _setting_names(settings)
    beside = LABEL_INCH * max(map(len, names))
    width = 0.5 + beside + PANEL_INCH * len(shown)
    height = 2 * MARGIN_INCH + ROW_INCH * len(names)
    figure = Figure(figsize=(width, height), dpi=DPI)
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, group in zip(panels, shown, strict=True):
        _draw(panel, settings, group)
    panels[0].set_yticks(range(len(names)), names, fontsize=8)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(
            handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=9, labelcolor=INK
        )
    title = textwrap.wrap(_caption(settings), int(CHARACTERS_AN_INCH * width))
    look: dict[str, Any] = {"fontsize": 11, "fontweight": "bold", "color": INK, "va": "top"}
    figure.text(0.1 / width, 1 - 0.12 / height, "\n".join(title), **look)
    figure.subplots_adjust(
        left=(0.25 + beside) / width,
        right=1 - 0.2 / width,
        top=1 - (0.55 + 0.2 * len(title)) / height,
        bottom=(0.85 if len(labels) > 1 else 0.5) / height,
        wspace=0.06,
    )
    return {"settings": figure}


def _draw(ax: Axes, settings: SettingsTable, group: _Group) -> None:
    places = np.arange(len(group.means))
    for row in places[::2]:
        ax.axhspan(row - 0.5, row + 0.5, color="#f5f6f8", linewidth=0, zorder=0)
    for number, (name, style) in enumerate(variant_styles(settings.variants, settings.reference).items()):
        emphasised = name == settings.reference
        ax.errorbar(
            group.scale * group.means[name],
            places + (0.0 if settings.trained else DODGE * (number - (len(settings.variants) - 1) / 2)),
            xerr=group.scale * group.stds[name].fillna(0),
            linestyle="none",
            marker=MARKS[number % len(MARKS)],
            markersize=6.5 if emphasised else 5,
            color=style["color"],
            elinewidth=0.9,
            label=name,
            zorder=style["zorder"],
        )
    ax.set_title(group.title, fontsize=9.5, color=INK, loc="left")
    ax.set_xlabel("accuracy (%)" if settings.trained else group.unit, fontsize=9)
    if not settings.trained:
        ax.set_xlim(left=0)
    ax.tick_params(length=0, labelsize=8, labelcolor=INK)
    ax.grid(axis="x", color="#e1e4e8", linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ax.spines.values():
        side.set_visible(False)
