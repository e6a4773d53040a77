"""A grid's table: whose mean leads in which setting and session."""

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from analysis import compare_settings
from analysis.__main__ import main

Write = Callable[..., Path]
SESSIONS = [{"session": s, "labels": "0 1"} for s in (1, 2, 3)]


def write_grid(write_run: Write, accuracies: dict[tuple[str, str, int], list[float]]) -> Path:
    """(setting, variant, seed) -> mean accuracy of the sessions 2 and 3, of two rounds 0.1 above and below."""
    for (setting, variant, seed), means in accuracies.items():
        rounds = [{"session": 1, "round": 1, "accuracy": 0.5, "phase": "pilot"}]
        for session, mean in enumerate(means, start=2):
            rounds += [
                {"session": session, "round": t, "accuracy": mean + d} for t, d in ((1, -0.1), (2, 0.1))
            ]
        about = {"variant": variant, "seed": seed, "reference": "ours", "setting": {"alpha": setting}}
        path = write_run(f"alpha-{setting}/{variant}/{seed}", rounds, SESSIONS, **about)
    return path.parents[2]


def test_means_deviations_and_leads(write_run: Write) -> None:
    root = write_grid(
        write_run,
        {
            ("0.3", "ours", 1): [0.8, 0.6],
            ("0.3", "ours", 2): [0.6, 0.6],
            ("0.3", "other", 1): [0.5, 0.7],
            ("0.3", "other", 2): [0.5, 0.7],
            ("0.7", "ours", 1): [0.9, 0.9],
            ("0.7", "ours", 2): [0.9, 0.9],
            ("0.7", "other", 1): [0.2, 0.4],
            ("0.7", "other", 2): [0.2, 0.4],
        },
    )
    settings = compare_settings(root)
    # session 1 is the pilot, and session 2 the first after it with these labels: only session 3 recurs
    assert settings.sessions == (3,)
    settings = compare_settings(root, sessions=[2, 3])
    table = settings.table.set_index(["alpha", "session"])
    assert table.loc[("0.3", 2), "ours_mean"] == pytest.approx(0.7)
    assert table.loc[("0.3", 2), "ours_std"] == pytest.approx(0.2 / math.sqrt(2))
    assert table["lead"].tolist() == pytest.approx([0.2, -0.1, 0.7, 0.5])
    assert table["best"].tolist() == ["ours", "other", "ours", "ours"]
    text = (root / "settings.md").read_text()
    assert "ours is ahead of all others in 3 of 4 pairs" in text
    assert "Behind: alpha 0.3, session 3: other by 10.00" in text
    assert "**70.00 ± 0.00**" in text
    assert r"\textbf{70.00 $\pm$ 14.14}" in (root / "settings.tex").read_text()
    assert (root / "settings.png").stat().st_size > 10_000
    assert len(pd.read_csv(root / "settings.csv")) == 4
    # only the first round: 0.1 below each mean
    first = compare_settings(root, sessions=[2], first_rounds=1).table
    assert first["ours_mean"].tolist() == pytest.approx([0.6, 0.8])


def test_command(write_run: Write, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_grid(write_run, {("0.3", "ours", 1): [0.8, 0.6], ("0.3", "other", 1): [0.5, 0.7]})
    assert main(["settings", str(root), "--session", "2"]) == 0
    assert "ours is ahead of all others in 1 of 1 pairs" in capsys.readouterr().out
    assert main(["settings", str(root), "--session", "9"]) == 2
    assert "has no session 9" in capsys.readouterr().err


def test_settings_with_different_variants_are_refused(write_run: Write) -> None:
    root = write_grid(write_run, {("0.3", "ours", 1): [0.8, 0.6], ("0.7", "other", 1): [0.5, 0.7]})
    with pytest.raises(ValueError, match="other axes or variants"):
        compare_settings(root)


def test_runs_of_no_grid_are_refused(write_run: Write) -> None:
    root = write_run("a", [{"session": 1, "round": 1, "accuracy": 0.5}], [{"session": 1}])
    with pytest.raises(ValueError, match="are of no grid: use `python -m analysis compare`"):
        compare_settings(root)
