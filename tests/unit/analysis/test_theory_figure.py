"""Test the files of the report on theory, and how its figure shows rounds without a bound."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from edgefl.analysis import report_theory
from edgefl.analysis.figures.style import COLUMN_DPI, WIDTH_INCH
from edgefl.analysis.reports.theory import theory_figure
from tests.tables import sections

Write = Callable[..., Path]
MEASURED = sections("""
    theory_loss=2.0; theory_loss_after=1.9; theory_gradient2=0.5; theory_gradient2_devices=0.7
    theory_smoothness=1.0; theory_noise_steps=0.1; theory_noise_drift=0.05; theory_steps_min=2; theory_steps_max=2
""")


def measured(write_run: Write, variant: str, seed: int, lr: float) -> Path:
    """Return two sessions of three measured rounds each."""
    places = [(session, number) for session in (1, 2) for number in (1, 2, 3)]
    rounds = [
        {"session": session, "round": number, "theory_lr": lr, **MEASURED} for session, number in places
    ]
    sessions = [{"session": 1}, {"session": 2}]
    return write_run(f"{variant}/{seed}", rounds, sessions, variant=variant, seed=seed).parents[1]


@pytest.mark.usefixtures("rendered")
def test_the_report_has_tables_and_a_figure_at_column_width(write_run: Write) -> None:
    root = measured(write_run, "a", 1, 0.01)
    report = report_theory(root)
    assert report.figure is not None
    assert Image.open(report.figure).width == round(WIDTH_INCH * COLUMN_DPI)
    assert report.figure.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert len(pd.read_csv(root / "theory_rounds.csv")) == 6
    assert len(pd.read_csv(root / "theory.csv")) == 1


def test_terms_are_lines_on_a_logarithmic_axis_that_break_between_sessions(write_run: Write) -> None:
    report = report_theory(measured(write_run, "a", 1, 0.01))
    (ax,) = theory_figure(report.numbers["theory_rounds.csv"], pd.Series({1: 3, 2: 3})).axes
    assert ax.get_yscale() == "log"
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"bound (sum)", "(a) progress", "(b) steps", "(c) drift", "(d) divergence"} <= set(lines)
    x, y = lines["bound (sum)"].get_data()
    assert list(x[~np.isnan(y)]) == [1, 2, 3, 4, 5, 6]
    assert list(np.isnan(y)) == [True, False, False, False] * 2, "lines have a gap before each session"
    means = report.numbers["theory.csv"].set_index("variant").loc["a"]
    assert y[1] == means["bound"] > means["gradient2"]
    ax.set_xlim(0, 2)
    assert not np.mod(ax.get_xticks(), 1).any()


def test_a_round_that_one_seed_has_no_bound_for_is_ticked(write_run: Write) -> None:
    """4 beta^2 lr^2 e (e - 1) is 8 lr^2 with beta = 1 and two steps, so from lr = 0.36 on there is no bound."""
    measured(write_run, "a", 1, 0.01)
    root = measured(write_run, "a", 2, 0.5)
    report = report_theory(root)
    assert report.numbers["theory.csv"].set_index("seed")["without_bound"].to_dict() == {1: 0, 2: 6}
    (ax,) = theory_figure(report.numbers["theory_rounds.csv"], pd.Series({1: 3, 2: 3})).axes
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert list(lines["no bound (14)"].get_xdata()) == [1, 2, 3, 4, 5, 6]
    assert np.isnan(lines["bound (sum)"].get_ydata()).all()
    assert "(a) progress" not in lines


def test_variants_beyond_the_panels_are_told(write_run: Write) -> None:
    for variant in "abcde":
        root = measured(write_run, variant, 1, 0.01)
    (note,) = (line for line in report_theory(root).sentences if line.startswith("Note:"))
    assert note == "Note: the figure shows the first 4 of 5 variants."
