"""Faults of the answers that are read out of runs."""

from tests.faults import Fault
from tests.faults.injecting import constant, edited

UNIT = "tests/unit/analysis/"
SEQUENTIAL = "tests/theory/test_sequential.py"

FAULTS = (
    Fault(
        "analysis.t_rho",
        "the round that reaches the target is the one after it",
        "journal paper: first round whose accuracy reaches the target",
        f"{UNIT}test_metrics.py::test_the_first_round_that_reaches_the_target_counts_even_if_later_ones_fall_back",
        edited(
            "analysis.metrics:time_to_target",
            'first["round"].astype(float)',
            '(first["round"] + 1).astype(float)',
        ),
    ),
    Fault(
        "analysis.probe_time",
        "energy of probe rounds is left out of joules to target",
        "a session's costs begin with its start",
        f"{UNIT}test_metrics.py::test_time_to_target_counts_from_the_start_of_the_session",
        edited(
            "analysis.metrics:time_to_target",
            'spells.groupby(SESSION)["energy_j"].cumsum()',
            '(spells["energy_j"] * (spells["phase"] != "probe")).groupby([spells[c] for c in SESSION]).cumsum()',
        ),
    ),
    Fault(
        "analysis.wait_before_first",
        "time to target begins with the first round",
        "a session's costs begin with its start",
        f"{UNIT}test_metrics.py::test_waiting_before_the_first_round_is_part_of_the_time",
        edited(
            "analysis.metrics:time_to_target",
            '(first["end_s"] - times["start_s"])',
            '(first["end_s"] - spells.groupby(SESSION)["start_s"].min())',
        ),
    ),
    Fault(
        "analysis.tie",
        "an accuracy equal to the target but for its last digit misses it",
        "ties reach",
        f"{UNIT}test_metrics.py::test_a_tie_reaches_the_target_whatever_its_last_binary_digit",
        edited(
            "analysis.metrics:time_to_target",
            'training["target_accuracy"] - TIE',
            'training["target_accuracy"]',
        ),
    ),
    Fault(
        "analysis.speed_up_inverse",
        "speed-up is the reference's time over the variant's",
        "time over the reference's",
        f"{UNIT}test_metrics.py::test_time_to_target_counts_from_the_start_of_the_session",
        edited(
            "analysis.metrics:speed_up",
            "paired[column] / base.where(np.isfinite(base))",
            "base.where(np.isfinite(base)) / paired[column]",
        ),
    ),
    Fault(
        "analysis.gain_sign",
        "accumulated gain has the other sign",
        "reference less variant, summed over rounds",
        f"{UNIT}test_metrics.py::test_accumulated_gain_sums_the_differences",
        edited(
            "analysis.metrics:accumulated_gain",
            'paired["accuracy_reference"] - paired["accuracy"]',
            'paired["accuracy"] - paired["accuracy_reference"]',
        ),
    ),
    Fault(
        "analysis.seeds_before_cells",
        "a mean over seeds counts every row alike",
        "cells are averaged within a seed first",
        f"{UNIT}test_metrics.py::test_over_seeds_averages_cells_first",
        edited(
            "analysis.metrics:over_seeds",
            'frame.groupby([*by, "seed"])[column].mean()',
            'frame.set_index([*by, "seed"])[column]',
        ),
    ),
    Fault(
        "analysis.recurring_pilot",
        "labels of a pilot count as seen",
        "a session recurs when its labels were seen after the pilot",
        f"{UNIT}test_metrics.py::test_a_session_recurs_when_its_labels_were_seen_after_the_pilot",
        edited("analysis.metrics:session_kinds", "if labels and not row.pilot", "if labels"),
    ),
    Fault(
        "analysis.normal_interval",
        "intervals take the normal quantile in place of Student's",
        "Student's t, n - 1 degrees of freedom",
        f"{UNIT}test_uncertainty.py::test_the_interval_is_students",
        edited(
            "analysis.uncertainty:half_width",
            "float(stdtrit(len(known) - 1, 0.5 + LEVEL / 2)",
            "float(1.959964",
        ),
    ),
    Fault(
        "analysis.population_deviation",
        "deviations divide by n in place of n - 1",
        "unbiased variance",
        f"{UNIT}test_uncertainty.py::test_the_interval_is_students",
        edited("analysis.uncertainty:half_width", "known.std(ddof=1)", "known.std(ddof=0)"),
    ),
    Fault(
        "analysis.one_sided",
        "Student's test is one-sided",
        "scipy.stats.ttest_rel",
        f"{UNIT}test_uncertainty.py::test_both_tests_agree_with_scipy",
        edited("analysis.uncertainty:paired", "float(2 * stdtr", "float(1 * stdtr"),
    ),
    Fault(
        "analysis.wilcoxon_zeros",
        "Wilcoxon's test counts pairs without a difference",
        "scipy.stats.wilcoxon",
        f"{UNIT}test_uncertainty.py::test_signed_ranks_with_ties_and_zeros_by_all_signs",
        edited("analysis.uncertainty:wilcoxon", "some = some[some != 0]", "some = some[some <= np.inf]"),
    ),
    Fault(
        "analysis.wilcoxon_ties",
        "Wilcoxon's ranks of ties are the highest of them",
        "mid-ranks",
        f"{UNIT}test_uncertainty.py::test_signed_ranks_with_ties_and_zeros_by_all_signs",
        edited("analysis.uncertainty:wilcoxon", "(2 * last - counts + 1)[place]", "(2 * last)[place]"),
    ),
    Fault(
        "analysis.ratio_plain",
        "a ratio's mean is arithmetic",
        "Student's interval on logarithms",
        f"{UNIT}test_uncertainty.py::test_the_interval_of_a_ratio_is_students_on_logarithms",
        edited(
            "analysis.uncertainty:paired_ratio",
            "float(logarithms.mean())",
            "math.log(float(np.exp(logarithms).mean()))",
        ),
    ),
    Fault(
        "analysis.sequential_fixed",
        "the interval of a study that looks again and again is that of one look",
        "confidence sequence by Ville's inequality",
        f"{SEQUENTIAL}::test_looked_at_after_every_pair_it_misses_as_seldom_as_it_says",
        edited(
            "analysis.sequential:half_width_factor",
            "q = (k / error**2) ** (1 / pairs)",
            "q = (1 / error**2) ** (1 / pairs)",
        ),
    ),
    Fault(
        "analysis.sequential_spread",
        "the mixture's spread is 2 in place of 1",
        "the martingale of the stated mixture",
        f"{SEQUENTIAL}::test_the_interval_is_what_the_martingale_does_not_exclude",
        constant("analysis.sequential:SPREAD", 2.0),
    ),
    Fault(
        "analysis.recovery_margin",
        "recovery asks for the whole accuracy before",
        "within the margin of it",
        f"{UNIT}test_transitions.py::test_dip_and_recovery_are_counted_from_the_start_of_the_session",
        edited("analysis.transitions:transitions", "- margin - TIE", "- TIE"),
    ),
    Fault(
        "analysis.dip_without_start",
        "a dip is the lowest tested accuracy, the one at the start left out",
        "dip from the start on",
        f"{UNIT}test_transitions.py::test_dip_and_recovery_are_counted_from_the_start_of_the_session",
        edited("analysis.transitions:transitions", '["accuracy_start", "lowest"]', '["lowest", "lowest"]'),
    ),
    Fault(
        "analysis.gini",
        "Gini's ranks are off by one",
        "definition by ranks",
        f"{UNIT}test_fairness.py::test_measures_are_those_of_their_definitions",
        edited(
            "analysis.fairness:measures",
            "2 * np.arange(1, count + 1) - count - 1",
            "2 * np.arange(1, count + 1) - count",
        ),
    ),
    Fault(
        "analysis.theorem_drift",
        "the bound's drift term goes with E in place of E (E - 1)",
        "journal paper, Theorem 1",
        "tests/theory/test_convergence_bound.py::test_drift_goes_with_the_pairs_of_steps",
        edited("analysis.theory:theorem1", "pairs = e_max * (e_max - 1)", "pairs = e_max"),
    ),
    Fault(
        "analysis.energy_without_tail",
        "energy of a run leaves tails out",
        "receive, transmit, compute, tail",
        f"{UNIT}test_costs.py::test_energy_has_the_tails",
        edited(
            "analysis.breakdown:breakdown",
            'parts["energy_j"] = parts.sum(axis=1)',
            'parts["energy_j"] = parts.drop(columns="tail_j").sum(axis=1)',
        ),
    ),
    Fault(
        "analysis.gaps_twice",
        "overlapping absences of a device count twice",
        "union of intervals",
        f"{UNIT}test_metrics.py::test_devices_that_are_off_empty_or_outside_count_for_the_time_that_they_are_not",
        edited(
            "analysis.network:_gaps_of",
            "joined.append((max(since_s, covered_s), end_s))",
            "joined.append((since_s, end_s))",
        ),
    ),
    Fault(
        "analysis.jaccard",
        "likeness of two populations is the share of the first",
        "Jaccard: intersection over union",
        f"{UNIT}test_populations.py::test_jaccard",
        edited("analysis.populations:jaccard", "/ len(one | other)", "/ max(1, len(one))"),
    ),
    Fault(
        "analysis.missed_target",
        "a missed target costs nothing in the lower bound",
        "what was spent in the session is a lower bound",
        f"{UNIT}test_comparison.py::test_means_and_deviations_over_seeds",
        edited("analysis.averages:_reached", "mask(missed, timed[length])", "mask(missed, 0.0)"),
    ),
    Fault(
        "analysis.plateau",
        "a plateau may gain as much as it likes",
        "the next rounds gain at most the margin",
        f"{UNIT}test_drift_reading.py::test_a_plateau_is_where_the_next_rounds_gain_little",
        edited("analysis.drift_reading:Reading.recovery_rounds", "<= self.margin + 1e-12", "<= 1.0"),
    ),
)
