"""Test the answer to a study's question on runs whose true difference is known."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis.reports.question import UNDECIDED, Question, answer, read, write

ACCURACY = Question("accuracy_end", ("a", "b"), precision=0.05, budget=20)
SECONDS = Question("seconds_to_target", ("a", "b"), precision=5.0, budget=9, target=0.5)
SHIFT = 0.1

Write = Callable[..., Path]


@pytest.fixture
def studied(write_run: Write) -> Callable[..., Path]:
    """Write pairs of runs whose final accuracies differ by SHIFT plus a normal deviation, in one or more settings."""

    def make(pairs: int, deviation: float = 0.01, settings: dict[str, float] | None = None) -> Path:
        rng = np.random.default_rng(5)
        folder = Path()
        for label, shift in (settings or {"": SHIFT}).items():
            for seed in range(1, pairs + 1):
                # both variants of a seed have this term, so it cancels in their difference
                world = rng.normal(0.5, 0.1)
                for name, lead in (("a", shift + rng.normal(0, deviation)), ("b", 0.0)):
                    rounds = [
                        {"session": 1, "round": 1, "accuracy": 0.1},
                        {"session": 1, "round": 2, "accuracy": world + lead},
                    ]
                    run = {"variant": name, "seed": seed, "setting": {"mhz": label} if label else {}}
                    folder = write_run(f"{label or 'all'}/{name}/{seed}", rounds, [{"session": 1}], **run)
        return folder.parents[2]

    return make


def test_a_clear_difference_is_found(studied: Callable[..., Path]) -> None:
    found = answer(studied(10), ACCURACY, {(): range(1, 11)})
    row = found.table.iloc[0]
    assert row["low"] < SHIFT < row["high"]
    assert row["high"] - row["low"] < 2 * ACCURACY.precision
    assert (row["better"], row["why"], row["pairs"]) == ("a", "precise", 10)
    assert "10 pairs of runs): a is better" in found.sentence
    assert found.wanted() == {(): 10}


def test_lower_is_better_for_what_is_spent(write_run: Write) -> None:
    for seed in range(1, 8):
        for name, rest_s in (("a", 10.0), ("b", 40.0 + 0.1 * seed)):
            rounds = [
                {"session": 1, "round": 1, "latency_s": rest_s, "accuracy": 0.2},
                {"session": 1, "round": 2, "latency_s": 1.0, "accuracy": 0.6},
            ]
            folder = write_run(f"{name}/{seed}", rounds, [{"session": 1}], variant=name, seed=seed)
    found = answer(folder.parents[1], SECONDS, {(): range(1, 8)})
    assert found.table.loc[0, "mean"] == pytest.approx(-30.4)
    assert found.table.loc[0, "better"] == "a"


def test_too_few_pairs_want_more_and_never_more_than_the_budget(studied: Callable[..., Path]) -> None:
    path = studied(6, deviation=0.2)
    found = answer(path, ACCURACY, {(): range(1, 7)})
    assert found.wanted() == {(): 12}, "at most twice as many pairs"
    short = Question("accuracy_end", ("a", "b"), precision=0.001, budget=6)
    spent = answer(path, short, {(): range(1, 7)})
    assert spent.table.loc[0, "why"] == "budget"
    assert spent.wanted() == {(): 6}


@pytest.mark.usefixtures("rendered")
def test_a_grid_is_a_map_with_one_error_for_all_of_it(studied: Callable[..., Path], tmp_path: Path) -> None:
    path = studied(9, settings={"5": 0.2, "20": -0.2, "80": 0.0})
    seeds = {(("mhz", label),): range(1, 10) for label in ("5", "20", "80")}
    found = answer(path, ACCURACY, seeds)
    assert list(found.table["mhz"]) == ["5", "20", "80"]
    assert list(found.table["better"]) == ["a", "b", UNDECIDED]
    assert "a is better than b in 1 of 3 settings, worse in 1, undecided in 1" in found.sentence
    alone = answer(path, ACCURACY, {(("mhz", "5"),): range(1, 10)})
    assert alone.table.loc[0, "high"] < found.table.loc[0, "high"], "several intervals must be wider than one"
    assert [file.name for file in write(found, tmp_path)] == ["question.png"]
    assert (tmp_path / "question.pdf").stat().st_size > 1000
    again = read(tmp_path)
    assert again is not None
    pd.testing.assert_frame_equal(again.table, found.table)
    assert (again.question, again.sentence) == (found.question, found.sentence)
    assert again.wanted() == found.wanted()


def test_two_axes_are_drawn_as_a_map(tmp_path: Path) -> None:
    from edgefl.analysis.reports.question import question_figure

    rows = [
        {"mhz": mhz, "alpha": alpha, "mean": 0.1, "low": 0.05, "high": 0.15, "better": better}
        for mhz, alpha, better in (("5", "0.1", "a"), ("20", "0.1", "b"), ("20", "1", UNDECIDED))
    ]
    figure = question_figure(pd.DataFrame(rows), ("mhz", "alpha"), ("a", "b"), "percentage points")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["10.0 ± 5.00\na", "10.0 ± 5.00\nb", f"10.0 ± 5.00\n{UNDECIDED}"]


def test_one_axis_is_drawn_as_intervals_around_their_means() -> None:
    from edgefl.analysis.reports.question import question_figure

    row = {"mhz": "5", "mean": 0.1, "low": 0.05, "high": 0.15, "better": "a"}
    (axes,) = question_figure(pd.DataFrame([row]), ("mhz",), ("a", "b"), "percentage points").axes
    interval, mean, no_difference = axes.get_lines()
    assert set(no_difference.get_xdata()) == {0.0}
    assert list(interval.get_xdata()) == pytest.approx([5.0, 15.0])
    assert list(mean.get_xdata()) == pytest.approx([10.0])


def test_a_pair_that_is_missing_is_told_and_asks_for_nothing(studied: Callable[..., Path]) -> None:
    found = answer(studied(6, deviation=0.2), ACCURACY, {(): range(1, 9)})
    assert found.notes == ("the answer leaves out incomplete pairs: seeds 7, 8",)
    assert found.wanted() == {(): 8}


def test_a_target_that_is_missed_has_no_answer(write_run: Write) -> None:
    for name, accuracy in (("a", 0.9), ("b", 0.3)):
        for seed in range(1, 7):
            rounds = [{"session": 1, "round": 1, "accuracy": accuracy}]
            folder = write_run(f"{name}/{seed}", rounds, [{"session": 1}], variant=name, seed=seed)
    found = answer(folder.parents[1], SECONDS, {(): range(1, 7)})
    assert "the target was missed with seeds 1–6" in found.notes[0]
    assert found.sentence.endswith("no answer from 0 pairs of a and b.")
    assert math.isnan(found.table.loc[0, "mean"])
    assert found.wanted() == {(): 6}
    write(found, folder.parents[1])
    again = read(folder.parents[1])
    assert again is not None
    pd.testing.assert_frame_equal(again.table, found.table)
    assert again.notes == found.notes
    assert read(folder) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"question": 3}'])
def test_a_damaged_answer_is_named(content: str, tmp_path: Path) -> None:
    assert read(tmp_path) is None
    (tmp_path / "question.json").write_text(content)
    with pytest.raises(ValueError, match=r"question\.json, or question\.csv beside it, is damaged"):
        read(tmp_path)
