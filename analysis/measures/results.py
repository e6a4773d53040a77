"""The results of reports as plain values, for the tables and figures that show them."""

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.energy import energy_by_class
from edgefl.analysis.measures.targets import Target, target_of, with_peaks
from edgefl.analysis.page.formatting import numbered
from edgefl.analysis.page.report import Found
from edgefl.analysis.runs.choices import Layout
from edgefl.analysis.runs.clock import Clock
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.scenario_keys import several_servers

# columns of time and energy to a target, or without a target per round
TO_TARGET, OF_ROUND = ("seconds_to_target", "joules_to_target"), ("latency_s", "round_energy_j")
# scopes of a comparison, the usual first
RECURRING, RETURNING = "recurring sessions", "sessions whose population came back"
AFTER_PILOT, PILOTS, ALL = "sessions after the pilot", "pilot sessions", "all sessions"
IN_WORDS = {  # each scope with the numbers of its sessions
    RECURRING: "recurring {}",
    RETURNING: "{}, whose population came back",
    AFTER_PILOT: "{}, after the pilot",
    PILOTS: "pilot {}",
    ALL: "{}",
}
DIFFER = "differ"  # labels of a session that are not the same in every seed and cell


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Found):
    """The results of comparing variants. Means, sample standard deviations and 95 % intervals are over seeds.

    Attributes:
        table: one row per variant, in the order of the study's file; column names contain units; accuracies are 0..1.
            `_mean`, `_std` and `_ci` (half the 95 % interval) are taken over the seeds' means over `sessions`. A
            `_to_target_mean` is inf if any session missed the target; `_to_target_at_least` is then a lower bound, in
            which a session that missed the target counts in full. `targets` counts pairs of session and seed, and
            `not_reached` the pairs that missed the target. `NAME_ratio`, `_ratio_low`, `_ratio_high` and `_pairs`, of
            time and energy to the target or of a round, are the variant's costs divided by those of `base`, NaN where
            either variant missed the target.
        per_session: one row per session (if runs have a clock, one per cell and session, with its beginning and its
            number of devices): labels (or `differ`, if they differ by seed or cell), kind (pilot, new, recurring,
            returning; in any seed or cell), and per variant mean and standard deviation of the opening model's
            accuracy, of the accuracy over the first rounds, of the dip and of the rounds to recovery.
        to_targets: one row per target and variant: the cost of reaching the target, see `averages.to_targets`.
        tests: one row per quantity and variant: paired tests against the reference, see `averages.tests`.
        detail: one row per variant, seed, cell and session: every per-session metric, unaveraged.
        reference: the variant that all others are compared with, whose peak defines relative targets; or None.
        targets: the target accuracies, possibly none; `table` shows the first target.
        layout: how the tables are laid out.
        seeds: the seeds that all variants have; only runs with these seeds are compared.
        scope: description of the sessions that `table` averages over.
        clock: the clock for sessions and curves; None if sessions follow a schedule of rounds.
        verdicts: the answer, one sentence per variant.
        runs: the runs compared.
        rounds: the rounds of the compared runs, for seeds that all variants have.
    """

    name = "comparison"
    per_session: pd.DataFrame = field(repr=False)
    to_targets: pd.DataFrame = field(repr=False)
    tests: pd.DataFrame = field(repr=False)
    detail: pd.DataFrame = field(repr=False)
    targets: tuple[Target, ...]
    layout: Layout
    scope: str
    clock: Clock | None
    verdicts: tuple[str, ...]
    runs: Runs = field(repr=False)
    rounds: pd.DataFrame = field(repr=False)

    @property
    def trained(self) -> bool:
        """Whether any run has an accuracy; if not, only latency and energy are compared."""
        return bool(self.rounds["accuracy"].notna().any())

    @property
    def sessions(self) -> tuple[int, ...]:
        """The sessions that `table` averages over."""
        mine = self.detail.loc[self.detail["in_scope"], "session"]
        return tuple(sorted(int(session) for session in mine.unique()))

    @property
    def sessions_in_words(self) -> str:
        """The numbers and the kind of the sessions that `table` averages over, as in `session 2, after the pilot`."""
        return IN_WORDS[self.scope].format(numbered("session", self.sessions))

    @property
    def by_rounds(self) -> bool:
        """Whether a round means the same in all variants; if not, nothing is compared over rounds."""
        return not several_servers(self.runs.info)

    @property
    def target(self) -> Target | None:
        """The target accuracy of the headline table."""
        return self.targets[0] if self.targets else None

    @property
    def base(self) -> str:
        """The variant that costs are compared with: the reference or, without a reference, the first variant."""
        return self.reference or str(self.table["variant"].iloc[0])

    @property
    def in_scope(self) -> tuple[int, int]:
        """How many sessions and how many cells `table` averages over."""
        mine = self.detail[self.detail["in_scope"]]
        return len(mine[["cell", "session"]].drop_duplicates()), mine["cell"].nunique()

    def time_to(self, target: str | float | Target) -> pd.Series:
        """Return the simulated seconds that each variant needs to reach a target accuracy.

        Args:
            target: an accuracy, or a share of a best accuracy: `95%` (the reference's), `95% of NAME`, `95% of best`.

        Returns:
            Variant -> seconds from a session's start, the mean over seeds and the sessions in scope; inf if one of
            these sessions missed the target; NaN without training.

        Raises:
            ValueError: the target cannot be read, is outside (0, 1], or names an unknown variant.
        """
        (goal,) = with_peaks([target_of(target)], list(self.table["variant"]), self.reference)
        times = metrics.time_to_target(self.rounds, self.runs.sessions, reference=self.reference, target=goal)
        mine = times.merge(self.detail.loc[self.detail["in_scope"], metrics.SESSION], on=metrics.SESSION)
        by_seed = mine.groupby(metrics.RUN)["seconds_to_target"].mean()
        return by_seed.groupby("variant").mean().reindex(list(self.table["variant"]))

    def energy(self) -> pd.DataFrame:
        """Return the joules of a run by variant, class of devices and use, means over seeds.

        Returns:
            A row per variant and class (`all devices` without classes), with the columns of `energy_by_class`: joules
            by use, the charge that a device uses on average, and its share of a phone's daily charge.
        """
        by_class = energy_by_class(self.runs).drop(columns="seed")
        return by_class.groupby(["variant", "class"], sort=False).mean()


@dataclass(frozen=True, kw_only=True, repr=False)
class SettingsTable(Found):
    """Mean accuracy in the first rounds of sessions or, without training, costs of a round, per setting and variant.

    Attributes:
        table: one row per setting and session: the axes' labels, session, and per variant VARIANT_mean and
            VARIANT_std (0..1; over seeds, NaN with one seed); best, the variant with the highest mean; lead, the
            reference's mean minus the highest other mean (NaN without reference, or if a variant is missing);
            lead_clear, whether the paired 95 % interval of this difference excludes 0 (False below three seeds);
            averaged_rounds and seeds, the smallest numbers of first rounds and of seeds that are averaged.
            Without training one row per setting: the axes' labels, and per variant and quantity
            VARIANT_QUANTITY_mean and _std, quantities as in `metrics.totals`; all NaN if no run is completed.
        trained: False if no run has an accuracy.
        axes: names of the grid's axes.
        variants: names of the variants, in the order of the study's file.
        sessions: the sessions in the table; without training, the sessions whose rounds are averaged.
    """

    name = "settings"
    axes: tuple[str, ...]
    variants: tuple[str, ...]
    sessions: tuple[int, ...]
    first_rounds: int
    trained: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep(Found):
    """Costs against the values of one key or two.

    Attributes:
        table: one row per series and value: series, a column per key, setting, variant, seeds, NAME_mean, _std and
            _ci of seconds_to_target, joules_to_target, rounds_to_target, accuracy_first, latency_s, round_energy_j,
            energy_j, simulated_s, with _low and _high, the ends of the 95 % interval (of costs on a logarithmic
            scale, so that no cost is below zero), or of the range of two seeds. If any session missed the target,
            `_to_target_mean` is inf; `_to_target_at_least`, not_reached and targets are those of a comparison.
            With one key there are also NAME_ratio, _ratio_low, _ratio_high (of the interval, also with two seeds) and
            _pairs, for time and energy to the target or of a round: the cost divided by the cost at the series' first
            value, paired by seed.
        keys: the swept keys with dots: one key, or two keys for a map.
        costs: the columns that the first figure draws (a map draws only the first column): time and energy, to the
            target or per round, or the chosen metric.
        target: the target accuracy, or None.
    """

    name = "sweep"
    keys: tuple[str, ...]
    costs: tuple[str, ...]
    target: Target | None
    layout: Layout

    @property
    def figures(self) -> tuple[Path, ...]:
        """The figures of costs by value, and without a chosen metric of time against energy; each also as PDF."""
        names = ["sweep_map" if len(self.keys) == 2 else "sweep", *["sweep_pareto"] * (len(self.costs) > 1)]
        return tuple(self.out / f"{name}.png" for name in names)

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that the report's table shows: a chosen metric, and always time and energy."""
        return tuple(dict.fromkeys((*self.costs, *(TO_TARGET if self.target else OF_ROUND))))
