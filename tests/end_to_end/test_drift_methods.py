"""Run every algorithm through a concept drift, on a small version of FLASH's synthetic task."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edgefl
from edgefl.config import registry

ROUNDS, DRIFT = 16, 11
SCENARIO = f"""\
name: drift
devices: {{count: 30}}
rounds: {{selector: {{name: uniform, count: 10}}}}
sessions: {{name: schedule, count: 1, rounds: {ROUNDS}}}
learning:
  dataset: synthetic
  partition: natural
  model: logistic
  drift: {{name: label_swap, at: {DRIFT}}}
  evaluation:
    tested_on: devices
  local:
    epochs: 2
    batch: 50
    lr: 0.05
    lr_power: 0
    momentum: 0.5
  cost:
    flops_per_sample: 1200
"""
TAUGHT = {"fedacg": "{name: fedacg, beta: 0.01}", "fedprox": "{name: fedprox, mu: 0.1}"}
# algorithms with their own local training run with early stopping, as flash always does; other algorithms without it
STOPPED = ("fedavg", "scaffold", "apfl", "ditto", "local_only", "oracle", "hypcluster", "moon")
CHANCE = 0.1  # accuracy of guessing among ten labels


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "drift.yaml"
    path.write_text(SCENARIO)
    return path


def play(scenario: Path, out: Path, *overrides: str) -> dict[str, pd.DataFrame]:
    edgefl.simulate(edgefl.load_scenario(scenario, list(overrides)), out=out, device="cpu")
    return {name: pd.read_csv(out / f"{name}.csv") for name in ("rounds", "devices", "events")}


@pytest.mark.parametrize("name", registry.names("algorithms"))
def test_every_algorithm_goes_through_a_drift(name: str, scenario: Path, tmp_path: Path) -> None:
    chosen = f"learning.algorithm={TAUGHT.get(name, name)}"
    stopping = "0.03" if name in STOPPED else "null"
    tables = play(scenario, tmp_path / "run", chosen, f"learning.local.early_stopping={stopping}")
    rounds, devices = tables["rounds"], tables["devices"]
    assert rounds.drifted.tolist() == [0.0] * (DRIFT - 1) + [1.0] * (ROUNDS - DRIFT + 1)
    before, after = rounds.accuracy[DRIFT - 6 : DRIFT - 1].mean(), rounds.accuracy[DRIFT - 1]
    assert before > 2 * CHANCE
    if name == "oracle":
        assert after > 0.7 * before
    else:
        assert after < 0.7 * before, "the labels were swapped"
    assert np.isfinite(rounds.loss).all()
    assert devices.accuracy_personal[devices["round"] == ROUNDS].mean() > 4 * CHANCE
    stops = name in (*STOPPED, "flash")
    assert ("epochs" in devices) == stops
    if stops:
        assert devices.epochs.between(1, 2).all()
        assert devices.epochs.nunique() == 2, "only some devices stop after the first epoch"
    algorithm, model = registry.get("algorithms", name), 32 * 610
    assert (
        devices.downlink_bits >= algorithm.vectors_down * model
    ).all()  # devices that choose among models receive several models
    assert (devices.downlink_bits % model == 0).all()
    assert (devices.uplink_bits == algorithm.vectors_up * model).all()


def test_devices_that_did_not_finish_training_have_no_facts_of_it(scenario: Path, tmp_path: Path) -> None:
    """Tables say what a device did, not what it would have done by the deadline."""
    late = ["rounds.deadline_s=0.5", "radio.bandwidth_hz=2e6", "devices.flops_per_cycle=0.01"]
    how = ["learning.algorithm=hypcluster", "rounds.selector={name: oort, count: 10}", "sessions.rounds=3"]
    devices = play(scenario, tmp_path / "run", *how, *late, "learning.local.early_stopping=0.03")["devices"]
    trained = ~devices.outcome.str.endswith(("_downlink", "_compute"))
    assert 0 < trained.sum() < len(devices), devices.outcome.value_counts()
    for name in ("epochs", "cluster", "lowest_loss", "loss_received"):
        assert (devices[name].notna() == trained).all(), name


def test_what_is_exchanged_is_counted(scenario: Path, tmp_path: Path) -> None:
    """HypCluster's devices receive all models and send one; the column `cluster` is the number of the model sent."""
    short = ["sessions.rounds=3", "learning.local.epochs=1"]
    devices = play(scenario, tmp_path / "run", "learning.algorithm={name: hypcluster, models: 3}", *short)[
        "devices"
    ]
    assert (devices.downlink_bits == 3 * 32 * 610).all()
    assert (devices.uplink_bits == 32 * 610).all()
    assert devices.cluster.isin([0, 1, 2]).all()
    assert (devices.lowest_loss > 0).all()


@pytest.mark.parametrize(
    "radio",
    [
        ["radio.scheduler=equal_share"],
        ["radio.sharing=dynamic", "radio.scheduler=proportional_fair"],
        ["radio.tdd={pattern: DDDSU}"],
    ],
    ids=["static", "dynamic", "tdd"],
)
def test_who_exchanges_nothing_spends_nothing_on_the_radio(
    radio: list[str], scenario: Path, tmp_path: Path
) -> None:
    """The engine accepts transfers of 0 bits, which take neither energy nor time."""
    short = ["sessions.rounds=2", "learning.local.epochs=1", "learning.algorithm=local_only"]
    devices = play(scenario, tmp_path / "run", *short, *radio)["devices"]
    assert (devices.outcome == "completed").all()
    for way, energy in (("downlink", "rx"), ("uplink", "tx")):
        assert (devices[f"{way}_end_s"] - devices[f"{way}_start_s"] == 0).all()
        assert (devices[f"energy_{energy}_j"] == 0).all()
    assert (devices.energy_compute_j > 0).all()
