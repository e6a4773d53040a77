"""Test what `learning.theory` measures on a small run, and that it does not change the run."""

from pathlib import Path

import pandas as pd
import pytest

from edgefl.learning.federation import theory
from edgefl.learning.federation.theory import COLUMNS
from edgefl.run.api import simulate
from edgefl.scenario.scenario import load

SCENARIO = """
name: measured
devices: {count: 3}
sessions: {name: schedule, count: 1, rounds: 4}
learning: {dataset: digits, model: logistic, local: {steps: 2, batch: 8, lr: 0.05, momentum: 0}}
"""


def rounds_of(folder: Path, *overrides: str) -> pd.DataFrame:
    folder.mkdir()
    (folder / "measured.yaml").write_text(SCENARIO)
    path = simulate(load(folder / "measured.yaml", overrides), folder / "out", device="cpu")
    return pd.read_csv(path / "rounds.csv")


def test_measuring_is_every_nth_round_and_changes_nothing_else(tmp_path: Path) -> None:
    plain = rounds_of(tmp_path / "plain")
    measured = rounds_of(tmp_path / "measured", "learning.theory=2")
    assert not set(COLUMNS) & set(plain)
    pd.testing.assert_frame_equal(measured[plain.columns], plain)
    assert measured.loc[measured["theory_lr"].notna(), "round"].tolist() == [2, 4]
    some = measured[measured["round"].isin([2, 4])]
    # the loss decreases, the mean squared gradient exceeds the squared mean gradient (Jensen), and the rate decays
    assert (some["theory_loss_after"] < some["theory_loss"]).all()
    assert (some["theory_gradient2_devices"] >= some["theory_gradient2"]).all()
    assert some["theory_lr"].tolist() == pytest.approx([0.05 * 0.75, 0.05 * 0.25])
    assert set(some["theory_steps_max"]) == {2}
    assert (some["theory_smoothness"] > 0).all()


def test_noise_is_that_without_replacement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For D = 300 to 600, noise sigma^2 (1 - B/D) / B at B = 8 is 2 (1 - 8/D) / (1 - 16/D) times that at B = 16."""
    monkeypatch.setattr(theory, "SAMPLES", 1000)
    measure = ("learning.partition=iid", "learning.theory=1", "sessions.rounds=1")
    batches = (8, 16)
    runs = [rounds_of(tmp_path / str(size), *measure, f"learning.local.batch={size}") for size in batches]
    noises = [run["theory_noise_steps"].iloc[0] for run in runs]
    assert 2 * (1 - 8 / 600) / (1 - 16 / 600) < noises[0] / noises[1] < 2 * (1 - 8 / 300) / (1 - 16 / 300)
