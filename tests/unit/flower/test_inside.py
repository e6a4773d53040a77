"""Test Flower strategies and ClientApps in a scenario, whose network determines participants and arrivals."""

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="needs pip install 'edgefl-cosim[flower]'")

import flwr.server.strategy as old
import flwr.serverapp.strategy as new
from flwr.app import MetricRecord
from flwr.common import ndarrays_to_parameters

import edgefl
from edgefl import flower
from edgefl.errors import EdgeflError
from edgefl.learners.own import Assignment
from edgefl.testing import check_learner
from tests.refusals import refused_at
from tests.unit.flower import apps

ROUNDS = 6
BANDWIDTH_HZ = 1.0e5
SCENARIO = f"""
name: flower
seed: 5
devices: {{count: 12}}
radio: {{preset: journal, bandwidth_hz: {BANDWIDTH_HZ}}}
sessions: {{name: schedule, count: 1, rounds: {ROUNDS}}}
rounds: {{deadline_s: 0.0098, selector: {{name: uniform, count: 8}}}}
workload: {{payload_bits: 1000, flops_per_sample: 1000}}
"""


def scenario(tmp_path: Path, *overrides: str) -> edgefl.Scenario:
    (tmp_path / "flower.yaml").write_text(SCENARIO)
    return edgefl.load_scenario(tmp_path / "flower.yaml", overrides)


def run(tmp_path: Path, learner: Any, *overrides: str, out: str = "run") -> dict[str, pd.DataFrame]:
    path = edgefl.simulate(scenario(tmp_path, *overrides), tmp_path / out, learner=learner)
    return {name: pd.read_csv(path / f"{name}.csv") for name in ("rounds", "devices", "sessions")}


def learner_of(strategy: Any = None, **options: Any) -> Any:
    """Return a learner of a message-based app, by default with FedAvg."""
    return flower.learner(apps.app(), strategy or new.FedAvg(**apps.ONE), initial=apps.INITIAL, **options)


def older_learner_of(strategy: Any = None, **options: Any) -> Any:
    """Return a learner of an older app, by default with FedAvg."""
    return flower.learner(apps.old_app(), strategy or old.FedAvg(**apps.ONE_OLD), **options)


def by_hand(tables: dict[str, pd.DataFrame], test_on: Any) -> list[float]:
    """Return the losses of federated averaging over the updates that the table lists as arrived."""
    w, losses = apps.INITIAL[0], []
    for number in range(1, ROUNDS + 1):
        devices = tables["devices"][tables["devices"]["round"] == number]
        arrived = devices.device[devices.outcome == "completed"].tolist()
        if arrived:
            weights = np.array([apps.EXAMPLES + device for device in arrived], float)
            updates = np.stack([apps.trained(w, device) for device in arrived])
            w = (weights / weights.sum() @ updates).astype(np.float32)
        losses.append(test_on(w))
    return losses


def everybody(w: np.ndarray) -> float:
    examples = [apps.EXAMPLES + device for device in range(12)]
    return float(np.average([apps.loss(w, device) for device in range(12)], weights=examples))


@pytest.mark.parametrize("kind", ["messages", "results"])
def test_the_model_is_that_of_the_updates_that_arrived(kind: str, tmp_path: Path) -> None:
    tables = run(tmp_path, learner_of() if kind == "messages" else older_learner_of())
    outcomes = set(tables["devices"].outcome)
    assert "completed" in outcomes
    assert len(outcomes) > 1  # the deadline cuts some updates off
    assert tables["rounds"].loss.tolist() == pytest.approx(by_hand(tables, everybody), rel=1e-4)
    assert tables["rounds"].accuracy.unique().tolist() == [0.5 if kind == "messages" else 0.25]
    assert (tables["rounds"].latency_s > 0).all()
    assert (tables["rounds"].energy_j > 0).all()


def test_bits_iterations_and_samples_are_those_of_the_messages(tmp_path: Path) -> None:
    learner = learner_of(epochs=2, batch=20, flops_per_sample=5.0e6)
    tables = run(tmp_path, learner, "rounds.deadline_s=100")
    devices = tables["devices"]
    work = {device: 2 * (apps.EXAMPLES + device) for device in range(12)}
    assert devices.iterations.tolist() == [
        2 * math.ceil((apps.EXAMPLES + id_) / 20) for id_ in devices.device
    ]
    seconds = [work[device] * 5.0e6 / 8.0e9 for device in devices.device]
    assert (devices.compute_end_s - devices.compute_start_s).tolist() == pytest.approx(seconds)
    # a message has three float32 in NumPy's format, their name and a configuration: more than the numbers alone
    assert 8 * 12 < devices.downlink_bits.min() < 8 * 400
    assert devices.uplink_bits.min() > 8 * 12


def test_who_the_strategy_leaves_out_does_nothing(tmp_path: Path) -> None:
    learner = learner_of(new.FedAvg(fraction_train=0.5, **apps.ONE))
    devices = run(tmp_path, learner, "rounds.deadline_s=100")["devices"]
    idle = devices.downlink_bits == 0
    assert idle.groupby(devices["round"]).sum().tolist() == [4] * ROUNDS
    assert (devices[idle].energy_j == 0).all()
    assert (devices[~idle].energy_j > 0).all()
    again = run(tmp_path, learner, "rounds.deadline_s=100", out="again")["devices"]
    pd.testing.assert_frame_equal(devices, again)  # the seed determines Flower's draws


NEW = {
    "FedAvg": new.FedAvg,
    "FedProx": lambda **how: new.FedProx(proximal_mu=0.1, **how),
    "FedAvgM": new.FedAvgM,
    "FedAdam": new.FedAdam,
    "FedAdagrad": new.FedAdagrad,
    "FedYogi": new.FedYogi,
    "FedMedian": new.FedMedian,
    "FedTrimmedAvg": new.FedTrimmedAvg,
    "Krum": new.Krum,
    "MultiKrum": new.MultiKrum,
    "Bulyan": new.Bulyan,
    "DP": lambda **how: new.DifferentialPrivacyServerSideFixedClipping(
        new.FedAvg(**how), noise_multiplier=0.01, clipping_norm=5.0, num_sampled_clients=8
    ),
}
PARAMETERS = {"initial_parameters": ndarrays_to_parameters(apps.INITIAL)}
OLD = {
    "FedAvg": old.FedAvg,
    "FedProx": lambda **how: old.FedProx(proximal_mu=0.1, **how),
    "FedAvgM": lambda **how: old.FedAvgM(server_momentum=0.5, **PARAMETERS, **how),
    "FedAdam": lambda **how: old.FedAdam(**PARAMETERS, **how),
    "FedAdagrad": lambda **how: old.FedAdagrad(**PARAMETERS, **how),
    "FedYogi": lambda **how: old.FedYogi(**PARAMETERS, **how),
    "FedMedian": old.FedMedian,
    "FedTrimmedAvg": old.FedTrimmedAvg,
    "Krum": old.Krum,
    "FaultTolerantFedAvg": old.FaultTolerantFedAvg,
}


@pytest.mark.parametrize("warm", [False, True], ids=["plain", "warm"])
@pytest.mark.parametrize("name", NEW)
def test_strategies_of_messages_learn(name: str, warm: bool, tmp_path: Path) -> None:
    strategy = NEW[name](**apps.ONE)
    learner = learner_of(flower.warm_started(strategy) if warm else strategy)
    losses = run(tmp_path, learner, "rounds.deadline_s=100", "sessions.rounds=3")["rounds"].loss
    assert losses.iloc[-1] < losses.iloc[0]


@pytest.mark.parametrize("warm", [False, True], ids=["plain", "warm"])
@pytest.mark.parametrize("name", OLD)
def test_older_strategies_learn(name: str, warm: bool, tmp_path: Path) -> None:
    strategy = OLD[name](**apps.ONE_OLD)
    learner = older_learner_of(flower.warm_started(strategy) if warm else strategy)
    losses = run(tmp_path, learner, "rounds.deadline_s=100", "sessions.rounds=3")["rounds"].loss
    assert losses.iloc[-1] < losses.iloc[0]


def test_a_test_at_the_server_and_further_columns(tmp_path: Path) -> None:
    asked: list[int] = []

    def evaluate(number: int, arrays: Any) -> MetricRecord:
        asked.append(number)
        return MetricRecord({"accuracy": 0.75, "loss": float(number), "norm": 2.0})

    rounds = run(tmp_path, learner_of(evaluate=evaluate, columns=["norm", "other"]))["rounds"]
    assert asked == list(range(1, ROUNDS + 1))
    assert rounds.loss.tolist() == asked
    assert rounds.norm.tolist() == [2.0] * ROUNDS
    assert rounds.other.isna().all()


def test_each_cell_has_a_strategy_of_its_own(tmp_path: Path) -> None:
    cells = [
        "layout={rings: 1, isd_m: 200}",
        "radio.propagation.shadowing=spatial",
        "sessions.rounds=2",
        "devices.count=30",
    ]
    made: list[int] = []

    def strategy(told: Assignment) -> new.FedAvg:
        made.append(told.cell)
        return new.FedAvg(**apps.ONE)

    by_function = run(tmp_path, learner_of(strategy), *cells)
    assert made == list(range(7))
    copied = run(tmp_path, learner_of(), *cells, out="copied")
    pd.testing.assert_frame_equal(copied["rounds"], by_function["rounds"])


@pytest.mark.parametrize(
    "strategy",
    [
        new.FedAdam(**apps.ONE),
        new.FedAvgM(server_momentum=0.9, **apps.ONE),
        flower.warm_started(new.FedAdam(**apps.ONE)),
        flower.warm_started(
            old.FedAvgM(
                server_momentum=0.9, initial_parameters=ndarrays_to_parameters(apps.INITIAL), **apps.ONE_OLD
            )
        ),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_each_run_begins_with_the_strategy_as_it_was_given(strategy: Any, tmp_path: Path) -> None:
    older = isinstance(strategy, old.Strategy)
    learner = flower.learner(apps.old_app() if older else apps.app(), strategy, initial=apps.INITIAL)
    first, second = (run(tmp_path, learner, out=out)["rounds"] for out in ("first", "second"))
    pd.testing.assert_frame_equal(first, second)


def test_a_strategy_that_cannot_be_copied_trains_once(tmp_path: Path) -> None:
    strategy = new.FedAvg(**apps.ONE)
    strategy.lock = threading.Lock()
    learner = learner_of(strategy)
    with pytest.warns(UserWarning, match="restart"):
        run(tmp_path, learner, out="first")
    with refused_at("", "FedAvg", "cannot be copied", "pass a function"):
        run(tmp_path, learner, out="second")


def test_it_keeps_the_contract_of_learners() -> None:
    check_learner(learner_of(lambda told: new.FedAvg(**apps.ONE)))
    check_learner(older_learner_of(lambda told: old.FedAvg(**apps.ONE_OLD)))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (lambda: flower.learner(apps.app(), new.FedAvg(**apps.ONE)), "pass initial="),
        (lambda: flower.learner(apps.app(), object()), "object is not a Flower strategy"),
        (
            lambda: learner_of(new.FedAvg(**{**apps.ONE, "min_train_nodes": 9})),
            "waits for more than the 8 nodes of this round",
        ),
        (
            lambda: older_learner_of(old.FedAvg(**{**apps.ONE_OLD, "min_fit_clients": 9})),
            "waits for more than the 8 nodes of this round",
        ),
        (lambda: learner_of(new.FedAvg(weighted_by_key="n", **apps.ONE)), "has no 'n' in its MetricRecord"),
        (
            lambda: learner_of(evaluate=lambda number, arrays: 3),
            "the test of round 1 returned 3: make evaluate, .* return a MetricRecord such as",
        ),
        (lambda: older_learner_of(config={"lr": 0.1}), "its own evaluate_fn and on_fit_config_fn"),
    ],
)
def test_what_does_not_fit_is_one_message(learner: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(EdgeflError, match=message):
        run(tmp_path, learner())


def old_strategy_without_assignment() -> old.FedAvg:
    return old.FedAvg()


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((new.FedAvg(), apps.app()), {}, "client_app is of type FedAvg: pass the ClientApp first"),
        ((apps.app, new.FedAvg()), {}, "client_app is the function app: pass the ClientApp first"),
        ((apps.app(), apps.app()), {}, "strategy is of type ClientApp: pass a strategy, such as FedAvg()"),
        ((apps.app(), new.FedAdam), {}, "strategy is the class FedAdam: pass a strategy, such as FedAvg()"),
        ((apps.app(), old.FedAvg), {}, "strategy is the class FedAvg: pass a strategy"),
        (
            (apps.app(), old_strategy_without_assignment),
            {},
            "strategy is the function old_strategy_without_assignment, which does not take one argument: pass",
        ),
        (None, {"batch": 0}, "batch is 0: pass a whole number of at least 1, or None"),
        (None, {"batch": 2.5}, "batch is 2.5: pass a whole number"),
        (None, {"epochs": None}, "epochs is None: pass a whole number of at least 1"),
        (None, {"columns": "f1"}, "columns is 'f1': pass a list of metric names, such as ['f1']"),
        (None, {"config": [1]}, "config is [1]: pass a dict of settings, or None"),
        (None, {"evaluate": 1}, "evaluate is 1: pass a function (round, arrays) -> MetricRecord, or None"),
    ],
)
def test_a_wrong_argument_is_named(given: Any, options: dict[str, Any], message: str) -> None:
    with refused_at("", message):
        flower.learner(*(given or (apps.app(), new.FedAvg())), initial=apps.INITIAL, **options)


def test_an_app_is_no_learner(tmp_path: Path) -> None:
    with refused_at(
        "", "does not take one argument", "edgefl.flower.learner makes one from a Flower ClientApp"
    ):
        run(tmp_path, apps.app())


def test_a_column_without_a_metric_is_said_once(tmp_path: Path) -> None:
    """Metrics may be missing in some tests, so a column that the first test does not fill is no error."""
    learner = learner_of(columns=["nix", "eval_acc"])
    with pytest.warns(UserWarning, match=r"columns=\['nix'\]: the first test has only the metrics") as told:
        rounds = run(tmp_path, learner)["rounds"]
    assert sum("nix" in str(one.message) for one in told) == 1
    assert rounds["nix"].isna().all()
    assert rounds["eval_acc"].notna().any()
