"""Test the sentences, one per variant, that answer a comparison, on runs written by hand."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from edgefl.analysis import compare
from edgefl.analysis.measures.uncertainty import Ratio
from edgefl.analysis.measures.verdicts import two_digits, versus
from edgefl.analysis.page.formatting import lower_bound
from edgefl.analysis.page.units import bare, written
from edgefl.analysis.reports.comparison_tables import brief, headline

Write = Callable[..., Path]
# variant -> per seed, the round's latency, energy and accuracy
Rounds = Mapping[str, list[tuple[float, float, float]]]

LAST: list[Path] = []  # folder of the last comparison


def verdicts(
    write_run: Write, runs: Rounds, reference: str | None = "ours", target: float | tuple[()] = 0.8
) -> tuple[str, ...]:
    """Return the sentences for runs of one round each."""
    for variant, seeds in runs.items():
        for seed, (latency_s, joules, accuracy) in enumerate(seeds, 1):
            told = {"session": 1, "round": 1, "latency_s": latency_s, "energy_j": joules}
            root = write_run(
                f"{variant}/{seed}",
                [told | ({"accuracy": accuracy} if accuracy else {})],
                [{"session": 1}],
                variant=variant,
                seed=seed,
                reference=reference,
            )
    LAST[:] = [root.parents[1]]
    return compare(root.parents[1], target=target).verdicts


def test_a_difference_has_its_ratio_and_interval(write_run: Write) -> None:
    """Three pairs have ratios 2, 2.2, 2 / 1.1; the log ratio's interval is +- t(0.975, 2) log(1.1) / sqrt(3)."""
    slow = [(20.0, 5.0, 0.9), (22.0, 5.0, 0.9), (20.0 / 1.1, 5.0, 0.9)]
    first, second, _ = verdicts(write_run, {"ours": [(10.0, 5.0, 0.9)] * 3, "slow": slow})
    assert (
        first == "ours reaches 80 % accuracy 10.0 s and 5.00 J after a session's start (the mean of 3 seeds)."
    )
    # 2 x 1.1^(+-2.4841) = 1.58 to 2.53
    assert second == (
        "slow needs 2.0 times the time of ours to 80 % accuracy (3 seeds, 95 % interval 1.6 to 2.5); in energy the"
        " pairs of runs show no clear difference (1.0 times, 1.0 to 1.0)."
    )


def test_equal_costs_are_called_equal(write_run: Write) -> None:
    """An interval of width 0 does not leave anything open, so more seeds could not show a difference."""
    same = [(10.0, 5.0, 0.9), (12.0, 6.0, 0.9), (11.0, 7.0, 0.9)]
    _, second, *_ = verdicts(write_run, {"ours": same, "b": same})
    assert second == "b needs exactly the time and energy of ours to 80 % accuracy with each of 3 seeds."
    ratio = Ratio(3, 1 + 2e-16, 1 - 1e-15, 1 + 1e-15)  # sums in another order
    assert (
        versus("b", "a", ratio, ratio, "")
        == "b needs exactly the time and energy of a  with each of 3 seeds."
    )
    further = compare(LAST[0], target=[0.8, 0.6]).verdicts[-1]
    assert further == (
        "60 % accuracy: ours reaches it in every session; b needs exactly the time and energy of ours with each of 3"
        " seeds."
    )


def test_two_pairs_have_a_range_and_no_interval(write_run: Write) -> None:
    """Ratios 2 and 1/2 are shown as a range, because Student's interval, 2^(+-12.7062), is 0.00015 to 6,700."""
    other = [(20.0, 10.0, 0.9), (5.0, 10.0, 0.9)]
    _, second, _ = verdicts(write_run, {"ours": [(10.0, 5.0, 0.9)] * 2, "other": other})
    assert second == (
        "other needs 1.0 times the time of ours to 80 % accuracy (2 seeds: 0.50 to 2.0), and 2.0 times the energy"
        " (2.0 to 2.0)."
    )


def test_one_seed_has_no_interval(write_run: Write) -> None:
    _, second, _ = verdicts(write_run, {"ours": [(10.0, 5.0, 0.9)], "b": [(15.0, 5.0, 0.9)]})
    assert second == (
        "b needs 1.5 times the time of ours to 80 % accuracy, and 1.0 times the energy (one run each, so no"
        " interval)."
    )


def test_a_missed_target_is_a_bound(write_run: Write) -> None:
    runs = {"ours": [(10.0, 5.0, 0.9)] * 2, "b": [(20.0, 5.0, 0.5)] * 2}
    assert verdicts(write_run, runs)[1] == (
        "b misses 80 % accuracy in 2 of 2 sessions, ours in 0; it needs more than 2.0 times the time of ours."
    )


@pytest.mark.parametrize(
    ("time_s", "energy_j", "says"),
    [
        (20.0, 10.0, "it needs more than 2.0 times the time of ours and more than 2.0 times the energy."),
        (5.0, 10.0, "it needs more than 2.0 times the energy of ours."),
        (5.0, 2.0, "give a lower target to compare their costs."),
    ],
)
def test_a_bound_that_compares_nothing_is_left_out(
    write_run: Write, time_s: float, energy_j: float, says: str
) -> None:
    """Lower bounds that decide nothing are left out, as a time above 5 s may be above or below 10 s."""
    runs = {"ours": [(10.0, 5.0, 0.9)], "b": [(time_s, energy_j, 0.5)]}
    said = verdicts(write_run, runs)[1]
    assert said.startswith("b misses 80 % accuracy in 1 of 1 session, ours in 0")
    assert said.endswith(says)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.998, "1.0"), (1.04, "1.0"), (0.0996, "0.10"), (0.994, "0.99"), (9.97, "10"), (99.7, "100")],
)
def test_a_ratio_has_two_digits_after_rounding_too(ratio: float, text: str) -> None:
    assert two_digits(ratio) == text


def test_a_small_clear_difference_is_not_rounded_away(write_run: Write) -> None:
    """Ratios of 1.002, 1.003 and 1.004 are clearly above 1, which two digits would hide."""
    near = [(10.0 * ratio, 5.0, 0.9) for ratio in (1.002, 1.003, 1.004)]
    _, second, *_ = verdicts(write_run, {"ours": [(10.0, 5.0, 0.9)] * 3, "near": near})
    assert second.startswith(
        "near needs 1.003 times the time of ours to 80 % accuracy (3 seeds, 95 % interval 1.001"
    )
    assert brief(compare(LAST[0], target=0.8))["time ratio"].tolist() == ["1", "1.003"]


def test_where_both_miss_the_target_there_is_no_ratio(write_run: Write) -> None:
    both = {"ours": [(10.0, 5.0, 0.4)] * 2, "b": [(20.0, 5.0, 0.5)] * 2}
    first, second = verdicts(write_run, both)
    assert first == "ours misses 80 % accuracy in 2 of 2 sessions."
    assert second.endswith("give a lower target to compare their costs.")


def test_each_further_target_has_a_sentence(write_run: Write) -> None:
    slow = [(20.0, 5.0, 0.85), (22.0, 5.0, 0.85), (20.0 / 1.1, 5.0, 0.85)]
    verdicts(write_run, {"ours": [(10.0, 5.0, 0.9)] * 3, "slow": slow})
    again, missed, all_missed = compare(LAST[0], target=[0.8, 0.6, 0.88, 0.99]).verdicts[-3:]
    assert again == (
        "60 % accuracy: ours reaches it in every session; slow needs 2.0 times the time and 1.0 times the energy"
        " (not clear) of ours."
    )
    assert missed == "88 % accuracy: ours reaches it in every session; slow misses it in 3 of 3 sessions."
    assert all_missed == "99 % accuracy: missed in all sessions of all variants."


def test_without_training_a_round_is_compared(write_run: Write) -> None:
    (only,) = verdicts(write_run, {"ours": [(10.0, 5.0, 0.0)] * 2, "wide": [(5.0, 5.0, 0.0)] * 2})
    # in both pairs, the latencies are 5 and 10 s
    assert only.startswith("wide needs 0.50 times the time of ours for a round (2 seeds: 0.50 to 0.50)")


def test_without_a_target_accuracies_over_the_rounds_there_are_are_compared(write_run: Write) -> None:
    """Without a target, the accuracies of the only round are compared; they differ by 9 and 11 points."""
    runs = {"a": [(10.0, 5.0, 0.5)] * 2, "b": [(10.0, 5.0, 0.59), (10.0, 5.0, 0.61)]}
    assert verdicts(write_run, runs, None, target=()) == (
        "b has 10.0 points more accuracy than a over the first round of a session (2 seeds: +9.0 to +11.0).",
    )


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        ((0.5,), (0.5,), "b has exactly the accuracy of a over the first round of a session (1 seed)."),
        (
            (0.5, 0.6, 0.7),
            (0.5, 0.6, 0.7),
            "b has exactly the accuracy of a over the first round of a session (3 seeds).",
        ),
        (
            (0.5,),
            (0.5004,),
            "b has 0.04 points more accuracy than a over the first round of a session (one run each, so",
        ),
        ((0.5,), (None,), "b and a have no pair of runs with an accuracy over the first round of a session."),
        (
            (0.5, 0.6),
            (0.4998, 0.5997),
            "b has 0.02 points less accuracy than a over the first round of a session (2 seeds: -0.03 to -0.02).",
        ),
    ],
)
def test_small_unknown_and_no_differences_of_accuracy(
    write_run: Write, a: tuple[float, ...], b: tuple[float | None, ...], says: str
) -> None:
    runs = {name: [(10.0, 5.0, accuracy or 0.0) for accuracy in of] for name, of in (("a", a), ("b", b))}
    (said,) = verdicts(write_run, runs, None, target=())
    assert said.startswith(says)


@pytest.mark.parametrize(
    ("b", "c", "says"),
    [
        (0.9062, 0.8968, "differ by at most 1.0 points."),  # 0.94 points apart
        (
            0.9060,
            0.8940,
            "1.0 times the energy (one run each, so no interval).",
        ),  # 1.2 points apart: no sentence
    ],
)
def test_alike_accuracies_are_those_of_any_two_variants(
    write_run: Write, b: float, c: float, says: str
) -> None:
    runs = {name: [(10.0, 5.0, accuracy)] for name, accuracy in (("ours", 0.9), ("b", b), ("c", c))}
    assert verdicts(write_run, runs)[-1].endswith(says)


def test_sentence_and_table_say_one_ratio(write_run: Write) -> None:
    """Sentence and table show 1.93, the geometric mean of 12, 20, 30 s over 10 s, not the median 2 or mean 2.07."""
    slow = [(12.0, 5.0, 0.9), (20.0, 5.0, 0.9), (30.0, 5.0, 0.9)]
    _, second, alike = verdicts(write_run, {"ours": [(10.0, 5.0, 0.9)] * 3, "slow": slow}, target=0.8)
    found = compare(LAST[0], target=0.8)
    assert "(1.9 times the time" in second
    assert brief(found)["time ratio"].tolist() == ["1", "1.9"]
    assert headline(found)["Time relative to ours"].tolist() == ["1", "1.9"]
    ratio = found.table["seconds_to_target_ratio"].tolist()
    assert ratio == pytest.approx([1, (1.2 * 2 * 3) ** (1 / 3)])
    assert alike == "Accuracies over the first round of a session differ by less than 0.1 points."


@pytest.mark.parametrize(
    ("key", "values", "texts"),
    [
        ("radio.bandwidth_hz", [5e6, 10e6, 20e6], ["5 MHz", "10 MHz", "20 MHz"]),
        ("radio.bandwidth_hz", [0.5e6, 20e6], ["0.5 MHz", "20 MHz"]),
        ("rounds.every_s", [600, 3600, 7200], ["600 s", "3600 s", "7200 s"]),
        ("rounds.every_s", [3600, 7200], ["1 h", "2 h"]),
        ("radio.slot_s", [0.25e-3, 1e-3], ["0.25 ms", "1 ms"]),
        ("radio.bandwidth_hz", [123456.0, 2e6], ["123456 Hz", "2000000 Hz"]),
        ("learning.local.lr", [0.1, 1e-5], ["0.1", "1e-05"]),
        ("devices.transmit_power_dbm", [-10, 23], ["-10 dBm", "23 dBm"]),
    ],
)
def test_values_are_written_as_people_do(key: str, values: list[float], texts: list[str]) -> None:
    assert written(key, values) == texts


def test_a_unit_stands_beside_its_values_and_not_in_the_name() -> None:
    assert [bare(key) for key in ("radio.bandwidth_hz", "learning.local.lr", "devices.count")] == [
        "bandwidth",
        "lr",
        "count",
    ]


def test_runs_that_stopped_say_why_and_after_how_many_rounds(write_run: Write) -> None:
    at = "(round 2 of session 1, after 2 s)"  # this text differs between seeds, so the sentence leaves it out
    runs = [
        ("ours", 1, 2, f"accuracy 0.8 reached {at}"),
        ("ours", 2, 3, "accuracy 0.8 reached (round 3 of session 1, after 3 s)"),
        ("b", 1, 2, f"no progress in 5 tests {at}"),
        ("b", 2, 4, "no score ended it"),
        ("c", 1, 1, "accuracy 0.8 reached in 2 cells, in the last after 9 s; 1 of 3 cells not stopped"),
        ("c", 2, 1, None),
    ]
    for variant, seed, count, stopped in runs:
        rounds = [{"session": 1, "round": one, "accuracy": 0.5} for one in range(1, count + 1)]
        about = {"variant": variant, "seed": seed, "stopped": stopped, "reference": "ours"}
        root = write_run(f"{variant}/{seed}", rounds, [{"session": 1}], **about)
    found = compare(root.parents[1], target=0.8)
    assert found.verdicts[-3:] == (
        "`stop` in ours: accuracy 0.8 reached (after 2 to 3 rounds, 2 seeds).",
        "`stop` in b: no progress in 5 tests (after 2 rounds, 1 seed); no score ended it (after 4 rounds, 1 seed).",
        "`stop` in c: accuracy 0.8 reached in 2 cells; 1 of 3 cells not stopped (after 1 round, 1 seed).",
    )


def test_rounds_of_several_cells_are_named_so(write_run: Write) -> None:
    rounds = [{"session": 1, "round": 1, "cell": cell, "accuracy": 0.5} for cell in (0, 1)]
    sessions = [{"session": 1, "cell": cell} for cell in (0, 1)]
    stopped = "accuracy 0.4 reached in 2 cells, in the last after 20 s"
    root = write_run("a", rounds, sessions, variant="a", stopped=stopped)
    assert (
        compare(root).verdicts[-1]
        == "`stop` in a: accuracy 0.4 reached in 2 cells (after 2 rounds of all cells, 1 seed)."
    )


def test_bounds_are_rounded_to_the_side_on_which_they_hold(write_run: Write) -> None:
    """`b` needs more than 1.68 times the time and 2.28 times the energy, which must not become 1.7 and 2.3."""
    runs = {"ours": [(10.0, 5.0, 0.9)], "b": [(16.8, 11.4, 0.5)]}
    said = verdicts(write_run, runs)[1]
    assert said.endswith("it needs more than 1.6 times the time of ours and more than 2.2 times the energy.")
    assert lower_bound(384.67) == "384"
    assert lower_bound(2.0) == "2.00"
    assert lower_bound(1.00999) == "1.00"
