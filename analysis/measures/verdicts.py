"""Write a comparison's verdicts, a sentence per variant: its time and energy over another's, with intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from edgefl.analysis.measures.averages import COSTS, Costs, bounded
from edgefl.analysis.measures.results import OF_ROUND
from edgefl.analysis.measures.targets import Target
from edgefl.analysis.measures.uncertainty import Paired, Ratio
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, with_unit
from edgefl.analysis.runs.choices import FIRST_ROUNDS

NO_INTERVAL = "one seed, so no interval"
LARGEST = 1000.0  # ratio beyond which, or below one over it, a bound is written instead of a number


@dataclass(frozen=True)
class Versus:
    """The costs of one variant compared with another's.

    Attributes:
        subject, base: their names.
        time, energy: the subject's over the base's, paired by seed.
        task: such as `to 80 % accuracy`.
    """

    subject: str
    base: str
    time: Ratio
    energy: Ratio
    task: str

    def sentence(self) -> str:
        """Return the verdict with its interval, or that the pairs of runs show no clear difference."""
        of = f"the time of {self.base} {self.task}"
        if self.time.pairs < 2:
            return (
                f"{self.subject} needs {_times(self.time.mean)} {of}, and {_times(self.energy.mean)} the energy"
                f" ({NO_INTERVAL})."
            )
        within = f"95 % interval {_interval(self.time)}"
        if self.time.decided:
            first = f"{self.subject} needs {_times(self.time.mean)} {of} ({self.time.pairs} seeds, {within})"
            if self.energy.decided:
                return f"{first}, and {_times(self.energy.mean)} the energy ({_interval(self.energy)})."
            return f"{first}; in energy the pairs of runs show no clear difference ({_around(self.energy)})."
        first = (
            f"{self.subject}: {self.time.pairs} pairs of runs show no clear difference from {self.base} in time "
            f"{self.task} ({_times(self.time.mean)} the time, {within})"
        )
        if self.energy.decided:
            return f"{first}; {self.subject} needs {_times(self.energy.mean)} the energy ({_interval(self.energy)})."
        return f"{first}, nor in energy ({_around(self.energy)})."


def verdicts(
    detail: pd.DataFrame,
    totals: pd.DataFrame,
    variants: Sequence[str],
    reference: str | None,
    target: Target | None,
    *,
    by_rounds: bool = True,
) -> tuple[str, ...]:
    """Compare each variant's costs with the reference's, or with the first variant's.

    With a target, these are the costs to reach it; without training, those of a round; with training and no target,
    accuracies are compared.

    Args:
        detail: a row per session with its costs, those in scope marked.
        totals: a row per run, of `metrics.totals`.
        by_rounds: whether a round means the same in all variants; if not, only a target compares them.
    """
    base, scope = reference or variants[0], detail[detail["in_scope"]]
    others = [name for name in variants if name != base]
    if target is not None:
        alone = _reaches(scope[scope["variant"] == base], base, target)
        return alone, *(_to_target(scope, name, base, target) for name in others)
    if not by_rounds:
        return ()
    if detail["accuracy_start"].notna().any() or detail["accuracy_first"].notna().any():
        first = Costs.of(scope, ["accuracy_first"])
        found = {
            name: first.difference("accuracy_first", {"variant": name}, {"variant": base}) for name in others
        }
        return tuple(_accuracy(difference, name, base) for name, difference in found.items())
    said = []
    for name in others:
        time, energy = (Costs(totals).ratio(cost, {"variant": name}, {"variant": base}) for cost in OF_ROUND)
        said.append(Versus(name, base, time, energy, "for a round").sentence())
    return tuple(said)


def _times(ratio: float) -> str:
    """Write a ratio with two digits: `1.6 times`."""
    return f"{_number(ratio)} times"


def _number(ratio: float) -> str:
    if math.isnan(ratio):
        return "an unknown number of"
    if ratio > LARGEST:
        return f"over {LARGEST:,.0f}"
    if ratio < 1 / LARGEST:
        return f"under {1 / LARGEST:g}"
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.{max(0, 1 - math.floor(math.log10(ratio)))}f}"


def _interval(ratio: Ratio) -> str:
    return f"{_number(ratio.low)} to {_number(ratio.high)}"


def _around(ratio: Ratio) -> str:
    return f"{_times(ratio.mean)}, {_interval(ratio)}"


def _reaches(spells: pd.DataFrame, name: str, target: Target) -> str:
    """Describe a variant's cost to the target, averaged over sessions and seeds."""
    missed = int(spells["rounds_to_target"].eq(math.inf).sum())
    own = (
        " (of its own best accuracy in a session)" if target.relative and target.peak in (None, name) else ""
    )
    if missed:
        return f"{name} misses {target.short}{own} in {missed} of {len(spells)} sessions."
    means = spells.groupby("seed")[list(COSTS)].mean()
    both = zip(COSTS, (TIME_UNITS, ENERGY_UNITS), strict=True)
    words = [with_unit(means[cost].mean(), units) for cost, units in both]
    seeds = f"the mean of {len(means)} seeds" if len(means) > 1 else "one seed"
    return f"{name} reaches {target.short}{own} after {' and '.join(words)} ({seeds})."


def _to_target(scope: pd.DataFrame, name: str, base: str, target: Target) -> str:
    """Compare two variants' costs to the target; one that missed it counts in full, which gives a bound."""
    both = bounded(scope[scope["variant"].isin([name, base]) & scope["rounds_to_target"].notna()])
    by_seed = Costs.of(both, list(COSTS))
    time, energy = (by_seed.ratio(cost, {"variant": name}, {"variant": base}) for cost in COSTS)
    count = {one: int(both.loc[both["variant"] == one, "missed"].sum()) for one in (name, base)}
    if not any(count.values()):
        return Versus(name, base, time, energy, f"to {target.short}").sentence()
    sessions = int(both["variant"].eq(name).sum())
    said = f"{name} misses {target.short} in {count[name]} of {sessions} sessions, {base} in {count[base]}"
    if all(count.values()) or not time.pairs:
        return f"{said}: give a lower target to compare their costs."
    how = "more" if count[name] else "less"
    ratios = (
        f"{how} than {_times(time.mean)} the time of {base} and {how} than {_times(energy.mean)} the energy"
    )
    return f"{said}; it needs {ratios}."


def _accuracy(found: Paired, name: str, base: str) -> str:
    """Compare two variants' accuracies over the first rounds."""
    mean, half = 100 * found.mean, 100 * found.half_width
    what = f"over the first {FIRST_ROUNDS} rounds of a session"
    if found.pairs < 2:
        better = "more" if mean > 0 else "less"
        return f"{name} has {abs(mean):.1f} points {better} accuracy than {base} {what} ({NO_INTERVAL})."
    within = f"95 % interval {mean - half:+.1f} to {mean + half:+.1f}"
    if abs(mean) > half:
        better = "more" if mean > 0 else "less"
        sure = f"{found.pairs} seeds, {within}"
        return f"{name} has {abs(mean):.1f} points {better} accuracy than {base} {what} ({sure})."
    return (
        f"{name}: {found.pairs} pairs of runs show no clear difference from {base} in accuracy {what} ({mean:+.1f} "
        f"points, {within})."
    )
