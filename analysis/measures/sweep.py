"""Compute the costs of a sweep's values over seeds, and compare them with the costs of the first value."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from edgefl.analysis.measures import averages, metrics
from edgefl.analysis.measures.averages import Costs
from edgefl.analysis.measures.notes import BAND
from edgefl.analysis.measures.results import OF_ROUND, TO_TARGET, Sweep
from edgefl.analysis.measures.scope import left_out, roundless, scope_of
from edgefl.analysis.measures.targets import Target
from edgefl.analysis.measures.uncertainty import shown_ends
from edgefl.analysis.measures.verdicts import LOWER_TARGET, ratio_columns, ratio_of, unknown, versus
from edgefl.analysis.page.units import bare, written
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.load import Settings, named
from edgefl.analysis.runs.scenario_keys import differing

MEASURED = ("seconds_to_target", "joules_to_target", "rounds_to_target", "accuracy_first")
Place = Any  # setting and variant
Points = Mapping[Place, Mapping[str, Any]]  # dotted key -> value
Bounds = Mapping[Place, Mapping[str, object]]  # what `averages.reached` returns


def _measured(
    by_setting: Settings, goals: Sequence[Target], reference: str | None, notes: list[str]
) -> tuple[Costs, Bounds]:
    """Measure the costs of all runs, a row per setting, variant and seed; a note names the runs that are left out."""
    totals, details, rounds = [], [], []
    wanted = _wanted(by_setting, goals[0], reference) if goals else None
    for setting, runs in by_setting.items():
        notes += [f"left out {path}: it has no rounds" for path in roundless(runs)]
        kinds = metrics.session_kinds(runs.rounds, runs.sessions)
        detail = averages.with_metrics(kinds, runs.rounds, runs.sessions, reference, goals, wanted)
        details.append(detail.assign(setting=[setting] * len(detail)))
        total = metrics.totals(runs.rounds)
        totals.append(total.assign(setting=[setting] * len(total)))
        rounds.append(runs.rounds.assign(variant=runs.rounds["variant"] + f" {setting}"))
    detail, run = pd.concat(details, ignore_index=True), ["setting", *metrics.RUN]
    # only sessions and first rounds that all settings have are compared
    settings = [f"{variant} {setting}" for variant, setting in detail[["variant", "setting"]].to_numpy()]
    scoped = detail.assign(variant=settings).drop(columns="accuracy_first")
    first = metrics.accuracy_first_rounds(pd.concat(rounds, ignore_index=True), FIRST_ROUNDS)
    detail["accuracy_first"] = scoped.merge(first, on=metrics.SESSION, how="left")[
        "accuracy_first"
    ].to_numpy()
    scope_of(scoped, [])
    notes += left_out(scoped)
    own = scoped["in_scope"]
    reached = {
        place: averages.reached(spells[own[spells.index]])
        for place, spells in detail.groupby(["setting", "variant"])
    }
    means = detail[own].groupby(run)[list(MEASURED)].mean().reset_index()
    return Costs(pd.concat(totals, ignore_index=True).merge(means, on=run, how="left"), ("setting",)), reached


def _wanted(by_setting: Settings, goal: Target, reference: str | None) -> pd.DataFrame:
    """Return the accuracy to reach in each session, one for all settings: a share of the best over all settings.

    If each setting had a target of its own, a setting that learns nothing would reach it at once.
    """
    own = [
        metrics.target_accuracy(runs.rounds, reference=reference, target=goal) for runs in by_setting.values()
    ]
    return pd.concat(own).groupby(metrics.SPELL, as_index=False).max()


def table_of(
    by_setting: Settings,
    points: Points,
    keys: Sequence[str],
    goals: Sequence[Target],
    reference: str | None,
    notes: list[str],
) -> pd.DataFrame:
    """Measure all runs, one row per series and value of the swept key; for one key, add ratios (`results.Sweep`).

    Relative targets refer to the best accuracy of `reference` over all settings; notes on runs that are left out are
    appended to `notes`.
    """
    costs, reached = _measured(by_setting, goals, reference, notes)
    table = _means(costs, reached, points, keys)
    if len(keys) == 1:
        _add_ratios(table, costs, TO_TARGET if goals else OF_ROUND)
    return table.assign(setting=[named(setting, " ") for setting in table["setting"]])


def _means(costs: Costs, reached: Bounds, points: Points, keys: Sequence[str]) -> pd.DataFrame:
    """Average costs over seeds; rows are sorted by series, then by the keys' values."""
    names, wanted = _series(points, keys), [*MEASURED, *OF_ROUND, "energy_j", "simulated_s"]
    table = costs.table(wanted, list(dict.fromkeys(costs.by_seed["variant"])))
    places = list(zip(table["setting"], table["variant"], strict=True))
    table.insert(0, "series", [names[place] for place in places])
    for number, key in enumerate(keys, start=1):
        table.insert(number, key, [points[place][key] for place in places])
    table = table.join(pd.DataFrame([reached[place] for place in places]))
    for name in wanted:
        each = zip(table[f"{name}_mean"], table[f"{name}_ci"], table["seeds"], strict=True)
        shown = [shown_ends(*one, positive=name != "accuracy_first") for one in each]
        table[f"{name}_low"], table[f"{name}_high"] = zip(*shown, strict=True)
    order = list(dict.fromkeys(names.values()))
    ranks = [(order.index(row["series"]), *(row[key] for key in keys)) for row in table.to_dict("records")]
    return table.iloc[sorted(range(len(table)), key=ranks.__getitem__)].reset_index(drop=True)


def _add_ratios(table: pd.DataFrame, costs: Costs, names: Sequence[str]) -> None:
    """Add NAME_ratio, _ratio_low, _ratio_high and _pairs: costs divided by those at the series' first value, by seed.

    The columns are NaN where a target was missed with any seed: the other seeds alone would favour a value that often
    misses.
    """
    infinite = costs.by_seed[list(names)].eq(float("inf")).any(axis=1)
    missed = infinite.groupby([costs.by_seed[name] for name in ("setting", "variant")]).transform("any")
    reached = Costs(
        costs.by_seed.assign(**{name: costs.by_seed[name].mask(missed) for name in names}), costs.at
    )
    first = table.groupby("series", sort=False)[["setting", "variant"]].transform("first").to_dict("records")
    both = list(zip(table[["setting", "variant"]].to_dict("records"), first, strict=True))
    for name in names:
        found = [reached.ratio(name, one, base) for one, base in both]
        columns = pd.DataFrame([ratio_columns(name, one) for one in found])
        table[list(columns)] = columns


def _series(points: Points, keys: Sequence[str]) -> dict[Any, str]:
    """Return the name of each point's series; points that differ only in the swept keys share a series."""
    others = [key for key in differing(points.values()) if key not in keys and not follows(points, key, keys)]
    # a key that follows from an axis of the study's grid is left out
    axes = {axis for setting, _ in points for axis, _ in setting}
    swept = [key for key in others if {bare(key), key.rpartition(".")[2]} & axes]
    others = [
        key for key in others if key in swept or not any(follows(points, key, [axis]) for axis in swept)
    ]
    # numbers that follow from the swept keys and from names, such as a site's power from its path loss
    named = [key for key in others if not numeric(points, key)]
    others = [key for key in others if key in (*named, *swept) or not follows(points, key, [*keys, *named])]
    # if the names of components differ, their parameters are left out
    others = [key for key in others if not any(key.startswith(f"{other}.") for other in others)]
    groups: dict[tuple[str, ...], list[Any]] = {}
    for place, point in points.items():
        groups.setdefault(tuple(repr(point.get(key)) for key in others), []).append(place)
    variants = [tuple(dict.fromkeys(variant for _, variant in group)) for group in groups.values()]
    by_variant = all(len(own) == 1 for own in variants) and len(set(variants)) > 1
    if by_variant:  # a variant's name stands for the keys that it sets
        own = [[point for (_, name), point in points.items() if name == variant] for (variant,) in variants]
        within = {key for some in own for key in differing(some)}
        others = [key for key in others if key in within]
    texts = {key: _texts(key, points) for key in others}
    names = {}
    for (variant, *_), group in zip(variants, groups.values(), strict=True):
        words = [texts[key][repr(points[group[0]].get(key))] for key in others]
        for place in group:
            names[place] = ", ".join([variant] * by_variant + words) or "all"
    return names


def _texts(key: str, points: Points) -> dict[str, str]:
    """Return a text for each value of a key: `bandwidth 5 MHz`, `algorithm fedavg`, `deadline_s none`."""
    values = {repr(point.get(key)): point.get(key) for point in points.values()}
    numbers = [value for value in values.values() if isinstance(value, int | float)]
    if len(numbers) == len(values):
        return {name: f"{bare(key)} {text}" for name, text in zip(values, written(key, numbers), strict=True)}
    last = key.rpartition(".")[2]
    return {name: f"{last} {'none' if value is None else value}" for name, value in values.items()}


def numeric(points: Points, key: str) -> bool:
    """Return whether a key is a number at every point."""
    values = [point.get(key) for point in points.values()]
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def on_followers(points: Points, keys: Sequence[str]) -> list[str]:
    """Note the keys that change whenever a swept key does, to which differences may be due as well.

    A key of the radio that follows from the bandwidth does so by default.
    """
    others = [key for key in differing(points.values()) if key not in keys and follows(points, key, keys)]
    told = [
        key
        for key in others
        if key == BAND or not (key.startswith("radio.") and follows(points, key, [BAND]))
    ]
    return [f"{', '.join(told)} changed together with {' and '.join(keys)}"] if told else []


def follows(points: Points, key: str, others: Sequence[str]) -> bool:
    """Return whether a key's value follows from other keys' values, as a site's power follows from its bandwidth."""
    values: dict[tuple[Any, ...], set[str]] = {}
    for point in points.values():
        values.setdefault(tuple(point.get(other) for other in others), set()).add(repr(point.get(key)))
    return bool(others) and all(len(several) == 1 for several in values.values())


def verdicts(sweep: Sweep) -> list[str]:
    """Compare the costs at each series' last value with those at its first, paired by seed, in sentences."""
    time, energy = TO_TARGET if sweep.target else OF_ROUND
    if len(sweep.keys) > 1 or f"{time}_ratio" not in sweep.table:
        return []
    task = f"to {sweep.target.short}" if sweep.target else "for a round"
    key, sentences = sweep.keys[0], []
    for series, rows in sweep.table.groupby("series", sort=False):
        if len(rows) < 2:
            continue
        first, *_, last = values = written(key, rows[key].tolist())
        row, not_reached = rows.iloc[-1], rows["not_reached"].tolist()
        of_time, of_energy = (ratio_of(row, cost) for cost in (time, energy))
        name = key.rpartition(".")[2] if first.replace(".", "").isdigit() else bare(key)
        words = name.replace("_", " ")
        lead = "" if series == "all" else f"{series}: "
        missed = _missed(rows, values, words)
        if of_time.pairs:
            said = versus(f"{words} {last}", first, of_time, of_energy, task)
            said += f" {sweep.target.short} is {missed}." if sweep.target and missed else ""
        elif sweep.target and (not_reached[0] or not_reached[-1]):
            said = f"{sweep.target.short} is {missed}: {LOWER_TARGET}."
        elif sweep.target and not all(rows["targets"]):
            none = [value for value, of in zip(values, rows["targets"], strict=True) if not of]
            said = unknown(f"{words} {', '.join(none)}", sweep.target)
        else:
            said = f"{words} {first} and {last} have no seed in common, so there is no ratio."
        sentences.append(lead + said if lead else said[0].upper() + said[1:])
    return sentences


def _missed(rows: pd.DataFrame, values: Sequence[str], words: str) -> str:
    """Name the values at which no session reaches the target, and those at which some sessions miss it."""
    counts = list(zip(values, rows["not_reached"], rows["targets"], strict=True))
    never = [value for value, missed, of in counts if 0 < missed == of]
    some = [value for value, missed, of in counts if 0 < missed < of]
    told = []
    for place, how, every in ((never, "never reached", "any"), (some, "missed in some sessions", "every")):
        where = f"{words} {', '.join(place)}" if len(place) < len(values) else f"{every} {words}"
        told += [f"{how} at {where}"] if place else []
    return " and ".join(told)
