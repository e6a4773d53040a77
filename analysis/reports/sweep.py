"""Report the costs of a target or a round by a swept key, maps of two keys, and time against energy."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import pandas as pd
import typer
from matplotlib.figure import Figure

from edgefl.analysis.figures.pareto import pareto_figure
from edgefl.analysis.figures.sweep import (
    UNITS,
    heat_figure,
    label_of,
    lower_bounds,
    means_of,
    sweep_figure,
    words_of,
)
from edgefl.analysis.measures import sweep as numbers
from edgefl.analysis.measures.notes import on_power, own_notes
from edgefl.analysis.measures.results import OF_ROUND, TO_TARGET, Sweep
from edgefl.analysis.measures.scope import own_seeds, reference_of
from edgefl.analysis.measures.targets import Target, apart, check_known, target_of, untrained, with_peaks
from edgefl.analysis.measures.uncertainty import LEAST, shown_ends
from edgefl.analysis.measures.verdicts import EXACTLY, ratio_of, with_ends
from edgefl.analysis.page.formatting import (
    NOTHING,
    counts_of,
    lower_bound,
    unit_for,
    with_interval,
    with_spread,
)
from edgefl.analysis.page.markup import latex_table, markdown_table
from edgefl.analysis.page.report import Report, reporting
from edgefl.analysis.page.units import axis_of, bare, written
from edgefl.analysis.runs.choices import TARGET, Layout, Metric, Names, Out, Partial, Reference, Transpose
from edgefl.analysis.runs.load import Paths, Settings, given_runs, load_settings
from edgefl.analysis.runs.scenario_keys import differing, of_points, refuse_rounds, several_servers

POSITIVE = frozenset(UNITS) - {"accuracy_first"}
METRICS: dict[Metric, tuple[str, str | None]] = {  # metric -> its column with a target, and without a target
    "seconds": ("seconds_to_target", "latency_s"),
    "joules": ("joules_to_target", "round_energy_j"),
    "rounds": ("rounds_to_target", None),
    "accuracy": ("accuracy_first", "accuracy_first"),
}

Keys = Annotated[
    Sequence[str],
    typer.Option("--key", help=("Dotted key, or its last part; two for a map. Default: the swept number.")),
    list[str] | None,
]
Drawn = Annotated[
    Metric | None,
    typer.Option(
        help="What to draw: seconds, joules or rounds to the target (per round for runs without training), or "
        "accuracy of the first rounds. Default: seconds and joules; in a map, seconds."
    ),
]
Deviation = Annotated[
    bool, typer.Option("--deviation", help="Show standard deviations instead of 95 % intervals.")
]


@reporting
def sweep(
    *runs: Paths | Settings,
    partial: Partial = False,
    names: Names = (),
    out: Out = None,
    reference: Reference = None,
    target: Annotated[str | float | Target, typer.Option(help=f"{TARGET}."), str] = "95%",
    keys: Keys = (),
    metric: Drawn = None,
    transposed: Transpose = False,
    deviation: Deviation = False,
) -> Sweep:
    """Measure costs against a swept key and write sweep.csv, .md, .tex, and the figures as PNG and PDF.

    Args:
        runs: folders of studies or runs, or runs that have been read.
        partial: whether to include incomplete runs.
        names: names to show instead of the folders' names, in the order of the folders.
        out: folder to write; None for the runs' folder, `comparison` next to several folders, or a target's folder.
        reference: variant whose best accuracy over all settings defines relative targets; None for the study's
            reference.
        target: target accuracy: 0.8, or a share of the best accuracy: `95%`, `95% of NAME`, `95% of best`.
        keys: one swept key, or two for a map, in full or only the last part; by default the grid's only key,
            or all keys with numbers that differ.
        metric: name of the metric to draw; None for seconds and joules to the target, or in a map for seconds only.
        transposed: whether tables in LaTeX and Markdown have a column per value.
        deviation: whether to show standard deviations instead of 95 % intervals.

    Returns:
        The costs by value: `.table` is a data frame, `.plot()` draws. A notebook shows verdicts, table and figure.

    Raises:
        ValueError: no run is completed, no key or too many keys are swept, a key is unknown, the runs lack the
            metric, or the folder cannot be written.
    """
    goal, by_setting = target_of(target), given_runs(runs, load_settings, names=names, partial=partial)
    info, notes, trained = by_setting.info, by_setting.said(), by_setting.trained
    reference = reference_of(info, reference, notes)
    several = several_servers(info)
    if metric in ("rounds", "accuracy"):
        refuse_rounds(several, metric)
    notes += [f"{several}, so the costs of a round do not compare"] * bool(several and not trained)
    chosen = _chosen(points := of_points(info), keys or tuple(filter(None, [grid_key(by_setting)])))
    notes += [*own_notes(info), *on_power(points.values()), *numbers.on_followers(points, chosen)]
    notes += [untrained(goal, "costs are those of a round")] * (not trained)
    goals = with_peaks([goal], list(dict.fromkeys(info["variant"])), reference) if trained else ()
    table = numbers.table_of(by_setting, points, chosen, goals, reference, notes)
    for one in goals:
        check_known(one, bool(table["targets"].any()), reference)
    return Sweep(
        score=by_setting.first.score,
        table=table,
        keys=tuple(chosen),
        costs=_columns(metric, trained, bool(goals)),
        target=goals[0] if goals else None,
        reference=reference,
        seeds=tuple(sorted(int(seed) for seed in info["seed"].unique())),
        own_seeds=own_seeds(info, info["seed"]),
        layout=Layout(transposed=transposed, interval=not deviation),
        out=by_setting.first.folder(
            out, "-".join(filter(None, (apart(target), metric and f"metric-{metric}")))
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


def grid_key(runs: Settings) -> str | None:
    """Return the key of a study's grid if the grid has one axis, with settings that differ only in this number."""
    info = runs.info
    if any(len(setting) != 1 for setting in info["setting"]):
        return None
    points, axes = of_points(info), {axis for setting in info["setting"] for axis, _ in setting}
    keys = set()
    for variant in dict.fromkeys(info["variant"]):
        own = [point for (_, name), point in points.items() if name == variant]
        swept = differing(own)
        # the values of other keys may follow from the axis
        axis = next((key for key in swept if {bare(key), key.rpartition(".")[2]} & axes), None)
        if axis and all(numbers.follows(points, key, [axis]) for key in swept):
            swept = [axis]
        keys |= {tuple(swept)} if len(own) > 1 else set()
    one = next(iter(keys)) if len(keys) == 1 else ()
    return one[0] if len(one) == 1 and numbers.numeric(points, one[0]) else None


def _columns(metric: str | None, trained: bool, goals: bool) -> tuple[str, ...]:
    """Return the columns of the sweep's table that hold a metric, or by default time and energy."""
    if metric is None:
        return TO_TARGET if goals else OF_ROUND
    if metric not in METRICS:
        raise ValueError(f"no metric '{metric}': choose {', '.join(METRICS)}")
    column = METRICS[metric][0 if goals else 1]
    if column is None or (metric == "accuracy" and not trained):
        needs = (
            "runs with training" if not trained else "a target that all variants share, such as --target 0.8"
        )
        raise ValueError(f"metric '{metric}' needs {needs}: choose seconds or joules")
    return (column,)


def _chosen(points: Mapping[Any, Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Find the swept keys, either the requested keys or all keys with numbers that differ between points."""
    every = differing(points.values())
    swept = [key for key in every if numbers.numeric(points, key)]
    if not wanted:
        # keys may follow from others, such as a site's power from its bandwidth or path loss
        words = [key for key in every if key not in swept]
        swept = [key for n, key in enumerate(swept) if not numbers.follows(points, key, [*words, *swept[:n]])]
        if 1 <= len(swept) <= 2:
            return swept
        which = f"{', '.join(swept)}: choose one or two with --key"
        none = (
            "no numeric key, but an axis needs one: compare settings with edgefl settings; for costs, make them"
            " variants of a study, and use edgefl compare"
        )
        raise ValueError(f"the runs differ in {which if swept else none}")
    chosen = []
    for name in wanted:
        fitting = [key for key in every if key == name or key.endswith(f".{name}")]
        if len(fitting) != 1:
            raise ValueError(
                f"no key '{name}' in which the runs differ; they differ in {', '.join(every) or 'no key'}"
            )
        if fitting[0] not in swept:
            raise ValueError(f"'{fitting[0]}' is not a number in every run: it cannot be an axis")
        chosen.append(fitting[0])
    if len(chosen) > 2:
        raise ValueError("give at most two keys: one for a line, two for a map")
    return chosen


def headline(sweep: Sweep) -> pd.DataFrame:
    """Write a row per series and value, and a column per cost and ratio; the values are the index."""
    table, texts = sweep.table, dict[str, list[str]]()
    costs = TO_TARGET if sweep.target else OF_ROUND
    rows = [row for _, row in table.iterrows()]
    for cost in sweep.shown:
        means = means_of(table, cost)
        unit, size = unit_for(means, UNITS[cost])
        texts[label_of(cost, sweep.target, unit)] = [
            f"> {lower_bound(mean / size)}" if lower else _mean(row, cost, size, sweep.layout)
            for lower, mean, row in zip(lower_bounds(table, cost), means, rows, strict=True)
        ]
        if f"{cost}_ratio" in table:
            kind = "time" if cost == costs[0] else "energy"
            first = written(sweep.keys[0], sorted(table[sweep.keys[0]].unique()))[0]
            texts[f"{kind} over that at {first}"] = [_ratio(row, cost) for row in rows]
    labels = [axis_of(key, table[key]) for key in sweep.keys]
    several = table["series"].nunique() > 1 or table["series"].iloc[0] != "all"
    index = [
        ", ".join(
            [row["series"]] * several
            + [f"{row[key] / size:g}" for key, (_, size) in zip(sweep.keys, labels, strict=True)]
        )
        for row in rows
    ]
    written_table = pd.DataFrame(texts, index=index)
    written_table.index.name = ", ".join(["series"] * several + [label for label, _ in labels])
    return written_table


def _mean(row: pd.Series, cost: str, size: float, layout: Layout) -> str:
    """Write a mean with its interval: logarithmic for costs, which are above zero, linear for accuracies."""
    mean, half = row[f"{cost}_mean"] / size, row[f"{cost}_ci"] / size
    if layout.interval:
        return with_interval(mean, *shown_ends(mean, half, row["seeds"], positive=cost in POSITIVE))
    return with_spread(mean, row[f"{cost}_{layout.spread}"] / size)


def _ratio(row: pd.Series, cost: str) -> str:
    """Write a ratio with its interval, or with two seeds its range."""
    found = ratio_of(row, cost)
    if math.isnan(found.mean):
        return NOTHING
    if all(math.isclose(ratio, 1, rel_tol=EXACTLY) for ratio in (found.mean, *found.ends)):
        return "1"
    mean, ends = with_ends(found)
    return mean if found.pairs < 2 else f"{mean} ({ends.replace(' to ', '–')})"


def _caption(sweep: Sweep) -> str:
    """Return the caption of the sweep's table."""
    counts, spread = sweep.table["seeds"], "± standard deviation"
    if sweep.layout.interval:
        by = "t on a log scale" if POSITIVE.issuperset(sweep.shown) else "t, of costs on a log scale"
        spread = f"and {f'95 % interval ({by})' if max(counts) >= LEAST else 'range'}"
    several = f"{counts_of(counts, 'seed')}, mean {spread}"
    seeds = several if len(sweep.seeds) > 1 else sweep.named_seeds()
    return f"Costs against {' and '.join(sweep.keys)} ({seeds})"


def _explanations(sweep: Sweep) -> Iterator[str]:
    """Yield sentences that define the numbers in the sweep's table."""
    if "accuracy_first" in sweep.costs:
        yield (
            "The accuracy is the mean over the first training rounds of each session, and over recurring sessions, if"
            " there are any."
        )
    if sweep.target is None:
        yield (
            "A round's latency is that of the slowest device; energy is the sum over devices, without probe rounds."
        )
    else:
        owner = sweep.reference or str(sweep.table["variant"].iloc[0])
        yield (
            f"Costs of reaching {sweep.target.named(owner)} count from the start of the session, with"
            " probe rounds; they are means over recurring sessions, if there are any. A value after > is a lower"
            " bound: sessions that missed the target count with their whole length."
        )
        if sweep.target.relative:
            yield "This best accuracy is the highest over all settings, for the same seed and session."
    if len(sweep.keys) == 1 and len(sweep.seeds) > 1:
        yield (
            "Intervals are Student's t on a logarithmic scale, or the range of two seeds. Ratios are paired by seed:"
            " the same seed has the same devices, movement and channel at each value."
        )


def report(sweep: Sweep) -> Report:
    """Return the report of a sweep, with the costs by value."""
    title, table = _caption(sweep), headline(sweep)
    axis = str(table.index.name)
    # LaTeX names the axis even if it is in the head
    turned, corner = (table.T, "") if sweep.layout.transposed else (table, axis)
    return Report.of(
        sweep,
        title,
        verdicts=numbers.verdicts(sweep),
        tables=[("", table)],
        small_print=list(_explanations(sweep)),
        look=[
            *(("Figure", figure.name, " and .pdf") for figure in sweep.figures),
            ("More", "sweep.md", "; --explain prints how to read this"),
        ],
        emphasised=None,
        above=[markdown_table(turned, corner)],
        latex=latex_table(title, turned, axis),
    )


def figures(sweep: Sweep) -> dict[str, Figure]:
    """Draw the costs by value, and time against energy."""
    drawn = heat_figure(sweep) if len(sweep.keys) == 2 else sweep_figure(sweep)
    pareto = [_pareto(sweep)] if len(sweep.figures) > 1 else []
    return dict(zip((file.stem for file in sweep.figures), [drawn, *pareto], strict=True))


def _pareto(sweep: Sweep) -> Figure:
    """Draw time against energy, a point for each value of the swept key."""
    table, keys = sweep.table, list(sweep.keys)
    time, energy = TO_TARGET if sweep.target else OF_ROUND
    named, sizes = zip(*(axis_of(key, table[key]) for key in keys), strict=True)
    values = table[keys].itertuples(index=False, name=None)
    points = {
        "series": table["series"],
        "label": [", ".join(f"{v / size:g}" for v, size in zip(row, sizes, strict=True)) for row in values],
        "time_s": means_of(table, time),
        "energy_j": means_of(table, energy),
        "missed": lower_bounds(table, time),
    }
    words = words_of(time, sweep.target), words_of(energy, sweep.target)
    return pareto_figure(pd.DataFrame(points), words, f"numbers: {', '.join(named)}")
