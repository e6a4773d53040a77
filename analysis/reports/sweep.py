"""A swept key: what a target, or a round, costs against its value; maps of two keys; time against energy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.pareto import pareto_figure
from edgefl.analysis.figures.sweep import heat_figure, lower_bounds, sweep_figure, words_of
from edgefl.analysis.measures import averages, metrics
from edgefl.analysis.measures.results import Sweep
from edgefl.analysis.measures.scope import have_rounds, reference_of, scope_of
from edgefl.analysis.measures.targets import Target, target_of, usable
from edgefl.analysis.measures.uncertainty import ends, paired_ratio
from edgefl.analysis.page.units import axis_of
from edgefl.analysis.reports.sweep_words import report
from edgefl.analysis.runs.choices import FIRST_ROUNDS, Layout, Metric
from edgefl.analysis.runs.load import Paths, Setting, load_settings, together
from edgefl.analysis.runs.scenario_keys import differing, of_points
from edgefl.analysis.runs.servers import refuse_rounds, several_servers

TRAINED = ("seconds_to_target", "joules_to_target")
UNTRAINED = ("latency_s", "round_energy_j")
AT_LEAST = {"seconds_to_target": "session_s", "joules_to_target": "session_j"}
METRICS: dict[Metric, tuple[str, str | None]] = {  # name -> column with a target to reach, and without one
    "seconds": ("seconds_to_target", "latency_s"),
    "joules": ("joules_to_target", "round_energy_j"),
    "rounds": ("rounds_to_target", None),
    "accuracy": ("accuracy_first", "accuracy_first"),
}
MEASURED = ["seconds_to_target", "joules_to_target", "rounds_to_target", "accuracy_first"]


def sweep(
    path: Paths,
    *,
    keys: Sequence[str] = (),
    out: str | Path | None = None,
    reference: str | None = None,
    target: str | float | Target = "95%",
    metric: Metric | None = None,
    layout: Layout | None = None,
    partial: bool = False,
) -> Sweep:
    """Measure costs against a swept key and write sweep.csv, .md, .tex, and the figures as PNG and PDF.

    Args:
        path: folder of a study whose variants or settings differ in the key, or several.
        keys: one or two, dotted or by their last part; none: the numbers in which the runs differ.
        out: where to write, by default the folder of the runs.
        reference: the variant whose peak a relative target is of, by default the one that the runs name.
        target: see `targets.target_of`.
        metric: what is drawn against the key, or in the map: seconds, joules or rounds to the target (without one, of
            a round), or accuracy over the first rounds of a session; None: seconds and joules, in a map seconds.

    Raises:
        ValueError: no completed run, no key that is swept or too many, no such key, a metric that the runs do not
            have, or a folder that cannot be written.
    """
    goal = target_of(target)
    by_setting = load_settings(path, partial=partial)
    info, notes = together(by_setting)
    reference = reference_of(info, reference, notes)
    points = of_points(info)
    if metric in ("rounds", "accuracy"):
        refuse_rounds(several_servers(info), metric)
    chosen = _chosen(points, keys)
    names = list(dict.fromkeys(info["variant"]))
    trained = any(runs.rounds["accuracy"].notna().any() for runs in by_setting.values())
    goals = usable([goal], names, reference, notes) if trained else []
    measured = []
    for setting, runs in by_setting.items():
        part = _measure(runs.info, runs.rounds, runs.sessions, goals, reference, notes)
        part.insert(0, "setting", [setting] * len(part))
        measured.append(part)
    by_seed = pd.concat(measured, ignore_index=True)
    table = _table(by_seed, points, chosen)
    folder = next(iter(by_setting.values())).folder(out)
    costs = (TRAINED if goals else UNTRAINED) if metric is None else (_column(metric, trained, bool(goals)),)
    if len(chosen) == 1:
        _add_ratios(table, by_seed, TRAINED if goals else UNTRAINED)
    first_figure = "sweep_map" if len(chosen) == 2 else "sweep"
    result = Sweep(
        score=next(iter(by_setting.values())).score,
        table=table,
        keys=tuple(chosen),
        costs=costs,
        target=goals[0] if goals else None,
        reference=reference,
        seeds=tuple(sorted(int(seed) for seed in info["seed"].unique())),
        layout=layout or Layout(interval=True),
        out=folder,
        figures=tuple(folder / f"{name}.png" for name in (first_figure, "sweep_pareto")),
        notes=tuple(dict.fromkeys(notes)),
    )
    draw = heat_figure if len(chosen) == 2 else sweep_figure
    figures = {first_figure: draw(result), "sweep_pareto": _pareto(result)}
    replace(report(result), figures=figures).write()
    return result


def grid_key(path: Paths, *, partial: bool = False) -> str | None:
    """Find the key of a study's grid if that is one number: one axis, whose settings differ in this key alone."""
    info, _ = together(load_settings(path, partial=partial))
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


def _pareto(result: Sweep) -> Figure:
    """Draw time against energy, a point for each value."""
    table, keys = result.table, list(result.keys)
    time, energy = TRAINED if result.target else UNTRAINED
    named, sizes = zip(*(axis_of(key, table[key]) for key in keys), strict=True)
    values = table[keys].itertuples(index=False, name=None)
    points = {
        "series": table["series"],
        "label": [", ".join(f"{v / size:g}" for v, size in zip(row, sizes, strict=True)) for row in values],
        "time_s": table[f"{time}_mean"],
        "energy_j": table[f"{energy}_mean"],
        "missed": lower_bounds(table, time),
    }
    words = words_of(time, result.target), words_of(energy, result.target)
    return pareto_figure(pd.DataFrame(points), words, f"numbers: {', '.join(named)}")


def _chosen(points: Mapping[Any, Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Find the swept keys: the requested ones, or all numbers in which the points differ."""
    every = differing(points.values())
    swept = [key for key in every if all(_is_number(point.get(key)) for point in points.values())]
    if not wanted:
        if 1 <= len(swept) <= 2:
            return swept
        which = (
            f"differ in {', '.join(swept)}: choose one or two with --key" if swept else "differ in no number"
        )
        raise ValueError(f"the runs {which}; numbers are needed for an axis")
    chosen = []
    for name in wanted:
        fitting = [key for key in every if key == name or key.endswith(f".{name}")]
        if len(fitting) != 1:
            raise ValueError(
                f"no key '{name}' in which the runs differ; they differ in {', '.join(every) or 'none'}"
            )
        if fitting[0] not in swept:
            raise ValueError(f"'{fitting[0]}' is no number in every run: it cannot be an axis")
        chosen.append(fitting[0])
    if len(chosen) > 2:
        raise ValueError("at most two keys: a line, or a map")
    return chosen


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _measure(
    info: pd.DataFrame,
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    goals: Sequence[Target],
    reference: str | None,
    notes: list[str],
) -> pd.DataFrame:
    """Measure the runs of one setting: a row per variant and seed."""
    for path in info.loc[~have_rounds(info, rounds), "path"]:
        notes.append(f"left out {path}: it has no rounds")
    costs = metrics.totals(rounds)
    detail = metrics.session_kinds(rounds, sessions)
    scope_of(detail, [])
    scope = detail.loc[detail["in_scope"], metrics.SESSION]
    times = metrics.time_to_target(
        rounds, sessions, reference=reference, target=goals[0] if goals else 1.0
    ).merge(metrics.accuracy_first_rounds(rounds, FIRST_ROUNDS), on=metrics.SESSION, how="left")
    times = times.merge(scope, on=metrics.SESSION)
    known = times["rounds_to_target"].notna() & bool(goals)
    times["missed"] = known & times["rounds_to_target"].eq(float("inf"))
    times["targets"] = known
    for name, whole in AT_LEAST.items():
        times[name] = times[name].mask(times["missed"], times[whole]).where(known)
    times["rounds_to_target"] = times["rounds_to_target"].where(known)
    by_run = times.groupby(metrics.RUN)
    means = by_run[MEASURED].mean().join(by_run[["missed", "targets"]].sum())
    return costs.merge(means.reset_index(), on=metrics.RUN, how="left")


def _table(
    by_seed: pd.DataFrame, points: Mapping[Any, Mapping[str, Any]], keys: Sequence[str]
) -> pd.DataFrame:
    names = _series(points, keys)
    wanted = [*MEASURED, "latency_s", "round_energy_j", "energy_j", "simulated_s"]
    rows = []
    for (setting, variant), group in by_seed.groupby(["setting", "variant"], sort=False):
        point = (setting, variant)
        row: dict[str, Any] = {"series": names[point], **{key: points[point][key] for key in keys}}
        row |= {"setting": _words(setting), "variant": variant}
        row["seeds"] = len(group)
        for name in wanted:
            row |= averages.spread(name, group[name].astype(float))
        rows.append(row | {"not_reached": int(group["missed"].sum()), "targets": int(group["targets"].sum())})
    order = list(dict.fromkeys(names.values()))
    rows.sort(key=lambda row: (order.index(row["series"]), *(row[key] for key in keys)))
    table = pd.DataFrame(rows)
    for name in wanted:
        half = table[f"{name}_ci"]
        both = [ends(*pair) for pair in zip(table[f"{name}_mean"], half, strict=True)]
        table[f"{name}_low"], table[f"{name}_high"] = zip(*both, strict=True)
    return table


def _add_ratios(table: pd.DataFrame, by_seed: pd.DataFrame, costs: Sequence[str]) -> None:
    """Add NAME_ratio, _ratio_low, _ratio_high and _pairs: the cost over that at the series' first value, same seeds.

    They are NaN where a target was missed: a bound over a bound says nothing.
    """
    words = by_seed["setting"].map(_words)
    for cost in costs:
        found = []
        for _, own in table.groupby("series", sort=False):
            by_value = []
            for row in own.to_dict("records"):
                values = by_seed[(words == row["setting"]) & (by_seed["variant"] == row["variant"])]
                known = values[cost].astype(float).where(values["missed"] == 0)
                by_value.append(known.set_axis(values["seed"]))
            for values in by_value:
                both = pd.concat([values, by_value[0]], axis=1, join="inner").to_numpy(float)
                found.append(paired_ratio(both[:, 0], both[:, 1]))
        table[f"{cost}_ratio"] = [one.mean for one in found]
        table[f"{cost}_ratio_low"] = [one.low for one in found]
        table[f"{cost}_ratio_high"] = [one.high for one in found]
        table[f"{cost}_pairs"] = [one.pairs for one in found]


def _words(setting: Setting) -> str:
    return " ".join(f"{axis} {label}" for axis, label in setting)


def _series(points: Mapping[Any, Mapping[str, Any]], keys: Sequence[str]) -> dict[Any, str]:
    """Name for each point the series it belongs to: points that differ in the swept keys only are one."""
    others = [key for key in differing(points.values()) if key not in keys]
    # a component's parameters follow from its name, where that differs
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
