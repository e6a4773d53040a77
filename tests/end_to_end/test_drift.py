"""Test whole runs with concept drift."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgefl import load_scenario, simulate

AT, ROUNDS, DEVICES = 5, 8, 8
FILE = f"""\
name: drift
seed: 3
devices: {{count: {DEVICES}, mobility: static}}
sessions: {{name: schedule, count: 2, rounds: {ROUNDS // 2}}}
learning:
  dataset: {{name: synthetic, groups: {DEVICES}}}
  partition: natural
  model: logistic
  local:
    epochs: 3
    batch: 50
    lr: 0.05
    momentum: 0
    early_stopping: 0.02
  drift: {{name: label_swap, at: {AT}}}
  evaluation:
    tested_on: devices
"""


PERSONAL = ("accuracy_personal", "accuracy_personal_std", "accuracy_personal_by_samples")
STEADY = "learning.drift.at=1000"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "drift.yaml"
    file.write_text(FILE)
    return file


def played(scenario: Path, out: Path, *overrides: str) -> Path:
    return simulate(load_scenario(scenario, list(overrides)), out, device="cpu")


def rounds(run: Path) -> pd.DataFrame:
    return pd.read_csv(run / "rounds.csv")


def table(devices: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column of devices.csv as a table of rounds and devices."""
    return devices.pivot(index=["session", "round"], columns="device", values=column)


def test_the_model_fails_in_the_round_of_the_drift(scenario: Path, tmp_path: Path) -> None:
    """The drift begins at the given round, counted across sessions, and lowers the accuracy from then on."""
    drifted, steady = played(scenario, tmp_path / "drifted"), played(scenario, tmp_path / "steady", STEADY)
    one, other = rounds(drifted), rounds(steady)
    assert one.drifted.tolist() == [0.0] * (AT - 1) + [1.0] * (ROUNDS - AT + 1)
    assert other.drifted.tolist() == [0.0] * ROUNDS
    before = slice(0, AT - 1)
    assert one.accuracy[before].tolist() == other.accuracy[before].tolist()
    # the swap makes each correct answer wrong, so a model that had the accuracy a has at most 1 - a after the swap
    assert one.accuracy[AT - 1] < other.accuracy[AT - 1] - 0.2
    devices = pd.read_csv(drifted / "devices.csv")
    assert devices.accuracy_personal.between(0, 1).all()
    assert devices.epochs.isin([1.0, 2.0, 3.0]).all()
    assert one.accuracy_std.between(0, 0.5).all()


@pytest.mark.parametrize(
    ("name", "min_updates"), [("fedavg", DEVICES), ("ditto", 1), ("ditto", DEVICES), ("local_only", 1)]
)
def test_only_models_that_exist_have_an_accuracy(
    name: str, min_updates: int, scenario: Path, tmp_path: Path
) -> None:
    """A deadline cuts off some devices; `min_updates` decides whether the server accepts the round without them.

    A local model exists as soon as its training has ended. A personal model exists only after the aggregation, as a
    device stores it only if its update arrives.
    """
    chosen = [f"learning.algorithm={name}", "learning.local.early_stopping=null"]
    run = played(scenario, tmp_path / "whole", *chosen)
    whole = pd.read_csv(run / "devices.csv").merge(rounds(run)[["session", "round", "start_s"]])
    half_s = (whole.uplink_end_s - whole.start_s).median() + 1e-6
    late = [*chosen, STEADY, f"rounds.deadline_s={half_s:.9f}", f"rounds.min_updates={min_updates}"]
    devices = pd.read_csv(played(scenario, tmp_path / "late", *late) / "devices.csv")
    arrived = devices.outcome == "completed"
    trained = arrived | devices.outcome.str.endswith("_uplink")
    assert 0 < arrived.sum() < len(devices)
    exists = trained if name == "fedavg" else arrived & (min_updates == 1)
    assert devices.accuracy_personal.notna().tolist() == exists.tolist()
    assert devices.test_samples.notna().all()
    # rounds.csv averages over the local models trained in the round, or over all personal models kept so far
    shown = table(devices, "accuracy_personal")
    shown = shown if name == "fedavg" else shown.ffill()
    weights = table(devices, "test_samples").where(shown.notna())
    found = rounds(played(scenario, tmp_path / "rounds", *late, "record.devices=none"))
    means = shown.mean(axis=1), shown.std(axis=1, ddof=0), (shown * weights).sum(axis=1) / weights.sum(axis=1)
    for column, mean in zip(PERSONAL, means, strict=True):
        assert found[column].tolist() == pytest.approx(mean.tolist(), nan_ok=True)
    assert found.accuracy_personal.notna().any() == exists.any()


def test_a_mixture_is_of_what_a_device_has_of_both_models(scenario: Path, tmp_path: Path) -> None:
    """After each round, APFL mixes in the new global model, so with alpha 0 personal and global scores are equal."""
    chosen = ["learning.algorithm={name: apfl, alpha: 0}", STEADY]
    found = rounds(played(scenario, tmp_path / "run", *chosen))
    for column, of_global in zip(PERSONAL, ("accuracy", "accuracy_std", "accuracy_by_samples"), strict=True):
        assert found[column].tolist() == found[of_global].tolist()


def test_steps_saved_are_seconds_and_joules_saved(scenario: Path, tmp_path: Path) -> None:
    """No decrease of the loss reaches 1000, so devices stop after one epoch of three, and save time and energy."""
    late, early = (
        pd.read_csv(
            played(scenario, tmp_path / limit, f"learning.local.early_stopping={limit}") / "devices.csv"
        )
        for limit in ("0", "1000")
    )
    assert (early.epochs == 1).all()
    assert late.epochs.max() == 3
    took_s = [(d.compute_end_s - d.compute_start_s).sum() for d in (early, late)]
    assert took_s[0] < took_s[1]
    assert early.energy_compute_j.sum() < late.energy_compute_j.sum()


def test_an_oracle_loses_nothing(scenario: Path, tmp_path: Path) -> None:
    """The drift hardly lowers the accuracy of `oracle`, which has trained a model for the new data from the start."""
    oracle = "learning.algorithm={name: oracle, server_lr: 0.1}"
    run = played(scenario, tmp_path / "run", oracle, "sessions.count=1", "sessions.rounds=8")
    accuracy = rounds(run).accuracy
    assert accuracy[AT - 1] > accuracy[AT - 2] - 0.1


def test_tests_now_and_then(scenario: Path, tmp_path: Path) -> None:
    run = played(scenario, tmp_path / "run", "learning.evaluation.every=3")
    tested = rounds(run).accuracy.notna()
    assert tested.tolist() == [(number % 3 == 0) for number in range(1, ROUNDS + 1)]
    devices = pd.read_csv(run / "devices.csv")
    assert devices.accuracy_personal.notna().sum() == 2 * DEVICES
    assert rounds(run)[list(PERSONAL)].notna().all(axis=1).tolist() == tested.tolist()
    # the share of drifted devices is recorded in rounds without a test, too
    assert rounds(run).drifted.tolist() == [0.0] * (AT - 1) + [1.0] * (ROUNDS - AT + 1)


def test_each_test_sample_counts_alike(scenario: Path, tmp_path: Path) -> None:
    """If all devices take part, the mean of their accuracies, weighted by test samples, is `accuracy_by_samples`.

    With local_only, `accuracy_personal` is the accuracy of the model that each device uses.
    """
    run = played(scenario, tmp_path / "run", "learning.algorithm=local_only")
    devices = pd.read_csv(run / "devices.csv")
    assert devices.groupby("device").test_samples.nunique().eq(1).all()
    assert devices.test_samples.nunique() > 1
    weighed = (devices.accuracy_personal * devices.test_samples).groupby(
        [devices.session, devices["round"]]
    ).sum() / devices.groupby(["session", "round"]).test_samples.sum()
    found = rounds(run)
    assert found.accuracy_by_samples.tolist() == pytest.approx(weighed.tolist())
    assert not np.allclose(found.accuracy_by_samples, found.accuracy)


def test_drift_by_the_clock_on_the_labels_test_data(scenario: Path, tmp_path: Path) -> None:
    """If half of the devices drift at a given time, the common test data have both concepts in equal parts."""
    pilot = rounds(played(scenario, tmp_path / "pilot"))
    at_s = float(pilot.start_s[AT - 1])
    drift = f"learning.drift={{clock: seconds, at: {at_s}, share: 0.5}}"
    found = rounds(played(scenario, tmp_path / "run", drift, "learning.evaluation.tested_on=labels"))
    assert found.drifted.tolist() == [0.0] * (AT - 1) + [0.5] * (ROUNDS - AT + 1)
    assert "accuracy_std" not in found


def _booked(scenario: Path, out: Path, *overrides: str) -> pd.DataFrame:
    """Return the first round's rows of devices.csv; their compute energy is proportional to the samples counted."""
    devices = pd.read_csv(played(scenario, out, *overrides) / "devices.csv")
    return devices[(devices["round"] == 1) & (devices.session == 1)].set_index("device")


def test_a_personal_model_is_booked_too(scenario: Path, tmp_path: Path) -> None:
    """A device that also trains a personal model on the same mini-batches uses twice the compute energy of FedAvg.

    The forward passes for early stopping are counted once.
    """
    trained = "learning.cost.booked=processed"
    plain = _booked(scenario, tmp_path / "fedavg", trained)
    for name in ("ditto", "apfl"):
        both = _booked(scenario, tmp_path / name, f"learning.algorithm={name}", trained)
        assert both.epochs.tolist() == plain.epochs.tolist()
        assert both.energy_compute_j.tolist() == pytest.approx((2 * plain.energy_compute_j).tolist())


def test_what_runs_forward_only_is_booked_as_a_third(scenario: Path, tmp_path: Path) -> None:
    """For early stopping, a device tests its validation samples before the first epoch and after all but the last.

    v of n samples are for validation, so e epochs train e (n - v). The last of the E = 3 epochs needs no decision.
    """
    plain = _booked(scenario, tmp_path / "processed", "learning.cost.booked=processed")
    everything = _booked(scenario, tmp_path / "all")
    more = everything.energy_compute_j / plain.energy_compute_j - 1
    tests = plain.epochs + (plain.epochs < 3)
    expected = 3 / 7 * tests / plain.epochs / 3
    # v and the samples counted are rounded; devices have 45 samples or more, so v is within 4 % of 0.3 n
    assert more.to_numpy() == pytest.approx(expected.to_numpy(), rel=0.1)
