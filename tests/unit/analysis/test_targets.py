"""Test targets: accuracies or shares of a peak, one or several, and the folders of their files."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefl.analysis import compare, load_runs, metrics
from edgefl.analysis.measures.targets import Target, apart, target_of, targets_of
from edgefl.analysis.runs.load import Runs
from tests.unit.analysis.conftest import rounds_of

Write = Callable[..., Path]
SESSIONS = [{"session": 1, "accuracy_start": 0.1}]


@pytest.mark.parametrize(
    ("given", "target"),
    [
        (0.8, Target(0.8, relative=False)),
        ("0.8", Target(0.8, relative=False)),
        ("95%", Target(0.95)),
        ("97.5 % of average", Target(0.975, peak="average")),
        ("90% of best", Target(0.9, peak="best")),
        (1, Target(1.0, relative=False)),
    ],
)
def test_a_number_is_an_accuracy_and_a_percentage_is_of_a_peak(given: str | float, target: Target) -> None:
    assert target_of(given) == target
    assert target_of(target.key) == target


@pytest.mark.parametrize("given", ["95", "0", "-1%", "nan", "101%", "high", "%", "80 % accuracy"])
def test_what_is_no_target_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"target.*such as 0\.8"):
        target_of(given)


def test_several_targets_are_kept_once_in_their_order() -> None:
    assert [target.key for target in targets_of(["95%", 0.8, "0.80", "95 %"])] == ["95%", "0.8"]


def test_absolute_and_relative_targets_side_by_side(write_run: Write) -> None:
    """Run b reaches half of a's peak, 0.4, in round 2, 0.5 in round 3, and half of its own peak in round 1."""
    write_run("a", rounds_of(1, [0.8, 0.8, 0.8]), SESSIONS, variant="a", reference="a")
    root = write_run("b", rounds_of(1, [0.3, 0.4, 0.6]), SESSIONS, variant="b", reference="a").parent
    comparison = compare(root, target=["50%", 0.5, "50% of b", "50% of best"])
    of_b = comparison.to_targets[comparison.to_targets["variant"] == "b"].set_index("target")
    assert of_b["rounds_to_target_mean"].to_dict() == {"50%": 2, "0.5": 3, "50% of b": 1, "50% of best": 2}
    assert of_b["seconds_to_target_mean"].tolist() == [20, 30, 10, 20]
    assert of_b["joules_to_target_mean"].tolist() == [10, 15, 5, 10]
    assert (comparison.out / "comparison_targets.csv").exists()
    # the headline uses the first target
    assert comparison.table.set_index("variant").loc["b", "rounds_to_target_mean"] == 2


def test_an_absolute_target_that_is_missed_is_infinite(write_run: Write) -> None:
    runs = load_runs(write_run("a", rounds_of(1, [0.3, 0.4]), SESSIONS))
    times = metrics.time_to_target(runs.rounds, runs.sessions, reference=None, target=0.5)
    assert math.isinf(times.rounds_to_target[0])


def test_without_a_reference_a_share_is_of_the_first_variants_peak(write_run: Write) -> None:
    """Without a reference, targets and ratios are relative to the first variant, a; b misses 95 % of a's peak."""
    write_run("a", rounds_of(1, [0.8]), SESSIONS)
    root = write_run("b", rounds_of(1, [0.6]), SESSIONS).parent
    comparison = compare(root)
    assert comparison.targets == (Target(0.95, peak="a"),)
    assert comparison.detail["target_accuracy"].tolist() == pytest.approx([0.76, 0.76])
    assert not any("target" in note for note in comparison.notes)
    assert comparison.verdicts[0].startswith("a reaches 95 % of a's peak (of its own best accuracy")
    assert comparison.verdicts[1].startswith("b misses 95 % of a's peak")
    both = compare(root, target=["95%", "95% of best"]).targets
    assert both == (Target(0.95, peak="a"), Target(0.95, peak="best"))
    for same in ("95%", "95% of a", ["95%", "95% of a"]):  # one target has one name and one row
        assert compare(root, reference="a", target=same).targets == (Target(0.95),)
    other = compare(root, reference="a", target=["95%", "95% of b"])
    text = (other.out / "comparison.md").read_text()
    assert all(f"95 % of {peak}: a" in text for peak in ("peak", "b's peak"))
    assert compare(root, target=0.5).targets == (Target(0.5, relative=False),)


def test_a_target_of_a_variant_that_is_not_there_is_refused(write_run: Write) -> None:
    with pytest.raises(ValueError, match=r"no variant 'averge'; known: a, best"):
        compare(write_run("a", rounds_of(1, [0.8]), SESSIONS), target="95% of averge")


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("95%", ""),
        (["95%"], ""),
        (0.8, "target-0.8"),
        (["0.8", "95%"], "target-0.8-95"),
        ("90% of best", "target-90-of-best"),
    ],
)
def test_the_folder_is_named_after_the_targets(target: object, folder: str) -> None:
    assert apart(target) == folder  # type: ignore[arg-type]
    runs = Runs.__new__(Runs)
    object.__setattr__(runs, "home", Path("runs"))
    object.__setattr__(runs, "path", Path("runs"))
    assert runs.folder(None, apart(target)) == Path("runs", folder)  # type: ignore[arg-type]
    assert runs.folder("here", apart(target)) == Path("here")  # type: ignore[arg-type]
