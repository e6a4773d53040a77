"""Test the papers' metrics on small runs against hand-computed values."""

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from edgefl.analysis import compare, handover_figures, load_runs, metrics
from tests.unit.analysis.conftest import rounds_of

Write = Callable[..., Path]


def study(write_run: Write, *, probe: bool = True) -> Path:
    """Write a study with labels A (pilot), B, A, B in sessions 1 to 4, so session 4 recurs; rounds take 10 s and 5 J.

    The reference opens session 4 with one probe round (4 s, 2 J) and peaks at 0.80 there.
    """
    labels = [
        {"session": s, "labels": "0 1" if s % 2 else "2 3", "accuracy_start": 0.1} for s in (1, 2, 3, 4)
    ]
    early = rounds_of(1, [0.5], "pilot") + rounds_of(2, [0.5]) + rounds_of(3, [0.5])
    probes = (
        [{"session": 4, "round": 1, "phase": "probe", "latency_s": 4.0, "energy_j": 2.0}] if probe else []
    )
    about = {"reference": "best", "study": "s"}
    write_run("best", early + probes + rounds_of(4, [0.76, 0.80, 0.78]), labels, variant="best", **about)
    write_run("slow", early + rounds_of(4, [0.40, 0.759, 0.77]), labels, variant="slow", **about)
    return write_run("never", early + rounds_of(4, [0.1, 0.2, 0.3]), labels, variant="never", **about).parent


def row_of(frame: pd.DataFrame, variant: str, session: int = 4) -> pd.Series:
    (row,) = [row for _, row in frame[(frame.variant == variant) & (frame.session == session)].iterrows()]
    return row


def test_time_to_target_counts_from_the_start_of_the_session(write_run: Write) -> None:
    """The target is 95 % of 0.80 = 0.76, which the reference reaches exactly in round 1, after its probe round."""
    runs = load_runs(study(write_run))
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference="best")
    best, slow, never = (row_of(times, name) for name in ("best", "slow", "never"))
    assert best.target_accuracy == pytest.approx(0.76)
    assert (best.rounds_to_target, best.seconds_to_target, best.joules_to_target) == (1, 14.0, 7.0)
    assert best.probe_rounds == 1
    # 0.759 just misses the target
    assert (slow.rounds_to_target, slow.seconds_to_target, slow.joules_to_target) == (3, 30.0, 15.0)
    assert math.isinf(never.rounds_to_target)
    assert math.isinf(never.joules_to_target)
    faster = row_of(metrics.speed_up(times, reference="best"), "slow")
    assert faster.speed_up_rounds == 3
    assert faster.speed_up_seconds == pytest.approx(30 / 14)
    assert row_of(metrics.speed_up(times, reference="best"), "best").speed_up_joules == 1


def test_accumulated_gain_sums_the_differences(write_run: Write) -> None:
    runs = load_runs(study(write_run))
    gain = metrics.accumulated_gain(runs.rounds, reference="best")
    # (0.76 - 0.40) + (0.80 - 0.759) + (0.78 - 0.77)
    assert row_of(gain, "slow").gain == pytest.approx(0.411)
    assert row_of(gain, "best").gain == 0


def test_mean_over_the_first_rounds(write_run: Write) -> None:
    runs = load_runs(study(write_run))
    first = metrics.accuracy_first_rounds(runs.rounds, first_rounds=2)
    assert row_of(first, "slow").accuracy_first == pytest.approx((0.40 + 0.759) / 2)
    with pytest.raises(ValueError, match="at least 1"):
        metrics.accuracy_first_rounds(runs.rounds, first_rounds=0)


def test_a_variant_that_ends_sooner_is_compared_over_its_rounds(write_run: Write) -> None:
    """`fast` has 0.5 and 0.8 after two rounds, `slow` 0.3, 0.4 and 0.9 after three: the first two are compared."""
    for variant, scores in (("fast", (0.5, 0.8)), ("slow", (0.3, 0.4, 0.9))):
        root = write_run(f"{variant}/1", rounds_of(1, scores), [{"session": 1}], variant=variant, seed=1)
    found = compare(root.parents[1], target=0.1)
    shown = found.detail.set_index("variant")["accuracy_first"]
    assert shown.to_dict() == pytest.approx({"fast": 0.65, "slow": 0.35})
    note = "accuracies of the first 2 rounds are over the rounds that all variants tested in a session"
    assert note in found.notes


def test_variants_are_compared_over_the_rounds_that_all_have_tested(write_run: Write) -> None:
    """Two variants train the same models; one tests every second model, so only these tests compare them."""
    for variant, every in (("often", 1), ("seldom", 2)):
        rounds = [
            {"session": 1, "round": i} | ({} if i % every else {"accuracy": i / 10}) for i in range(1, 5)
        ]
        root = write_run(f"{variant}/1", rounds, [{"session": 1}], variant=variant, seed=1)
    found = compare(root.parents[1], target=0.25)
    assert found.detail["accuracy_first"].tolist() == pytest.approx([0.3, 0.3])
    assert found.table["rounds_to_target_median"].tolist() == [3, 4]
    first, target = found.notes[-2:]
    assert first.endswith("that all variants tested in a session, in one session only 2")
    assert target.startswith(
        "variants test their models in different rounds, and only a tested model can reach"
    )


def test_a_session_recurs_when_its_labels_were_seen_after_the_pilot(write_run: Write) -> None:
    runs = load_runs(study(write_run))
    kinds = metrics.session_kinds(runs.rounds, runs.sessions)
    of_best = kinds[kinds.variant == "best"]
    assert list(of_best.pilot) == [True, False, False, False]
    # session 3 has the pilot's labels, for which no model was saved
    assert list(of_best.recurring) == [False, False, False, True]


def test_totals(write_run: Write) -> None:
    totals = metrics.totals(load_runs(study(write_run)).rounds).set_index("variant")
    assert totals.loc["best", "energy_j"] == 6 * 5 + 2
    assert totals.loc["best", "simulated_s"] == 6 * 10 + 4
    assert totals.loc["slow", "simulated_s"] == 60
    assert totals.loc["best", "round_energy_j"] == 5


def test_cells_have_sessions_of_their_own(write_run: Write) -> None:
    """Two federations of a run each have their own time to the target."""
    rounds = [
        {**row, "cell": cell, "start_s": 10.0 * t, "end_s": 10.0 * (t + 1)}
        for cell, accuracies in ((0, [0.8, 0.8]), (1, [0.1, 0.8]))
        for t, row in enumerate(rounds_of(1, accuracies))
    ]
    sessions = [{"session": 1, "cell": cell, "start_s": 0.0, "accuracy_start": 0.1} for cell in (0, 1)]
    runs = load_runs(write_run("two", rounds, sessions))
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference="two")
    assert list(times.sort_values("cell").rounds_to_target) == [1, 2]


def test_comparison_writes_its_files_and_says_what_was_not_reached(write_run: Write) -> None:
    root = study(write_run)
    comparison = compare(root)
    table = comparison.table.set_index("variant")
    assert comparison.reference == "best"
    assert comparison.sessions == (4,)
    assert table.index[0] == "best"
    assert table.loc["never", "not_reached"] == 1
    assert table.loc["never", "targets"] == 1
    # a lower bound is the whole session of 3 rounds of 10 s
    assert table.loc["never", "seconds_to_target_at_least"] == 30
    assert table.loc["best", "accuracy_start_mean"] == pytest.approx(0.1)
    for name in ("comparison.csv", "comparison.md", "comparison.tex", "comparison_sessions.csv"):
        assert (root / name).stat().st_size > 0
    assert comparison.figure.exists()


def test_only_seeds_that_all_variants_have_are_compared(write_run: Write) -> None:
    sessions = [{"session": 1, "accuracy_start": 0.1}]
    for name, seed in (("a", 1), ("a", 2), ("b", 2)):
        write_run(f"{name}{seed}", rounds_of(1, [0.5]), sessions, variant=name, seed=seed)
    root = write_run("b3", rounds_of(1, [0.5]), sessions, variant="b", seed=3).parent
    comparison = compare(root)
    assert comparison.seeds == (2,)
    assert any("different seeds" in note for note in comparison.notes)


def test_runs_without_training_compare_latency_and_energy(write_run: Write) -> None:
    rounds = [{"session": 1, "round": t, "latency_s": 10.0 * t} for t in (1, 2, 3)]
    root = write_run("w", rounds, [{"session": 1}])
    comparison = compare(root)
    assert not comparison.trained
    assert comparison.table.loc[0, "latency_s_mean"] == 20
    assert comparison.figure.exists()


def test_network_figures_by_hand(write_run: Write, tmp_path: Path) -> None:
    """Two devices have three handovers in half an hour, one of them a ping-pong; one of four uploads is cut off."""
    rounds, sessions = [{"session": 1, "round": t} for t in (1, 2)], [{"session": 1, "devices": "0 1"}]
    path = write_run("n", rounds, sessions, simulated_s=1800.0)
    pd.DataFrame(
        {
            "time_s": [1.0, 2.0, 1799.9, 4.0],
            "event": ["handover", "handover", "handover", "session_end"],
            "device": [0, 0, 1, None],
            "session": [None, None, None, 1],
            "stay_s": [1.0, 0.5, 3.0, None],
            "interruption_s": [0.25, 0.25, 0.25, None],
            "detail": ["", "ping_pong", "", "schedule"],
        }
    ).to_csv(path / "events.csv", index=False)
    pd.DataFrame(
        {
            "session": 1,
            "round": [1, 1, 2, 2],
            "phase": "train",
            "device": [0, 1, 0, 1],
            "energy_j": [5.0, 5.0, 5.0, 1.0],
            "downlink_bits": [10, 10, 10, 10],
            "uplink_bits": [10, 10, 10, 4],
            "outcome": ["completed", "completed", "completed", "left_uplink"],
        }
    ).to_csv(path / "devices.csv", index=False)
    row = handover_figures(load_runs(path)).iloc[0]
    assert row.handovers == 3
    assert row.handovers_per_device_hour == pytest.approx(3 / 2 / 0.5)
    assert row.ping_pong_share == pytest.approx(1 / 3)
    assert row.time_of_stay_s == pytest.approx(1.5)
    assert row.interruption_s == pytest.approx(0.6), "the last handover is 0.1 s before the end"
    assert row.interruption_share == pytest.approx(0.6 / 2 / 1800)
    assert (row.broken, row.wasted_bits, row.wasted_j) == (1, 14, 1.0)
    assert row.wasted_share == pytest.approx(1 / 16)


def test_devices_count_only_while_they_are_available(write_run: Write) -> None:
    """Out of service in 100 s: device 1 at 40 to 60 s, 2 at 0 to 70 s, 3 at 10 to 80 s, and 4 from 90 s on."""
    path = write_run("n", [{"session": 1, "round": 1}], [{"session": 1}], simulated_s=100.0)
    rows = [
        (5.0, "handover", 0),
        (10.0, "departure", 3),
        (40.0, "switched_off", 1),
        (40.0, "switched_off", 3),
        (50.0, "arrival", 3),
        (60.0, "switched_on", 1),
        (70.0, "switched_on", 2),
        (80.0, "switched_on", 3),
        (90.0, "battery_empty", 4),
    ]
    columns = ["time_s", "event", "device"]
    more = {"session": None, "stay_s": None, "interruption_s": 0.29, "detail": ""}
    pd.DataFrame(rows, columns=columns).assign(**more).to_csv(path / "events.csv", index=False)
    devices = pd.read_csv(path / "devices.csv").iloc[:1].assign(device=0)
    devices.to_csv(path / "devices.csv", index=False)
    row = handover_figures(load_runs(path)).iloc[0]
    service_s = 100 + 80 + 30 + 30 + 90
    assert row.handovers_per_device_hour == pytest.approx(3600 / service_s)
    assert row.interruption_share == pytest.approx(0.29 / service_s)


# for the last three peaks, 0.95 times the peak exceeds the written decimal in its last binary digit
@pytest.mark.parametrize("peak", [0.6, 0.7, 0.8, 0.83, 0.9, 1.0, 0.547, 0.687, 0.808])
def test_a_tie_reaches_the_target_whatever_its_last_binary_digit(write_run: Write, peak: float) -> None:
    rounds = rounds_of(1, [0.1, round(0.95 * peak, 6), peak])
    runs = load_runs(write_run("a", rounds, [{"session": 1}]))
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference="a", target="95%")
    assert list(times.rounds_to_target) == [2]


def test_the_first_round_that_reaches_the_target_counts_even_if_later_ones_fall_back(
    write_run: Write,
) -> None:
    runs = load_runs(write_run("a", rounds_of(1, [0.5, 0.96, 0.2, 1.0]), [{"session": 1}]))
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference="a")
    assert times.rounds_to_target[0] == 2
    assert times.session_s[0] == 4 * 10
    # only round 4, the peak, reaches 100 %
    strict = metrics.time_to_target(runs.rounds, runs.sessions, reference="a", target="100%")
    assert strict.rounds_to_target[0] == 4


def test_waiting_before_the_first_round_is_part_of_the_time(write_run: Write) -> None:
    """The time counts from the session's start at 100 s to the end of its first round, 130 to 140 s."""
    rounds = rounds_of(1, [0.5], start_s=130.0)
    runs = load_runs(write_run("a", rounds, [{"session": 1, "start_s": 100.0}]))
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference="a")
    assert times.seconds_to_target[0] == 40.0


def test_without_a_reference_the_best_variant_sets_the_target(write_run: Write) -> None:
    write_run("low", rounds_of(1, [0.5]), [{"session": 1}])
    root = write_run("high", rounds_of(1, [0.8]), [{"session": 1}]).parent
    runs = load_runs(root)
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference=None)
    assert row_of(times, "low", 1).target_accuracy == pytest.approx(0.95 * 0.8)
    assert math.isinf(row_of(times, "low", 1).rounds_to_target)
    assert row_of(times, "high", 1).rounds_to_target == 1


def test_where_the_reference_has_no_accuracy_there_is_nothing_to_reach(write_run: Write) -> None:
    """If `b` has a session that the reference does not have, the time to the target is NaN, not inf."""
    write_run("a", rounds_of(1, [0.5]), [{"session": 1}])
    both = rounds_of(1, [0.5]) + rounds_of(2, [0.5])
    root = write_run("b", both, [{"session": 1}, {"session": 2}]).parent
    runs = load_runs(root)
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference="a")
    assert math.isnan(row_of(times, "b", 2).rounds_to_target)
    assert math.isnan(row_of(times, "b", 2).seconds_to_target)
    gain = metrics.accumulated_gain(runs.rounds, reference="a")
    assert list(gain[gain.variant == "b"].session) == [1]


def test_accuracy_after_change_leaves_probe_rounds_out(write_run: Write) -> None:
    runs = load_runs(study(write_run))
    change = row_of(metrics.accuracy_after_change(runs.rounds, runs.sessions), "best")
    assert (change.accuracy_start, change.accuracy_round_1) == (0.1, 0.76)


def test_a_pilot_of_one_variant_is_a_pilot_for_all(write_run: Write) -> None:
    """A variant's pilot session counts as a pilot for all variants; otherwise session 2 would recur for only one."""
    sessions = [{"session": 1, "labels": "0 1"}, {"session": 2, "labels": "1 0"}]
    write_run("piloted", rounds_of(1, [0.5], "pilot") + rounds_of(2, [0.5]), sessions)
    root = write_run("plain", rounds_of(1, [0.5]) + rounds_of(2, [0.5]), sessions).parent
    runs = load_runs(root)
    assert not metrics.session_kinds(runs.rounds, runs.sessions).recurring.any()
    alone = load_runs(root / "plain")
    # the order of labels does not matter
    assert list(metrics.session_kinds(alone.rounds, alone.sessions).recurring) == [False, True]


def test_over_seeds_averages_cells_first() -> None:
    """Seed 1 has cells with 0.2 and 0.4, seed 2 a cell with 0.7; the seeds' means deviate by 0.4 / sqrt(2)."""
    frame = pd.DataFrame({"session": 1, "seed": [1, 1, 2], "cell": [0, 1, 0], "accuracy": [0.2, 0.4, 0.7]})
    row = metrics.over_seeds(frame, ["session"], "accuracy").loc[1]
    assert row["mean"] == pytest.approx(0.5)
    assert row["std"] == pytest.approx(0.4 / math.sqrt(2))
