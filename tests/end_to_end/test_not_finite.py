"""Test updates that are not finite: they end the run, or the server drops them and continues."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from edgefl import load_scenario, simulate
from tests.refusals import refused_at
from tests.tables import sections
from tests.tools.invariants import check_run
from tests.tools.leaving import goes_on

DEVICES, ROUNDS, BAD = 6, 5, 3
RUN: dict[str, Any] = sections(f"""
    name=not_finite; devices={{count: {DEVICES}}}; rounds={{not_finite: drop}}
    sessions={{name: schedule, count: 1, rounds: {ROUNDS}}}
    learning={{dataset: {{name: npz, path: a.npz, scale: none}}, partition: natural, model: logistic}}
    learning.local={{batch: 20, steps: 2, lr: 0.1}}
""")
FEDBUFF = [
    "rounds.server={name: fedbuff, buffer: 2}",
    "radio.sharing=dynamic",
    "rounds.selector={name: uniform, count: 4}",
]


@pytest.fixture(autouse=True)
def numbers_beyond_measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give device 3 inputs whose products overflow float32; test data and other devices have ordinary inputs."""
    monkeypatch.chdir(tmp_path)
    rng, groups = np.random.default_rng(1), np.arange(120) % DEVICES
    x = rng.normal(size=(120, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    x[groups == BAD] = 3e38
    good = np.flatnonzero(groups != BAD)[:40]
    train = {"x_train": x, "y_train": y, "groups_train": groups}
    np.savez("a.npz", **train, x_test=x[good], y_test=y[good], groups_test=groups[good])


def tables(keys: list[str], folder: Path) -> tuple[Path, pd.DataFrame, pd.DataFrame]:
    path = simulate(load_scenario(RUN, keys), folder, device="cpu")
    return path, pd.read_csv(path / "rounds.csv"), pd.read_csv(path / "devices.csv")


def notes(path: Path) -> list[str]:
    found: list[str] = json.loads((path / "run.json").read_text())["notes"]
    return found


def test_by_default_the_run_ends_and_says_how_it_could_go_on(tmp_path: Path) -> None:
    with refused_at("", f"device {BAD}", "rounds.not_finite: drop"):
        tables(["rounds.not_finite=stop"], tmp_path / "run")


@pytest.mark.parametrize(
    "keys",
    [
        [],
        ["learning.algorithm=scaffold"],
        ["learning.algorithm=ditto"],
        ["learning.uplink_codec=powersgd"],
        ["learning.privacy={clip_norm: 1, where: device}"],
        FEDBUFF,
        [*FEDBUFF, "learning.uplink_codec=top_k"],
    ],
)
def test_a_dropped_update_is_paid_and_changes_nothing(keys: list[str], tmp_path: Path) -> None:
    path, rounds, devices = tables(keys, tmp_path / "run")
    bad = devices.outcome == "unusable_uplink"
    assert bad.any()
    assert set(devices[bad].device) == {BAD}
    assert not (devices[devices.device == BAD].outcome == "completed").any()
    assert (devices[bad].uplink_bits > 0).all()
    assert (devices[bad].energy_tx_j > 0).all()
    assert rounds.energy_wasted_j.sum() >= devices[bad].energy_j.sum() > 0
    if not keys:
        assert rounds.energy_wasted_j.sum() == pytest.approx(devices[bad].energy_j.sum())
        assert rounds.completed.tolist() == [DEVICES - 1] * ROUNDS
    assert np.isfinite(rounds.loss).all()
    if "privacy" not in str(keys):
        assert rounds.loss.iloc[-1] < rounds.loss.iloc[0]
    else:
        assert devices[bad].epsilon.notna().all()  # a dropped update was sent, so it consumes privacy budget
    (note,) = [note for note in notes(path) if "not finite" in note]
    assert note.startswith(f"{bad.sum()} updates were not finite and therefore dropped")
    check_run(path)


def test_where_all_are_dropped_the_model_stays_and_a_row_says_so(tmp_path: Path) -> None:
    """With a learning rate so large that no update is finite, the model does not change, and events.csv says so."""
    path, rounds, devices = tables(
        ["learning.local.lr=100", "learning.model=logistic", *HUGE], tmp_path / "run"
    )
    assert set(devices.outcome) == {"unusable_uplink"}
    assert rounds.version.tolist() == [0] * ROUNDS
    assert rounds.loss.nunique() == 1
    assert rounds.energy_wasted_j.tolist() == pytest.approx(rounds.energy_j.tolist())
    events = pd.read_csv(path / "events.csv")
    assert (events.event == "no_updates").sum() == ROUNDS
    assert any("no update was ever aggregated" in note for note in notes(path))
    check_run(path)


HUGE = ["learning.dataset.path=b.npz"]


@pytest.fixture(autouse=True)
def all_beyond_measure(numbers_beyond_measure: None) -> None:
    with np.load("a.npz") as file:
        arrays = dict(file)
    arrays["x_train"] = np.full_like(arrays["x_train"], 3e38)
    np.savez("b.npz", **arrays)


@pytest.mark.parametrize("keys", [[], FEDBUFF])
def test_a_run_that_drops_goes_on_where_it_was_left(keys: list[str], tmp_path: Path) -> None:
    goes_on(load_scenario(RUN, keys), tmp_path, after=4, every=2)
