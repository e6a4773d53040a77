"""Report a swept key: costs of a target or a round by its value, maps of two keys, and time against energy."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from matplotlib.figure import Figure

from edgefl.analysis.figures.pareto import pareto_figure
from edgefl.analysis.figures.sweep import UNITS, heat_figure, label_of, lower_bounds, sweep_figure, words_of
from edgefl.analysis.measures import averages, metrics, uncertainty
from edgefl.analysis.measures.averages import Costs
from edgefl.analysis.measures.results import OF_ROUND, TO_TARGET, Sweep
from edgefl.analysis.measures.scope import reference_of, roundless, scope_of
from edgefl.analysis.measures.targets import Target, target_of, usable
from edgefl.analysis.measures.uncertainty import Ratio
from edgefl.analysis.measures.verdicts import Versus
from edgefl.analysis.page.formatting import NOTHING, amount, named_seeds, unit_for, with_interval, with_spread
from edgefl.analysis.page.markup import latex_table, markdown_table
from edgefl.analysis.page.report import Report, reporting
from edgefl.analysis.page.units import axis_of, bare, written
from edgefl.analysis.runs.choices import TARGET, Layout, Metric, Reference, Transpose
from edgefl.analysis.runs.load import Paths, Settings, named
from edgefl.analysis.runs.scenario_keys import differing, of_points
from edgefl.analysis.runs.servers import refuse_rounds, several_servers

POSITIVE = frozenset(UNITS) - {"accuracy_first"}
MEASURED = ("seconds_to_target", "joules_to_target", "rounds_to_target", "accuracy_first")
RATIO = {"ratio": "mean", "ratio_low": "low", "ratio_high": "high", "pairs": "pairs"}  # ending -> of `Ratio`
METRICS: dict[Metric, tuple[str, str | None]] = {  # name -> column with a target to reach, and without one
    "seconds": ("seconds_to_target", "latency_s"),
    "joules": ("joules_to_target", "round_energy_j"),
    "rounds": ("rounds_to_target", None),
    "accuracy": ("accuracy_first", "accuracy_first"),
}


@reporting
def sweep(
    runs: Paths | Settings,
    *,
    out: str | Path | None = None,
    reference: Reference = None,
    target: Annotated[str | float | Target, typer.Option(help=f"{TARGET}."), str] = "95%",
    keys: Annotated[
        Sequence[str],
        typer.Option("--key", help=("Dotted key, or its end; two for a map. Default: the swept number.")),
        list[str] | None,
    ] = (),
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="What to draw: seconds, joules or rounds to the target (per round for runs without training), or "
            "accuracy of the first rounds. Default: seconds and joules; in a map, seconds."
        ),
    ] = None,
    transposed: Transpose = False,
    deviation: Annotated[
        bool, typer.Option("--deviation", help="Show standard deviations instead of 95 % intervals.")
    ] = False,
) -> Sweep:
    """Measure costs against a swept key and write sweep.csv, .md, .tex, and the figures as PNG and PDF.

    Raises:
        ValueError: no completed run, no swept key or too many, no such key, a metric that the runs do not
            have, or a folder that cannot be written.
    """
    goal = target_of(target)
    by_setting = Settings.of(runs)
    info, notes, trained = by_setting.info, by_setting.said(), by_setting.trained
    reference = reference_of(info, reference, notes)
    points = of_points(info)
    if metric in ("rounds", "accuracy"):
        refuse_rounds(several_servers(info), metric)
    chosen = _chosen(points, keys)
    goals = usable([goal], list(dict.fromkeys(info["variant"])), reference, notes) if trained else []
    measured = _by_seed(by_setting, goals, reference, notes)
    table = _table(measured, points, chosen)
    costs = (TO_TARGET if goals else OF_ROUND) if metric is None else (_column(metric, trained, bool(goals)),)
    if len(chosen) == 1:
        _add_ratios(table, measured, TO_TARGET if goals else OF_ROUND)
    table["setting"] = [named(setting, " ") for setting in table["setting"]]
    return Sweep(
        score=by_setting.first.score,
        table=table,
        keys=tuple(chosen),
        costs=costs,
        target=goals[0] if goals else None,
        reference=reference,
        seeds=tuple(sorted(int(seed) for seed in info["seed"].unique())),
        layout=Layout(transposed=transposed, interval=not deviation),
        out=by_setting.first.folder(out),
        notes=tuple(dict.fromkeys(notes)),
    )


def _by_seed(by_setting: Settings, goals: Sequence[Target], reference: str | None, notes: list[str]) -> Costs:
    """Measure all runs: a row per setting, variant and seed; a note names runs that are left out."""
    parts = []
    for setting, runs in by_setting.items():
        notes += [f"left out {path}: it has no rounds" for path in roundless(runs)]
        kinds = metrics.session_kinds(runs.rounds, runs.sessions)
        detail = averages.with_metrics(kinds, runs.rounds, runs.sessions, reference, goals)
        scope_of(detail, [])
        by_run = averages.bounded(detail[detail["in_scope"]]).groupby(metrics.RUN)
        means = by_run[list(MEASURED)].mean().join(by_run[["missed", "targets"]].sum()).reset_index()
        part = metrics.totals(runs.rounds).merge(means, on=metrics.RUN, how="left")
        parts.append(part.assign(setting=[setting] * len(part)))
    return Costs(pd.concat(parts, ignore_index=True), ("setting",))


def _table(costs: Costs, points: Mapping[Any, Mapping[str, Any]], keys: Sequence[str]) -> pd.DataFrame:
    """Average over seeds: a row per series and value."""
    names, wanted = _series(points, keys), [*MEASURED, *OF_ROUND, "energy_j", "simulated_s"]
    table = costs.table(wanted, list(dict.fromkeys(costs.by_seed["variant"])))
    places = list(zip(table["setting"], table["variant"], strict=True))
    table.insert(0, "series", [names[place] for place in places])
    for number, key in enumerate(keys, start=1):
        table.insert(number, key, [points[place][key] for place in places])
    counts = costs.by_seed.groupby(["setting", "variant"])[["missed", "targets"]].sum()
    for column, counted in (("not_reached", "missed"), ("targets", "targets")):
        table[column] = [int(counts.loc[[place], counted].iloc[0]) for place in places]
    ends = {
        name: [
            uncertainty.ends(*pair) for pair in zip(table[f"{name}_mean"], table[f"{name}_ci"], strict=True)
        ]
        for name in wanted
    }
    for name in wanted:
        table[f"{name}_low"], table[f"{name}_high"] = zip(*ends[name], strict=True)
    order = {name: place for place, name in enumerate(dict.fromkeys(names.values()))}
    return table.sort_values(
        ["series", *keys],
        key=lambda column: column.map(order) if column.name == "series" else column,
        kind="stable",
        ignore_index=True,
    )


def _add_ratios(table: pd.DataFrame, costs: Costs, names: Sequence[str]) -> None:
    """Add NAME_ratio, _ratio_low, _ratio_high and _pairs: costs over those at the series' first value, by seed.

    They are NaN if a target was missed: a ratio of bounds means nothing.
    """
    by_seed = costs.by_seed.assign(
        **{name: costs.by_seed[name].where(costs.by_seed["missed"] == 0) for name in names}
    )
    reached, first = (
        Costs(by_seed, costs.at),
        table.groupby("series", sort=False)[["setting", "variant"]].transform("first"),
    )
    both = list(zip(table[["setting", "variant"]].to_dict("records"), first.to_dict("records"), strict=True))
    for name in names:
        found = [reached.ratio(name, one, base) for one, base in both]
        for ending, attribute in RATIO.items():
            table[f"{name}_{ending}"] = [getattr(one, attribute) for one in found]


def _series(points: Mapping[Any, Mapping[str, Any]], keys: Sequence[str]) -> dict[Any, str]:
    """Return each point's series by name: points that differ only in the swept keys share one."""
    others = [key for key in differing(points.values()) if key not in keys]
    # if the component's name differs, its parameters follow from it
    others = [key for key in others if not any(key.startswith(f"{other}.") for other in others)]
    groups: dict[tuple[str, ...], list[Any]] = {}
    for place, point in points.items():
        groups.setdefault(tuple(repr(point.get(key)) for key in others), []).append(place)
    names = {}
    variants = [tuple(dict.fromkeys(variant for _, variant in group)) for group in groups.values()]
    by_variant = all(len(own) == 1 for own in variants) and len(set(variants)) == len(variants)
    for values, group in groups.items():
        words = ", ".join(
            f"{key.rpartition('.')[2]} {value.strip(chr(39))}"
            for key, value in zip(others, values, strict=True)
        )
        for place in group:
            names[place] = str(place[1]) if by_variant and others else words or "all"
    return names


def grid_key(runs: Paths | Settings) -> str | None:
    """Return the key of a study's grid if it sweeps one number: one axis of settings that differ only in this key."""
    info = Settings.of(runs).info
    if any(len(setting) != 1 for setting in info["setting"]):
        return None
    points = of_points(info)
    keys = set()
    for variant in dict.fromkeys(info["variant"]):
        own = [point for (_, name), point in points.items() if name == variant]
        keys |= {tuple(differing(own))} if len(own) > 1 else set()
    one = next(iter(keys)) if len(keys) == 1 else ()
    return (
        one[0] if len(one) == 1 and all(_is_number(point.get(one[0])) for point in points.values()) else None
    )


def _column(metric: str, trained: bool, goals: bool) -> str:
    """Find the column of a metric."""
    if metric not in METRICS:
        raise ValueError(f"no metric '{metric}': choose {', '.join(METRICS)}")
    column = METRICS[metric][0 if goals else 1]
    if column is None or (metric == "accuracy" and not trained):
        needs = (
            "runs with training" if not trained else "a target that all variants share, such as --target 0.8"
        )
        raise ValueError(f"metric '{metric}' needs {needs}: choose seconds or joules")
    return column


def _chosen(points: Mapping[Any, Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Find the swept keys: the requested ones, or all keys with numbers in which the points differ."""
    every = differing(points.values())
    swept = [key for key in every if all(_is_number(point.get(key)) for point in points.values())]
    if not wanted:
        if 1 <= len(swept) <= 2:
            return swept
        which = (
            f"differ in {', '.join(swept)}: choose one or two with --key" if swept else "differ in no number"
        )
        raise ValueError(f"the runs {which}, and an axis needs numbers")
    chosen = []
    for name in wanted:
        fitting = [key for key in every if key == name or key.endswith(f".{name}")]
        if len(fitting) != 1:
            raise ValueError(
                f"no key '{name}' in which the runs differ; they differ in {', '.join(every) or 'none'}"
            )
        if fitting[0] not in swept:
            raise ValueError(f"'{fitting[0]}' is not a number in every run: it cannot be an axis")
        chosen.append(fitting[0])
    if len(chosen) > 2:
        raise ValueError("give at most two keys: one for a line, two for a map")
    return chosen


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def headline(sweep: Sweep) -> pd.DataFrame:
    """Write a row per value, a column per series and cost; the values are the index."""
    texts: dict[str, list[str]] = {}
    places = sweep.table[list(sweep.keys)].drop_duplicates().sort_values(list(sweep.keys))
    labels = [axis_of(key, sweep.table[key]) for key in sweep.keys]
    for cost in sweep.costs:
        unit, size = unit_for(sweep.table[f"{cost}_mean"], UNITS[cost])
        for series, rows in sweep.table.groupby("series", sort=False):
            own = places.merge(rows, on=list(sweep.keys), how="left")
            lead = "" if series == "all" else f"{series}: "
            texts[lead + label_of(cost, sweep.target, unit)] = [
                f"> {amount(row[f'{cost}_mean'] / size)}" if lower else _mean(row, cost, size, sweep.layout)
                for lower, (_, row) in zip(lower_bounds(own, cost), own.iterrows(), strict=True)
            ]
            if f"{cost}_ratio" in own:
                kind = words_of(cost, sweep.target).partition(" to ")[0]
                first = written(sweep.keys[0], places[sweep.keys[0]].tolist())[0]
                texts[f"{lead}{kind}, ratio to {first}"] = [_ratio(row, cost) for _, row in own.iterrows()]
    index = [
        ", ".join(f"{value / size:g}" for value, (_, size) in zip(row, labels, strict=True))
        for row in places.to_numpy()
    ]
    table = pd.DataFrame(texts, index=index)
    table.index.name = ", ".join(label for label, _ in labels)
    return table


def _mean(row: pd.Series, cost: str, size: float, layout: Layout) -> str:
    """Write a mean with its interval: logarithmic for costs, which are above zero, linear for accuracies."""
    mean = row[f"{cost}_mean"] / size
    if layout.interval and cost in POSITIVE:
        return with_interval(mean, row[f"{cost}_low"] / size, row[f"{cost}_high"] / size)
    return with_spread(mean, row[f"{cost}_{layout.spread}"] / size)


def _ratio(row: pd.Series, cost: str) -> str:
    found = (row[f"{cost}_ratio"], row[f"{cost}_ratio_low"], row[f"{cost}_ratio_high"])
    return NOTHING if math.isnan(found[0]) else "1" if found == (1, 1, 1) else with_interval(*found)


def verdicts(sweep: Sweep) -> list[str]:
    """Compare each series' last value with its first, paired by seed."""
    time, energy = TO_TARGET if sweep.target else OF_ROUND
    if len(sweep.keys) > 1 or f"{time}_ratio" not in sweep.table:
        return []
    task = f"to {sweep.target.short}" if sweep.target else "for a round"
    key, sentences = sweep.keys[0], []
    for series, rows in sweep.table.groupby("series", sort=False):
        if len(rows) < 2:
            continue
        first, *_, last = written(key, rows[key].tolist())
        row = rows.iloc[-1]
        of_time, of_energy = (
            Ratio(**{attribute: row[f"{cost}_{ending}"] for ending, attribute in RATIO.items()})
            for cost in (time, energy)
        )
        name = key.rpartition(".")[2] if first.replace(".", "").isdigit() else bare(key)
        words = name.replace("_", " ")
        lead = "" if series == "all" else f"{series}: "
        if not of_time.pairs:
            sentences.append(f"{lead}a target was missed at {words} {first} or {last}, so there is no ratio.")
            continue
        sentences.append(lead + Versus(f"{words} {last}", first, of_time, of_energy, task).sentence())
    return sentences


def _caption(sweep: Sweep) -> str:
    """Return the caption of the table."""
    seeds, several = named_seeds(sweep.seeds), len(sweep.seeds) > 1
    if sweep.layout.interval and several:
        seeds = f"{len(sweep.seeds)} seeds, mean and 95 % interval"
    return f"Costs against {' and '.join(sweep.keys)} ({seeds})"


def _explanations(sweep: Sweep) -> Iterator[str]:
    """Yield sentences that define the numbers."""
    if sweep.costs == ("accuracy_first",):
        yield "Means over the first training rounds of each session, and over recurring sessions, if there are any."
    elif sweep.target is None:
        yield (
            "Round latency: until the slowest device is done. Energy: of all devices. Probe rounds are left out."
        )
    else:
        yield (
            f"To reach {sweep.target.named(sweep.reference)}, from the start of the session, probe rounds "
            "included; means over recurring sessions, if there are any. >: a lower bound; sessions that "
            "missed the target count with their whole length."
        )
    if len(sweep.keys) == 1 and len(sweep.seeds) > 1:
        yield (
            "Intervals are Student's t on a logarithmic scale, ratios paired by seed: the same seed has the same"
            " devices, movement and channel at each value."
        )


def report(sweep: Sweep) -> Report:
    """Return the report of a sweep: costs by value."""
    title, table = _caption(sweep), headline(sweep)
    axis = str(table.index.name)
    # LaTeX names the axis even if it is in the head
    turned, corner = (table.T, "") if sweep.layout.transposed else (table, axis)
    return Report.of(
        sweep,
        title,
        verdicts=verdicts(sweep),
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
    first, second = (figure.stem for figure in sweep.figures)
    drawn = heat_figure(sweep) if len(sweep.keys) == 2 else sweep_figure(sweep)
    return {first: drawn, second: _pareto(sweep)}


def _pareto(sweep: Sweep) -> Figure:
    """Draw time against energy, a point for each value."""
    table, keys = sweep.table, list(sweep.keys)
    time, energy = TO_TARGET if sweep.target else OF_ROUND
    named, sizes = zip(*(axis_of(key, table[key]) for key in keys), strict=True)
    values = table[keys].itertuples(index=False, name=None)
    points = {
        "series": table["series"],
        "label": [", ".join(f"{v / size:g}" for v, size in zip(row, sizes, strict=True)) for row in values],
        "time_s": table[f"{time}_mean"],
        "energy_j": table[f"{energy}_mean"],
        "missed": lower_bounds(table, time),
    }
    words = words_of(time, sweep.target), words_of(energy, sweep.target)
    return pareto_figure(pd.DataFrame(points), words, f"numbers: {', '.join(named)}")
