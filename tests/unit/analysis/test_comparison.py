"""Test means over seeds, the choice of compared sessions, and notes."""

import json
import math
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from edgefl.analysis import compare, load_runs
from edgefl.analysis.figures.comparison import adaptation_figure
from edgefl.analysis.measures.service import services_of
from edgefl.analysis.reports.comparison import FIGURE_NUMBERS, caption, figures
from edgefl.analysis.reports.comparison_tables import brief
from edgefl.analysis.runs.reading import REQUIRED_COLUMNS
from tests.unit.analysis.conftest import rounds_of

Write = Callable[..., Path]
AGAIN = [{"session": s, "labels": "0 1", "accuracy_start": 0.1} for s in (1, 2)]


def two_sessions(accuracies: list[float]) -> list[dict]:
    """Return rounds of two sessions with the same labels: session 2 has these accuracies, 10 s and 5 J per round."""
    return rounds_of(1, [0.5]) + rounds_of(2, accuracies)


def test_means_and_deviations_over_seeds(write_run: Write) -> None:
    """Targets use the peak of the same seed: with seed 1 it is 0.8, and b, at 0.5, misses; with seed 2 it is 0.4."""
    for seed, peak in ((1, 0.8), (2, 0.4)):
        about = {"seed": seed, "reference": "a"}
        write_run(f"a{seed}", two_sessions([peak, peak]), AGAIN, variant="a", **about)
        root = write_run(f"b{seed}", two_sessions([0.5, 0.5]), AGAIN, variant="b", **about).parent
    comparison = compare(root)
    a, b = (comparison.table.set_index("variant").loc[name] for name in "ab")
    assert comparison.sessions == (2,)
    assert a.accuracy_first_mean == pytest.approx(0.6)
    assert a.accuracy_first_std == pytest.approx(0.4 / math.sqrt(2))
    assert (b.not_reached, b.targets, b.seeds) == (1, 2, 2)
    # the mean is infinite; its lower bound includes all 20 s of the session that missed the target
    assert math.isinf(b.seconds_to_target_mean)
    assert math.isnan(b.seconds_to_target_std)
    assert b.seconds_to_target_at_least == (20 + 10) / 2
    assert b.joules_to_target_at_least == (10 + 5) / 2
    # the gain is (0.8 - 0.5) x 2 with seed 1, and (0.4 - 0.5) x 2 with seed 2
    assert b.gain_mean == pytest.approx((0.6 - 0.2) / 2)
    assert b.energy_j_mean == 3 * 5
    text = (root / "comparison.md").read_text()
    assert "1 of 2" in text
    assert "> 15.0" in text
    unreached = compare(root, target=0.99)  # a bound has no ratio, not even the reference's to itself
    assert brief(unreached)["time ratio"].tolist() == ["—", "—"]


def test_one_seed_has_no_deviation(write_run: Write) -> None:
    comparison = compare(write_run("a", two_sessions([0.5]), AGAIN))
    assert math.isnan(comparison.table.loc[0, "accuracy_first_std"])
    assert "±" not in (comparison.out / "comparison.md").read_text()


def test_sessions_that_do_not_recur_are_compared_and_it_is_said(write_run: Write) -> None:
    sessions = [{"session": 1, "labels": "0 1"}, {"session": 2, "labels": "2 3"}]
    pilot = {"session": 1, "round": 1, "phase": "pilot", "accuracy": 0.5}
    comparison = compare(write_run("a", [pilot, *two_sessions([0.5])[1:]], sessions))
    assert comparison.sessions == (2,)
    assert comparison.scope == "sessions after the pilot"
    assert any("no session repeats the labels" in note for note in comparison.notes)


def test_different_labels_of_two_variants_are_noted(write_run: Write) -> None:
    write_run("a", two_sessions([0.5]), AGAIN)
    root = write_run("b", two_sessions([0.5]), [AGAIN[0], {"session": 2, "labels": "0 2"}]).parent
    comparison = compare(root)
    assert any("different labels in session 2" in note for note in comparison.notes)
    assert comparison.per_session.set_index("session").loc[2, "labels"] == "differ"


def test_seeds_without_overlap_are_an_error(write_run: Write) -> None:
    write_run("a", two_sessions([0.5]), AGAIN, variant="a", seed=1)
    root = write_run("b", two_sessions([0.5]), AGAIN, variant="b", seed=2).parent
    with pytest.raises(ValueError, match=r"no seed is common to all variants \(a 1; b 2\)"):
        compare(root)


def test_the_reference_is_the_argument_then_the_one_that_the_runs_name(write_run: Write) -> None:
    write_run("a", two_sessions([0.5]), AGAIN, reference="b")
    root = write_run("b", two_sessions([0.8]), AGAIN, reference="b").parent
    assert compare(root).reference == "b"
    assert list(compare(root, reference="a").table.variant) == ["a", "b"]
    write_run("c", two_sessions([0.5]), AGAIN, reference="c")
    with pytest.raises(ValueError, match=r"different references \(b, c\): choose one with reference="):
        compare(root)


def test_a_reference_that_did_not_complete_is_noted(write_run: Write) -> None:
    write_run("best", two_sessions([0.9]), AGAIN, status="failed")
    root = write_run("a", two_sessions([0.5]), AGAIN, reference="best").parent
    with pytest.warns(UserWarning, match="best"):
        comparison = compare(root)
    assert comparison.reference is None
    text = (root / "comparison.md").read_text()
    assert "its status is 'failed'" in text
    assert "the reference 'best' has no completed run" in text


def test_files_go_where_they_are_asked_to(write_run: Write, tmp_path: Path) -> None:
    root = write_run("a", two_sessions([0.5]), AGAIN)
    comparison = compare(root, out=tmp_path / "new" / "folder")
    assert {file.name for file in comparison.out.iterdir()} == {
        *("comparison.pdf", "comparison_curves.png", "comparison_curves.pdf"),
        *("comparison.csv", "comparison.md", "comparison.tex", "comparison.png", "comparison_sessions.csv"),
        "comparison_targets.csv",
    }
    assert not (root / "comparison.csv").exists()


def test_the_notes_of_runs_are_not_lost(write_run: Write) -> None:
    rounds, sessions = [{"session": 1, "round": 1, "accuracy": 0.5}], [{"session": 1}]
    write_run("quiet", rounds, sessions, notes=[])
    path = write_run("a", rounds, sessions, notes=["no update was ever aggregated", "another"])
    write_run("b", rounds, sessions, notes=["another"])
    notes = compare(path.parent).notes
    assert f"1 of 3 runs ({path}): no update was ever aggregated" in notes
    assert f"2 of 3 runs ({path} first): another" in notes
    write_run("c", rounds, sessions, notes=[str(number) for number in range(9)])
    assert "5 more notes in the runs' run.json" in compare(path.parent).notes


@pytest.mark.usefixtures("rendered")
def test_the_figure_carries_its_numbers(write_study: Write) -> None:
    comparison = compare(write_study(sessions=4, rounds=3, seeds=(1, 2)))
    numbers = Image.open(comparison.figure).text[FIGURE_NUMBERS]
    assert numbers == (comparison.out / "comparison.csv").read_text()
    for name in ("comparison", "comparison_curves"):
        assert (comparison.out / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert Image.open(comparison.out / "comparison_curves.png").width > 100


def test_the_largest_privacy_loss_of_a_variant_is_told(write_run: Write) -> None:
    rounds = [{"session": 1, "round": number, "accuracy": 0.5} for number in (1, 2)]
    for seed, spent in ((1, 2.5), (2, 1.5)):
        path = write_run(f"a{seed}", rounds, [{"session": 1}], variant="a", seed=seed, epsilon=spent)
    said = compare(path.parent).notes
    assert "a: The largest privacy loss epsilon of a device is 2.50." in said


def test_variants_stand_in_the_order_of_the_studys_file(write_run: Write, tmp_path: Path) -> None:
    """Variants are in the study file's order, even if the reference is not first; folders are in the given order."""
    names = ["50 MHz", "200 MHz", "100 MHz"]
    for name in names:
        about = {"variant": name, "variants": names, "reference": "100 MHz", "study": "demo"}
        root = write_run(f"{name}/1", two_sessions([0.5]), AGAIN, **about).parents[1]
    comparison = compare(root)
    assert list(comparison.table["variant"]) == names
    assert (root / "comparison_pareto.png").exists()
    several = load_runs([root / name for name in reversed(names)], names=["z", "y", "x"])
    assert list(compare(several, out=tmp_path / "out").table["variant"]) == ["z", "y", "x"]


def test_without_an_order_the_reference_is_first(write_run: Write) -> None:
    for name in ("a", "b", "c 10", "c 9"):
        root = write_run(name, two_sessions([0.5]), AGAIN, variant=name, reference="b").parent
    assert list(compare(root).table["variant"]) == ["b", "a", "c 9", "c 10"]


def test_no_curve_of_accuracy_lies_below_its_axis(write_run: Write) -> None:
    """If all accuracies are above 40 %, the axis begins below the lowest of them, 0.45."""
    for name, accuracy in (("low", 0.45), ("high", 0.95)):
        rounds = [{"session": s, "round": t, "accuracy": accuracy} for s in (1, 2) for t in (1, 2)]
        sessions = [one | {"accuracy_start": accuracy} for one in AGAIN]
        root = write_run(name, rounds, sessions, variant=name, reference="high").parent
    runs = load_runs(root)
    figure = adaptation_figure(compare(root), services_of(runs))
    lowest, highest = figure.axes[0].get_ylim()
    assert lowest < 45.0 < 95.0 < highest


def test_a_run_without_labels_has_whole_rounds_and_no_new_labels(write_run: Write) -> None:
    rounds = [{"session": 1, "round": t, "energy_compute_j": 1e-6} for t in (1, 2)]
    root = write_run("a", rounds, [{"session": 1, "labels": ""}]).parent
    by_round, _, energy = figures(compare(root))["comparison"].axes
    assert by_round.get_xlabel() == "round", "nothing is trained"
    assert by_round.get_xticks().tolist() == [0, 1, 2]
    assert {text.get_text() for text in by_round.texts} == {"session 1", "", "a"}
    assert "< 0.0001" in {text.get_text() for text in energy.texts}


@pytest.mark.parametrize(
    ("policy", "when"),
    [({"name": "daily", "begin_hour": 4}, "by time of day"), ({"name": "membership"}, "over time")],
)
def test_the_title_says_whether_the_axis_is_a_time_of_day(policy: dict, when: str, write_run: Write) -> None:
    root = write_run("a", two_sessions([0.5, 0.8]), AGAIN, scenario={"sessions": policy}).parent
    title = figures(compare(root))["comparison"].texts[0].get_text()
    assert title == f"Test accuracy of the models in use, {when}"


@pytest.mark.parametrize("rounds", [(2, 2), (3, 2)])
def test_rounds_that_a_seed_lacks_are_told_and_no_two_values_touch(
    rounds: tuple[int, int], write_run: Write
) -> None:
    for variant in "ab":
        for seed, count in enumerate(rounds):
            own = [{"session": 1, "round": t, "energy_compute_j": 0.0456} for t in range(1, count + 1)]
            root = write_run(
                f"{variant}{seed}", own, [{"session": 1, "labels": ""}], variant=variant, seed=seed
            ).parent
    figure = figures(compare(root))["comparison"]
    said = " ".join(text.get_text() for text in figure.texts)
    assert ("later rounds: of the seeds that had them" in said) == (rounds == (3, 2))
    boxes = [text.get_window_extent() for text in figure.axes[2].texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_the_bars_of_a_rounds_energy_sum_to_the_first_one(write_run: Write) -> None:
    """The first bar, 14 J, is the sum of the bars for receiving, sending, computing and tails."""
    shares = {"energy_rx_j": 2.0, "energy_tx_j": 3.0, "energy_compute_j": 4.0, "energy_tail_j": 5.0}
    root = write_run("a", [{"session": 1, "round": 1, "energy_j": 14.0, **shares}], [{"session": 1}]).parent
    figure = figures(compare(root))["comparison"]
    (energy,) = [ax for ax in figure.axes if "energy" in f"{ax.get_title('left')}{ax.get_ylabel()}"]
    whole, *parts = [bar.get_height() for bar in energy.patches]
    assert (whole, parts) == (14, [2, 3, 4, 5])


def test_without_a_clock_a_session_of_several_cells_is_one_row(write_run: Write) -> None:
    """A session's row is the mean of its cells, which open with 0.2, 0.4 in session 1 and 0.6, 0.8 in session 2."""
    rounds = [
        {"session": s, "round": 1, "cell": cell, "accuracy": 0.9, "start_s": 10.0 * s}
        for s in (1, 2)
        for cell in (0, 1)
    ]
    sessions = [
        {"session": s, "cell": cell, "labels": "0 1", "accuracy_start": 0.4 * s - 0.2 + 0.2 * cell}
        for s in (1, 2)
        for cell in (0, 1)
    ]
    table = compare(write_run("a", rounds, sessions)).per_session
    assert table["session"].tolist() == [1, 2]
    assert table["a_accuracy_start_mean"].tolist() == pytest.approx([0.3, 0.7])


@pytest.mark.parametrize(
    ("cells", "says"), [((0,), "all sessions, 1 in 1 cell ("), ((0, 1), "all sessions, 2 in 2 cells (")]
)
def test_a_caption_counts_sessions_and_cells(write_run: Write, cells: tuple[int, ...], says: str) -> None:
    rounds = [{"session": 1, "round": 1, "cell": cell, "accuracy": 0.9} for cell in cells]
    sessions = [{"session": 1, "cell": cell} for cell in cells]
    root = write_run("a", rounds, sessions, scenario={"sessions": {"name": "interval"}})
    assert says in caption(compare(root))


def test_the_end_of_the_last_round_is_not_called_the_total_time(write_run: Write) -> None:
    """A run of 600 s (`duration_s`) whose only round ends after 10 s."""
    root = write_run("a", [{"session": 1, "round": 1, "accuracy": 0.9}], [{"session": 1}], simulated_s=600.0)
    assert brief(compare(root, columns=["total_time"])).to_dict("list") == {
        "End of the last round (s)": ["10.0"]
    }


def test_variants_with_identical_tables_are_named(write_study: Callable[..., Path]) -> None:
    """Equal rounds do not suffice: idle power changes only the ledger, and a longer run only its end."""
    root = write_study(rounds=3, seeds=(1, 2))
    assert not any("identical" in note for note in compare(root).notes)
    for seed in (1, 2):
        ours, theirs = (root / name / f"seed-{seed}" for name in ("average", "previous"))
        ledger = dict.fromkeys(REQUIRED_COLUMNS["ledger"], 1)
        pd.DataFrame([ledger]).to_csv(theirs / "ledger.csv", index=False)
        for file in theirs.glob("*.*"):
            shutil.copy(file, ours)
        about = json.loads((ours / "run.json").read_text())
        (ours / "run.json").write_text(json.dumps(about | {"variant": "average"}))
    for rate, why in (
        (0.2, "the settings in which they differ had no effect"),
        (0.1, "their settings are the same"),
    ):
        for variant, lr in (("average", rate), ("previous", 0.1)):
            for seed in (1, 2):
                scenario = f"seed: {seed}\nlearning: {{local: {{lr: {lr}}}}}\n"
                (root / variant / f"seed-{seed}" / "scenario.yaml").write_text(scenario)
        assert f"variants average and previous gave identical results: {why}" in compare(root).notes
    pd.DataFrame([ledger | {"idle_j": 2}]).to_csv(ours / "ledger.csv", index=False)
    assert not any("identical" in note for note in compare(root).notes)
    shutil.copy(theirs / "ledger.csv", ours)
    (ours / "run.json").write_text(json.dumps(about | {"variant": "average", "simulated_s": 1e6}))
    assert not any("identical" in note for note in compare(root).notes)
