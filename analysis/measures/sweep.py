"""Compute the numbers of a sweep: costs of each value over seeds, and their ratio to the first value."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from edgefl.analysis.measures import averages, metrics
from edgefl.analysis.measures.scope import roundless, scope_of
from edgefl.analysis.measures.targets import Target
from edgefl.analysis.measures.uncertainty import ends, paired_ratio
from edgefl.analysis.measures.verdicts import COSTS
from edgefl.analysis.runs.load import Runs, Settings, named
from edgefl.analysis.runs.scenario_keys import differing

MEASURED = ["seconds_to_target", "joules_to_target", "rounds_to_target", "accuracy_first"]


def by_seed(
    by_setting: Settings, goals: Sequence[Target], reference: str | None, notes: list[str]
) -> pd.DataFrame:
    """Measure all runs: a row per setting, variant and seed; a note names runs that are left out."""
    parts = []
    for setting, runs in by_setting.items():
        notes += [f"left out {path}: it has no rounds" for path in roundless(runs)]
        part = _measure(runs, goals, reference)
        part.insert(0, "setting", [setting] * len(part))
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _measure(runs: Runs, goals: Sequence[Target], reference: str | None) -> pd.DataFrame:
    """Measure the runs of one setting: a row per variant and seed."""
    detail = averages.with_metrics(
        metrics.session_kinds(runs.rounds, runs.sessions), runs.rounds, runs.sessions, reference, goals
    )
    scope_of(detail, [])
    times = detail[detail["in_scope"]]
    known, missed = times["rounds_to_target"].notna(), times["rounds_to_target"].eq(float("inf"))
    bounds = {name: times[name].mask(missed, times[whole]) for name, whole in COSTS.items()}
    by_run = times.assign(missed=missed, targets=known, **bounds).groupby(metrics.RUN)
    means = by_run[MEASURED].mean().join(by_run[["missed", "targets"]].sum())
    return metrics.totals(runs.rounds).merge(means.reset_index(), on=metrics.RUN, how="left")


def table_of(
    by_seed: pd.DataFrame, points: Mapping[Any, Mapping[str, Any]], keys: Sequence[str]
) -> pd.DataFrame:
    names = _series(points, keys)
    wanted = [*MEASURED, "latency_s", "round_energy_j", "energy_j", "simulated_s"]
    rows = []
    for (setting, variant), group in by_seed.groupby(["setting", "variant"], sort=False):
        point = (setting, variant)
        row: dict[str, Any] = {"series": names[point], **{key: points[point][key] for key in keys}}
        row |= {"setting": named(setting, " "), "variant": variant}
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


def add_ratios(table: pd.DataFrame, by_seed: pd.DataFrame, costs: Sequence[str]) -> None:
    """Add NAME_ratio, _ratio_low, _ratio_high and _pairs: costs over those at the series' first value, by seed.

    They are NaN if a target was missed: a ratio of bounds means nothing.
    """
    words = by_seed["setting"].map(lambda setting: named(setting, " "))
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
        for ending, field in (
            ("ratio", "mean"),
            ("ratio_low", "low"),
            ("ratio_high", "high"),
            ("pairs", "pairs"),
        ):
            table[f"{cost}_{ending}"] = [getattr(one, field) for one in found]


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
