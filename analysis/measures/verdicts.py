"""Write a comparison's verdicts, a sentence per variant on its relative time and energy with their intervals."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from edgefl.analysis.measures.averages import Costs, bounded
from edgefl.analysis.measures.metrics import SESSION, of_run, time_to_target, training_rounds
from edgefl.analysis.measures.notes import compared_rounds, first_rounds_of
from edgefl.analysis.measures.results import OF_ROUND, TO_TARGET
from edgefl.analysis.measures.targets import Target
from edgefl.analysis.measures.uncertainty import LEAST, Paired, Ratio
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    ROUNDING,
    TIME_UNITS,
    count_of,
    counts_of,
    first_rounds_named,
    with_unit,
)

RATIO = ("ratio", "ratio_low", "ratio_high", "pairs")  # endings of columns that hold the fields of a `Ratio`
NO_INTERVAL = "one run each, so no interval"
ALIKE = 0.01  # accuracy; variants that differ by less are named together
# part of run.json's `stopped` that differs between seeds
WHEN_STOPPED = r" \(round [^)]*\)|, in the last after [^;]*"
LOWER_TARGET = "give a lower target to compare their costs"
EXACTLY = 1e-9  # ratios that differ by less are equal; sums in another order differ in their last digits
MOST_DIGITS = 4  # of a ratio with an interval that fewer digits would hide
LARGEST = 1000.0  # beyond this ratio, or below its inverse, a bound is written instead of a number


def versus(subject: str, base: str, time: Ratio, energy: Ratio, task: str) -> str:
    """Compare two variants' costs in a sentence, or say that the pairs of runs show no clear difference.

    Args:
        subject, base: names of the two variants.
        time, energy: the subject's time and energy divided by those of the base, paired by seed.
        task: purpose of the costs, such as `to 80 % accuracy`.
    """
    (of_time, time_ends), (of_joules, energy_ends) = with_ends(time), with_ends(energy)
    needs = f"{subject} needs {of_time} times the time of {base} {task}"
    if time.pairs < 2:
        return f"{needs}, and {of_joules} times the energy ({NO_INTERVAL})."
    if _equal(time, energy):
        return f"{subject} {_needs_exactly(base, f' {task}', time.pairs)}."
    of_energy = f"{of_joules} times the energy ({energy_ends})"
    if time.pairs < LEAST:
        return f"{needs} (2 seeds: {time_ends}), and {of_energy}."
    within, unclear = f"95 % interval {time_ends}", "pairs of runs show no clear difference"
    around = f"({of_joules} times, {energy_ends})"
    if time.decided:
        first = f"{needs} ({time.pairs} seeds, {within})"
        return (
            f"{first}, and {of_energy}." if energy.decided else f"{first}; in energy the {unclear} {around}."
        )
    first = (
        f"{subject}: {time.pairs} {unclear} from {base} in time {task} ({of_time} times the time, {within})"
    )
    return f"{first}; {subject} needs {of_energy}." if energy.decided else f"{first}, nor in energy {around}."


def stops(info: pd.DataFrame, rounds: pd.DataFrame, variants: Sequence[str]) -> list[str]:
    """Describe how `stop` ended the runs, in a sentence per variant with each reason and numbers of rounds."""
    ended = info[info["stopped"] != ""]
    reasons = ended["stopped"].str.replace(WHEN_STOPPED, "", regex=True)
    of, sentences = " of all cells" * (rounds["cell"].nunique() > 1), []
    for variant in variants:
        some, told = ended[ended["variant"] == variant], []
        for reason, runs in some.groupby(reasons, sort=False):
            lengths = [len(training_rounds(of_run(rounds, run))) for run in runs.itertuples()]
            told.append(f"{reason} (after {counts_of(lengths, 'round')}{of}, {count_of(len(runs), 'seed')})")
        if told:
            sentences.append(f"`stop` in {variant}: {'; '.join(told)}.")
    return sentences


def ratios(
    detail: pd.DataFrame, totals: pd.DataFrame, variants: Sequence[str], base: str, target: Target | None
) -> pd.DataFrame:
    """Divide each variant's costs by those of `base`, paired by seed, in a row per variant.

    Costs are those of reaching the target or, without a target, of a round. A session that missed the target counts
    with its whole length, which costs less than reaching the target, so its ratio is a bound.

    Returns:
        by variant: NAME_ratio, _ratio_low, _ratio_high and _pairs of time and energy, missed and targets.
    """
    scope = detail[detail["in_scope"] & detail["rounds_to_target"].notna()]
    spells = bounded(scope)
    least = {cost: f"{cost}_at_least" for cost in TO_TARGET}
    costs = Costs.of(spells, list(least.values())) if target else Costs(totals)
    rows = []
    for name in variants:
        own = spells[spells["variant"] == name]
        row: dict[str, object] = {"missed": int(own["missed"].sum()), "of": len(own)}
        for cost in TO_TARGET if target else OF_ROUND:
            found = costs.ratio(least.get(cost, cost), {"variant": name}, {"variant": base})
            row |= ratio_columns(cost, found)
        rows.append(row)
    return pd.DataFrame(rows, index=list(variants))


def ratio_of(row: Mapping[str, Any] | pd.Series, cost: str) -> Ratio:
    """Read a cost's mean ratio, its interval and the number of pairs from a table's row."""
    *ratio, pairs = (row[f"{cost}_{ending}"] for ending in RATIO)
    return Ratio(int(pairs), *ratio)


def ratio_columns(cost: str, found: Ratio) -> dict[str, float]:
    """Return a cost's mean ratio, its interval and the number of pairs as columns of a table's row."""
    pairs, *ratio = found
    return {f"{cost}_{ending}": value for ending, value in zip(RATIO, (*ratio, pairs), strict=True)}


def first_of(rounds: pd.DataFrame, detail: pd.DataFrame) -> str:
    """Name the rounds over which accuracies are averaged: `first 10 rounds`, or fewer if no session has ten.

    Only rounds that all variants have count, in the sessions of `detail` that are compared.
    """
    return first_rounds_named(first_rounds_of(compared_rounds(rounds, detail)))


def verdicts(
    detail: pd.DataFrame,
    found: pd.DataFrame,
    base: str,
    target: Target | None,
    *,
    by_rounds: bool = True,
    first: str,
) -> tuple[str, ...]:
    """Compare each variant's costs with those of `base`, given the sessions in `detail` and the table of `ratios`.

    With a target, costs are those of reaching the target; without training, those of a round; with training and no
    target, accuracies are compared. If a round does not mean the same in every variant (`by_rounds` is false), only
    the costs of reaching a target are compared, and without a target nothing is.
    """
    over = f"over the {first} of a session"
    scope = detail[detail["in_scope"]]
    others = [name for name in found.index if name != base]
    early = Costs.of(scope, ["accuracy_first"])
    more = {name: early.difference("accuracy_first", {"variant": name}, {"variant": base}) for name in others}
    if target is not None:
        alone = _reaches(scope[scope["variant"] == base], base, target)
        most = np.ptp([0.0, *(one.mean for one in more.values())])  # between any two; NaN if any mean is NaN
        by = f"at most {math.ceil(1000 * most) / 10:.1f}" if 0.001 <= most < ALIKE else "less than 0.1"
        alike = [f"Accuracies {over} differ by {by} points."]
        sentences = (
            _to_target(found, name, base, target)
            if found.loc[base, "of"]  # otherwise there is nothing to compare with
            else _reaches(scope[scope["variant"] == name], name, target)
            for name in others
        )
        return alone, *sentences, *alike * bool(others and most < ALIKE and by_rounds)
    if not by_rounds:
        return ()
    if detail["accuracy_start"].notna().any() or detail["accuracy_first"].notna().any():
        return tuple(_accuracy(difference, name, base, over) for name, difference in more.items())
    said = []
    for name in others:
        time, energy = (ratio_of(found.loc[name], cost) for cost in OF_ROUND)
        said.append(versus(name, base, time, energy, "for a round"))
    return tuple(said)


def on_further_target(
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    scope: pd.DataFrame,
    variants: Sequence[str],
    base: str,
    target: Target,
    reference: str | None,
) -> str:
    """Describe in one sentence which variants miss a further target, and the costs of the others against `base`.

    Args:
        scope: the sessions to compare, with the columns variant, seed, cell, session.
    """
    times = time_to_target(rounds, sessions, reference=reference, target=target).merge(
        scope[SESSION], on=SESSION
    )
    found = ratios(times.assign(in_scope=True), pd.DataFrame(), variants, base, target)
    if found["of"].any() and (found["missed"] == found["of"]).all():
        return f"{target.short}: missed in all sessions{' of all variants' * (len(found) > 1)}."
    parts = []
    for name, row in found.iterrows():
        if not row["of"]:
            parts.append(f"the cost of {name} is unknown")
        elif row["missed"]:
            parts.append(f"{name} misses it in {row['missed']:.0f} of {count_of(int(row['of']), 'session')}")
        elif name == base or found.loc[base, "missed"] or not found.loc[base, "of"]:
            parts.append(f"{name} reaches it in every session")
        else:
            time, energy = (ratio_of(row, cost) for cost in TO_TARGET)
            if _equal(time, energy):
                parts.append(f"{name} {_needs_exactly(base, '', time.pairs)}")
                continue
            few = time.pairs < LEAST
            one, other = (" (not clear)" * (not few and not ratio.decided) for ratio in (time, energy))
            parts.append(
                f"{name} needs {_times(time.mean)} the time{one} and {_times(energy.mean)} the energy{other} of"
                + f" {base}"
                + f" ({count_of(time.pairs, 'seed')}: no test)" * few
            )
    return f"{target.short}: {'; '.join(parts)}."


def _equal(time: Ratio, energy: Ratio) -> bool:
    """Return whether two variants have equal costs with each of several seeds."""
    ends = (*time.ends, *energy.ends)
    return time.pairs > 1 and all(math.isclose(end, 1, rel_tol=EXACTLY) for end in ends)


def _needs_exactly(base: str, task: str, seeds: int) -> str:
    return f"needs exactly the time and energy of {base}{task} with each of {seeds} seeds"


def _times(ratio: float) -> str:
    """Write a ratio with two digits: `1.6 times`."""
    return f"{two_digits(ratio)} times"


def _bound(ratio: float, sign: float) -> str:
    """Write a bound of a ratio with two digits; round a lower bound (sign 1) down and an upper bound (-1) up."""
    ratio = min(max(ratio, 1 / LARGEST), LARGEST)
    step = 10.0 ** min(0, math.floor(math.log10(ratio)) - 1)
    return two_digits(sign * math.floor(sign * ratio / step + ROUNDING) * step)


def with_ends(ratio: Ratio) -> tuple[str, str]:
    """Write a mean ratio, and the ends of its interval, with as many digits as their difference needs."""
    values = (ratio.mean, *ratio.ends)
    equal = math.isclose(min(values), max(values), rel_tol=EXACTLY)
    for digits in (2, 3, MOST_DIGITS):
        mean, *ends = (two_digits(value, digits) for value in values)
        hidden = {mean, *ends} == {mean} or (ratio.decided and mean == two_digits(1.0, digits))
        if equal or not hidden:
            break
    return mean, " to ".join(ends)


def two_digits(ratio: float, digits: int = 2) -> str:
    """Write a ratio with two digits, or another number, and a huge or tiny one as a bound."""
    if math.isnan(ratio):
        return "an unknown number of"
    if ratio > LARGEST:
        return f"over {LARGEST:,.0f}"
    if ratio < 1 / LARGEST:
        return f"under {1 / LARGEST:g}"
    ratio = float(f"{ratio:.{digits - 1}e}") if ratio < 100 else ratio  # 0.998 is 1.0, not 1.00
    decimals = digits - 1 - math.floor(math.log10(ratio))
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.{max(0, decimals)}f}"


def _reaches(spells: pd.DataFrame, name: str, target: Target) -> str:
    """Describe a variant's cost to reach the target, averaged over sessions and seeds."""
    if spells["rounds_to_target"].isna().all():
        return unknown(name, target)
    missed = int(spells["rounds_to_target"].eq(math.inf).sum())
    own = (
        " (of its own best accuracy in a session)" if target.relative and target.peak in (None, name) else ""
    )
    if missed:
        return f"{name} misses {target.short}{own} in {missed} of {count_of(len(spells), 'session')}."
    means = spells.groupby("seed")[list(TO_TARGET)].mean()
    both = zip(TO_TARGET, (TIME_UNITS, ENERGY_UNITS), strict=True)
    words = [with_unit(means[cost].mean(), units) for cost, units in both]
    seeds = f"the mean of {len(means)} seeds" if len(means) > 1 else "one run"
    return f"{name} reaches {target.short}{own} {' and '.join(words)} after a session's start ({seeds})."


def unknown(name: str, target: Target) -> str:
    """Say that a variant's cost to the target is unknown, for example because its runs have no training."""
    what = "its runs, or those that set the target, have no accuracy"
    return f"The cost of {name} to {target.short} is unknown: {what}."


def _to_target(found: pd.DataFrame, name: str, base: str, target: Target) -> str:
    """Compare two variants' costs to the target; sessions that missed the target count in full, as a lower bound."""
    row, missed = found.loc[name], found["missed"]
    time, energy = (ratio_of(row, cost) for cost in TO_TARGET)
    if not row["of"]:
        return unknown(name, target)
    if not (missed[name] or missed[base]):
        return versus(name, base, time, energy, f"to {target.short}")
    of = count_of(int(row["of"]), "session")
    said = f"{name} misses {target.short} in {missed[name]} of {of}, {base} in {missed[base]}"
    how, beyond = ("more", 1.0) if missed[name] else ("less", -1.0)
    bounds = {f"the time of {base}": time, "the energy": energy}
    telling = [  # a lower bound below 1, or an upper bound above 1, says nothing
        f"{how} than {_bound(ratio.mean, beyond)} times {what}"
        for what, ratio in bounds.items()
        if beyond * (ratio.mean - 1) >= (0.1 if missed[name] else 0.05)
    ]
    if (missed[name] and missed[base]) or not time.pairs or not telling:
        return f"{said}: {LOWER_TARGET}."
    ratios = " and ".join(telling) if len(telling) > 1 else telling[0].replace("energy", f"energy of {base}")
    return f"{said}; it needs {ratios}."


def _accuracy(found: Paired, name: str, base: str, what: str) -> str:
    """Compare two variants' accuracies; `what` names the rounds over which accuracies are averaged."""
    mean, (low, high) = 100 * found.mean, (100 * end for end in found.ends)
    if not found.pairs:
        return f"{name} and {base} have no pair of runs with an accuracy {what}."
    if not (mean or found.half_width > 0):  # the half width of one pair is NaN
        return f"{name} has exactly the accuracy of {base} {what} ({count_of(found.pairs, 'seed')})."
    # one digit would print a mean, or an end of an interval without 0, as 0
    near = 0 < min(abs(mean), abs(low), abs(high)) < 0.05 and not low * high < 0
    digits = 2 if near else 1
    low_text, high_text = (f"{end:+z.{digits}f}" for end in (low, high))
    within = f"95 % interval {low_text} to {high_text}"
    if found.decided or found.pairs < LEAST:
        better = "more" if mean > 0 else "less"
        sure = {1: NO_INTERVAL, 2: f"2 seeds: {low_text} to {high_text}"}
        how = sure.get(found.pairs, f"{found.pairs} seeds, {within}")
        return f"{name} has {abs(mean):.{digits}f} points {better} accuracy than {base} {what} ({how})."
    return (
        f"{name}: {found.pairs} pairs of runs show no clear difference from {base} in accuracy {what} ({mean:+z.1f} "
        f"points, {within})."
    )
