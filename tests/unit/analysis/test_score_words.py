"""Test that reports about accuracy name R2 for a regression, and are unchanged for accuracy."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from edgefl.analysis.page.report import Report
from edgefl.analysis.page.score_words import said


@pytest.mark.parametrize(
    ("score", "text", "expected"),
    [
        ("accuracy", "an accuracy of 40 %; Accuracies", "an accuracy of 40 %; Accuracies"),
        ("r2", "40 % accuracy, an accuracy of 40 %", "40 % R2, an R2 of 40 %"),
        ("f1", "An accuracy", "A mean F1"),
        ("f1", "Accuracy at start (%)", "Mean F1 at start (%)"),
        ("average_precision", "test accuracy (%)", "test average precision (%)"),
        ("r2", "columns accuracy_start and a_accuracy", "columns accuracy_start and a_accuracy"),
    ],
)
def test_a_text_names_the_score(score: str, text: str, expected: str) -> None:
    assert said(text, score) == expected


def test_a_report_says_it_in_texts_and_figures_and_leaves_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = Figure()
    axes = figure.add_subplot()
    axes.set_ylabel("test accuracy (%)")
    table = pd.DataFrame({"Accuracy at start (%)": ["40.0"]}, index=["a"])
    report = Report(
        tmp_path,
        score="r2",
        verdicts=["a has 2 points more accuracy than b."],
        tables=[("", table)],
        sentences=["40 % accuracy: reached."],
        numbers={"a.csv": pd.DataFrame({"accuracy": [0.4]})},
        texts={"a.md": "Accuracy"},
        figures={"a": figure},
    ).write()
    report.print()
    printed = capsys.readouterr().out
    for words in ("2 points more R2", "R2 at", "40 % R2: reached."):
        assert words in printed
    assert axes.get_ylabel() == "test R2 (%)"
    assert (tmp_path / "a.md").read_text().startswith("R2\n")
    assert (tmp_path / "a.csv").read_text() == "accuracy\n0.4\n"
