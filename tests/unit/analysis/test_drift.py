"""Test metrics of concept drift on hand-written accuracies."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis.measures.drift import Change, Reading, changes_of, drift_figures, numbered, participants
from edgefl.analysis.reports.drift import compare_drift
from edgefl.analysis.runs.load import load_runs
from tests.unit.analysis.conftest import write_run

FIRST, ROUNDS = 41, 120
BEFORE, DIP, FINAL = 0.8, 0.1, 0.7


def run_of(accuracy: np.ndarray, drifted: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rounds and devices of a run with 1 s and 1 J per round, and two participants with 1 and 2 epochs."""
    count = len(accuracy)
    keys = {"variant": "a", "seed": 1, "cell": 0, "session": 1, "round": np.arange(1, count + 1)}
    rounds = pd.DataFrame(
        {
            **keys,
            "phase": "train",
            "start_s": np.arange(count) * 1.0,
            "end_s": np.arange(count) + 1.0,
            "energy_j": 1.0,
            "accuracy": accuracy,
            "accuracy_std": 0.05,
            "drifted": drifted,
        }
    )
    devices = pd.concat(
        [
            pd.DataFrame(
                {**keys, "phase": "train", "device": d, "accuracy_personal": 0.5 + d / 10, "epochs": d}
            )
            for d in (1, 2)
        ]
    )
    return numbered(rounds), participants(devices)


def sudden() -> np.ndarray:
    return (np.arange(1, ROUNDS + 1) >= FIRST).astype(float)


def linear_recovery(rounds: int) -> np.ndarray:
    """Return accuracies of 0.8 before a drift, which then rise from 0.1 to 0.7 in `rounds` equal steps."""
    accuracy = np.full(ROUNDS, BEFORE)
    after = np.minimum(DIP + (FINAL - DIP) * np.arange(ROUNDS - FIRST + 1) / rounds, FINAL)
    accuracy[FIRST - 1 :] = after
    return accuracy


def only(frame: pd.DataFrame) -> dict[str, Any]:
    assert len(frame) == 1
    row: dict[str, Any] = frame.iloc[0].to_dict()
    return row


def test_figures_by_hand() -> None:
    found = only(drift_figures(*run_of(linear_recovery(30), sudden()), Reading(smooth=1, margin=0.01)))
    assert (found["change"], found["first_round"], found["last_round"]) == (1, FIRST, FIRST)
    assert found["before"] == pytest.approx(BEFORE)
    assert found["dip"] == pytest.approx(DIP)
    assert found["final"] == pytest.approx(FINAL)
    # the k-th round from the drift on has an accuracy of DIP plus k - 1 steps of 0.02
    assert [found[f"after_{k}"] for k in (1, 10, 40, 80)] == pytest.approx([0.1, 0.28, 0.7, 0.7])
    # 0.69 is 29.5 steps of 0.02 above 0.1, so recovery takes 30 rounds
    assert found["recovery_rounds"] == found["recovery_s"] == found["recovery_j"] == 30
    assert found["epochs_before"] == found["epochs_after"] == 3
    assert found["personal_final"] == pytest.approx(0.65)
    assert found["deviation_before"] == pytest.approx(0.05)


def test_a_run_without_epochs_has_no_sum_of_them() -> None:
    """In a study, only runs that stop devices early count epochs."""
    _, devices = run_of(linear_recovery(30), sudden())
    trained = pd.DataFrame(
        {"variant": "b", "seed": 1, "cell": 0, "session": 1, "round": [1], "phase": "train"}
    )
    assert participants(trained.assign(device=0, accuracy_personal=0.5, epochs=np.nan))["epochs"].isna().all()
    assert (devices["epochs"] == 3).all()


def test_the_level_before_a_change_is_the_end_of_the_concept_before_it() -> None:
    """The first concept lasts for 40 rounds, the drift for 10 rounds at half of the accuracy, then it is over."""
    drifted = ((np.arange(1, ROUNDS + 1) >= FIRST) & (np.arange(1, ROUNDS + 1) < FIRST + 10)).astype(float)
    found = drift_figures(*run_of(np.where(drifted > 0, BEFORE / 2, BEFORE), drifted))
    assert found["before"].tolist() == pytest.approx([BEFORE, BEFORE / 2])
    assert found["before"].iloc[1] == found["final"].iloc[0]
    assert found["epochs_before"].tolist() == [3, 3]


def test_the_level_before_a_change_leaves_out_the_dip_of_a_short_concept() -> None:
    """Labels are swapped every 20 rounds; each time, the model is at 0.1 for 6 rounds, and then at 0.8 again."""
    turns = np.arange(ROUNDS) // 20
    accuracy = np.where((np.arange(ROUNDS) % 20 < 6) & (turns > 0), DIP, BEFORE)
    found = drift_figures(*run_of(accuracy, turns % 2.0), Reading(smooth=10))
    assert found["before"].tolist() == pytest.approx([BEFORE] * len(found))
    assert found["recovery_rounds"].tolist() == [6] * len(found)


def test_a_mean_of_rounds_is_back_earlier() -> None:
    """The mean of rounds r to r + 9 is 4.5 steps above round r, so it reaches 0.69 before individual rounds do."""
    found = only(drift_figures(*run_of(linear_recovery(30), sudden()), Reading(smooth=10, margin=0.01)))
    means = [np.minimum(DIP + 0.02 * np.arange(r, r + 10), FINAL).mean() for r in range(40)]
    assert found["recovery_rounds"] == next(r for r, mean in enumerate(means) if mean >= FINAL - 0.01) < 30


def test_who_loses_nothing_needs_no_round() -> None:
    rising = np.linspace(0.5, 0.9, ROUNDS)
    assert only(drift_figures(*run_of(rising, sudden())))["recovery_rounds"] == 0


def test_who_does_not_come_back_for_long_enough() -> None:
    """If only the last 20 rounds have the final level, means of 70 rounds never recover, and means of 20 do."""
    accuracy = np.full(ROUNDS, BEFORE)
    accuracy[FIRST - 1 :] = DIP
    accuracy[-20:] = FINAL
    frames = run_of(accuracy, sudden())
    assert only(drift_figures(*frames, Reading(smooth=70)))["recovery_rounds"] == np.inf
    assert (
        only(drift_figures(*frames, Reading(smooth=20, margin=0.0)))["recovery_rounds"]
        == ROUNDS - FIRST + 1 - 20
    )


@pytest.mark.parametrize(
    ("drifted", "changes"),
    [
        ([0, 0, 1, 1], [Change(3, 3, 4)]),
        ([0, 0.2, 0.2, 0.4, 0.4], [Change(2, 4, 5)]),
        ([0, 1, 1, 0, 0, 1], [Change(2, 2, 3), Change(4, 4, 5), Change(6, 6, 6)]),
        ([1, 1], [Change(1, 1, 2)]),
        ([0.5, 1, 1], [Change(1, 2, 3)]),
        ([0, 0], []),
    ],
)
def test_changes(drifted: list[float], changes: list[Change]) -> None:
    assert changes_of(np.array(drifted, float)) == changes


def test_rounds_without_a_test_are_left_out() -> None:
    accuracy = linear_recovery(30)
    drifted = sudden()
    tested = np.arange(1, ROUNDS + 1) % 5 == 0
    found = only(
        drift_figures(
            *run_of(np.where(tested, accuracy, np.nan), np.where(tested, drifted, np.nan)), Reading(smooth=1)
        )
    )
    assert found["first_round"] == FIRST  # the round after the last tested round before the drift
    assert found["after_1"] == pytest.approx(accuracy[44])
    assert found["recovery_rounds"] == 34  # round 75 is the first tested round with 0.69 or more


def test_devices_that_come_and_go_are_no_change_of_concept() -> None:
    """Half of all devices have drifted, but the drifted share of the devices present differs in each round."""
    present = sudden() * np.random.default_rng(1).uniform(0.4, 0.6, ROUNDS)
    rounds, devices = run_of(linear_recovery(30), present)
    found = only(drift_figures(rounds.assign(drift_share=0.5 * sudden()), devices, Reading(smooth=1)))
    assert (found["first_round"], found["last_round"], found["recovery_rounds"]) == (FIRST, FIRST, 30)
    # without this column, or in a run without it, the share of the devices present decides
    assert len(drift_figures(rounds, devices)) > 10
    assert len(drift_figures(rounds.assign(drift_share=np.nan), devices)) > 10


def study(root: Path) -> Path:
    for variant, pace in (("flash", 10), ("fedavg", 40)):
        for seed in (1, 2):
            rows = [
                {"session": 1, "round": number, "accuracy": a, "accuracy_std": 0.1, "drifted": d}
                for number, (a, d) in enumerate(
                    zip(linear_recovery(pace + seed), sudden(), strict=True), start=1
                )
            ]
            write_run(
                root / variant / f"seed-{seed}",
                rows,
                [{"session": 1}],
                variant=variant,
                seed=seed,
                study="s",
                reference="flash",
            )
    return root


@pytest.mark.usefixtures("rendered")
def test_a_study_is_compared(tmp_path: Path) -> None:
    comparison = compare_drift(study(tmp_path), smooth=1)
    assert comparison.rows["variant"].tolist() == ["flash", "fedavg"]
    flash = comparison.rows.iloc[0]
    assert flash["recovery_rounds_mean"] == 11.5
    assert flash["recovery_rounds_std"] == pytest.approx(np.std([11, 12], ddof=1))
    assert comparison.figure.stat().st_size > 10_000
    page = (tmp_path / "drift.md").read_text()
    assert "change 1, round 41" in page
    assert "epochs" not in page.split("\n\n")[2]  # a column without numbers is left out
    assert (tmp_path / "drift.tex").read_text().count(r"\begin{tabular}") == 1
    assert len(pd.read_csv(tmp_path / "drift_runs.csv")) == 4
    fallen = "the final accuracy is 10 points below that before the drift, so recovery refers to the final accuracy"
    notes = sorted(said for said in comparison.sentences if said.startswith("Note: "))
    assert notes == [f"Note: {name}: {fallen}." for name in ("fedavg", "flash")]
    stuck = tmp_path / "stuck"
    shutil.copytree(tmp_path, stuck, ignore=shutil.ignore_patterns("stuck"))
    some = "fedavg: after change 1, 1 of 2 runs have not recovered, so the mean is ∞"
    for path in sorted(stuck.glob("*/*/rounds.csv")):
        frame = pd.read_csv(path)
        frame.loc[FIRST - 1 :, "accuracy"] = DIP
        frame.to_csv(path, index=False)
        if path.parts[-3:-1] == ("fedavg", "seed-1"):
            assert some in " ".join(compare_drift(stuck, smooth=1).sentences)
    never = compare_drift(stuck, smooth=1)
    assert np.isinf(never.rows["recovery_rounds_mean"]).all()
    assert some not in " ".join(never.sentences)
    assert not [said for said in never.sentences if "recovery refers to the final accuracy" in said]
    shutil.rmtree(stuck)
    for follow, told in ((40, False), (39, True)):  # the last 20 of 39 rounds include one of the first 20
        for path in tmp_path.glob("*/*/rounds.csv"):
            pd.read_csv(path).head(FIRST + follow - 1).to_csv(path, index=False)
        said = compare_drift(tmp_path, smooth=1, out=tmp_path / str(follow)).sentences
        assert (f"followed by only {follow}" in " ".join(said)) == told
    for path in tmp_path.glob("*/*/rounds.csv"):
        pd.read_csv(path).head(FIRST + 12).to_csv(path, index=False)
    said = compare_drift(tmp_path, smooth=1, out=tmp_path / "short").sentences
    assert "followed by only 13" in " ".join(said)
    for path in tmp_path.glob("*/*/rounds.csv"):  # a second change five rounds after the first
        frame = pd.read_csv(path)
        frame.loc[FIRST + 4 :, "drifted"] = 0.0
        frame.to_csv(path, index=False)
    said = compare_drift(tmp_path, smooth=1, out=tmp_path / "twice").sentences
    assert "followed by only 5" in " ".join(said)


def test_a_change_in_different_rounds_has_its_mean_round(tmp_path: Path) -> None:
    """With one of four runs the drift begins four rounds later."""
    late = study(tmp_path) / "fedavg" / "seed-1" / "rounds.csv"
    frame = pd.read_csv(late)
    frame.assign(drifted=frame["drifted"].shift(4, fill_value=0.0)).to_csv(late, index=False)
    assert "change 1, about round 42" in (compare_drift(tmp_path).out / "drift.md").read_text()


def test_runs_without_drift_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "plain", [{"session": 1, "round": 1, "accuracy": 0.5}], [{"session": 1}])
    with pytest.raises(ValueError, match=r"no concept drift: set learning.drift"):
        compare_drift(load_runs(tmp_path))


def test_weights_that_a_run_has_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"no accuracy_by_samples: run them again with learning\.evaluation\.tested_on"
    ):
        compare_drift(study(tmp_path), by="samples")


def test_rounds_are_numbered_from_1_over_all_sessions_of_a_cell() -> None:
    rows = [(0, 1, "train"), (0, 1, "probe"), (0, 2, "train"), (1, 1, "train")]
    rounds = pd.DataFrame(rows, columns=["cell", "session", "phase"]).assign(
        variant="a", seed=1, start_s=range(4)
    )
    assert numbered(rounds)["number"].tolist() == [1, 2, 1]
