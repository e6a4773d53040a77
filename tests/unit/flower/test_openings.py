"""Test warm starts around Flower strategies in scenarios, in Flower's own loop, and in Flower's simulation."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="needs pip install 'edgefl-cosim[flower]'")

import flwr.server.strategy as old
import flwr.serverapp.strategy as new
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

import edgefl
from edgefl import flower
from edgefl.flower.nodes import Nodes
from edgefl.learning.warm_starts.average import Average
from edgefl.learning.warm_starts.continuous import Continuous
from edgefl.learning.warm_starts.similarity import Similarity
from edgefl.rng import Streams
from tests.refusals import refused_at
from tests.unit.flower import apps

SESSIONS, ROUNDS = 6, 8
# two populations with opposite targets take turns: devices 0 to 3, and devices 4 to 7
SCENARIO = f"""
name: recurring
seed: 5
devices: {{count: 8, populations: 2}}
sessions: {{name: schedule, count: {SESSIONS}, rounds: {ROUNDS}}}
workload: {{payload_bits: 1000, flops_per_sample: 1000}}
"""


@pytest.fixture(autouse=True)
def opposite(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = apps.data

    def data(device: int) -> tuple[np.ndarray, np.ndarray]:
        x, y = plain(device)
        return x, y if device < 4 else -y

    monkeypatch.setattr(apps, "data", data)


def strategies(kind: str) -> tuple[Any, Any, Any]:
    """Return a ClientApp, a strategy for it, and the initial model if the strategy has none."""
    if kind == "messages":
        return apps.app(), new.FedAvg(**apps.ONE), apps.INITIAL
    return apps.old_app(), old.FedAvg(**apps.ONE_OLD), None


@pytest.mark.parametrize("kind", ["messages", "results"])
def test_a_population_that_comes_back_finds_its_model(kind: str, tmp_path: Path) -> None:
    (tmp_path / "recurring.yaml").write_text(SCENARIO)
    scenario = edgefl.load_scenario(tmp_path / "recurring.yaml")
    first_losses = {}
    for name in ("warm", "plain"):
        app, strategy, initial = strategies(kind)
        if name == "warm":
            strategy = flower.warm_started(strategy, Similarity(scale=50.0))
        run = edgefl.simulate(
            scenario, tmp_path / name, learner=flower.learner(app, strategy, initial=initial)
        )
        rounds, sessions = pd.read_csv(run / "rounds.csv"), pd.read_csv(run / "sessions.csv")
        training = rounds[(rounds.phase == "train") & (rounds["round"] == 1)]
        first_losses[name] = training.set_index("session").loss
        if name == "plain":
            assert sessions.weights.isna().all()
            assert set(rounds.phase) == {"train"}
            continue
        # each session after the pilot has a probe, which costs energy
        probes = rounds[rounds.phase == "probe"]
        assert probes.session.tolist() == [2, 3, 4, 5, 6]
        assert (probes.energy_j > 0).all()
        assert probes.loss.isna().all()
        assert sessions.warm_start.fillna("").tolist() == ["", *["similarity"] * 5]
        weights = {
            row.session: {int(one.split(":")[0]): float(one.split(":")[1]) for one in row.weights.split()}
            for row in sessions.dropna(subset=["weights"]).itertuples()
        }
        assert sorted(weights) == [3, 4, 5, 6]
        for session, own in weights.items():
            assert sum(own.values()) == pytest.approx(1, abs=1e-4)
            same = sum(weight for z, weight in own.items() if z % 2 == session % 2)
            assert session == 3 or same > 0.99  # in session 3, only the other is known
    for session in (4, 5, 6):
        assert first_losses["warm"][session] < first_losses["plain"][session] / 10


def in_flowers_loop(strategy: Any, connected: Any, rounds: int, initial: Any = None) -> dict[int, float]:
    """Run the strategy in Flower's own loop over local nodes; return round -> mean loss of connected nodes."""
    devices = range(8)
    nodes, losses = Nodes(apps.app(), devices, Streams(1)), {}

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
        (w,) = arrays.to_numpy_ndarrays()
        there = connected(number)
        losses[number] = float(np.mean([apps.loss(w, device) for device in there]))
        nodes.connected, nodes._asked = tuple(connected(number + 1)), 0
        return MetricRecord({"loss": losses[number]})

    with nodes.of(connected(1), "all"):
        strategy.start(nodes, ArrayRecord(initial or apps.INITIAL), num_rounds=rounds, evaluate_fn=evaluate)
    return losses


def test_in_flowers_own_loop_sessions_have_a_number_of_rounds() -> None:
    """With a pilot of 4 rounds and sessions of 1 probe and 4 rounds, populations alternate by session."""

    def session_of(number: int) -> int:
        return 1 if number <= 4 else 2 + (number - 5) // 5

    def connected(number: int) -> tuple[int, ...]:
        return (0, 1, 2, 3) if session_of(max(1, number)) % 2 else (4, 5, 6, 7)

    strategy = flower.warm_started(
        new.FedAvg(fraction_evaluate=0.0, **apps.ONE), Similarity(scale=50.0), rounds=4
    )
    losses = in_flowers_loop(strategy, connected, 4 + 5 * 4)
    assert strategy.openings.number == 5
    assert strategy.openings.weights[3] > 0.99
    plain = in_flowers_loop(new.FedAvg(fraction_evaluate=0.0, **apps.ONE), connected, 4 + 5 * 4)
    for first in (16, 21):  # numbers of the first training rounds of sessions 4 and 5
        assert losses[first] < plain[first] / 4


def test_in_flowers_own_loop_sessions_begin_when_nodes_have_changed() -> None:
    def connected(number: int) -> tuple[int, ...]:
        return (0, 1, 2, 3) if (max(1, number) - 1) // 6 % 2 == 0 else (3, 4, 5, 6)

    strategy = flower.warm_started(new.FedAvg(fraction_evaluate=0.0, **apps.ONE), changed_share=0.75)
    in_flowers_loop(strategy, connected, 18)
    assert strategy.openings.number == 3
    one_less = flower.warm_started(new.FedAvg(fraction_evaluate=0.0, **apps.ONE), changed_share=0.76)
    in_flowers_loop(one_less, connected, 18)
    assert one_less.openings.number == 1


@pytest.mark.parametrize("make", [new.FedAvgM, new.FedAdam, new.FedYogi, new.FedAdagrad])
def test_a_strategy_that_compares_with_its_last_model_begins_at_the_opening_one(make: Any) -> None:
    """If the only node returns the model that it receives, the model stays at the session's opening model."""
    echo = apps.app()
    strategy = flower.warm_started(make(fraction_evaluate=0.0, **apps.ONE), Average(), rounds=2)
    nodes = Nodes(echo, range(8), Streams(1))
    seen: list[float] = []
    trained, apps.trained = apps.trained, lambda w, device: w
    try:
        with nodes.of((0,), "all"):

            def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
                nodes._asked = 0
                (w,) = arrays.to_numpy_ndarrays()
                seen.append(float(np.abs(w - 1).max()))
                return MetricRecord({"loss": 0.0})

            strategy.start(nodes, ArrayRecord([np.ones(3, np.float32)]), num_rounds=8, evaluate_fn=evaluate)
    finally:
        apps.trained = trained
    assert seen == [0.0] * 9


def test_an_opening_lasts_until_a_round_has_a_result() -> None:
    strategy = flower.warm_started(new.FedAvg(**apps.ONE), Average(), rounds=1)
    openings = strategy.openings
    model = {"w": np.zeros(2, np.float32)}
    openings.begin(model)
    openings.open(model)
    openings.trained()
    assert openings.opening is not None
    openings.aggregated()
    assert openings.opening is None
    assert openings.opened


def test_counters_keep_their_type_and_are_not_averaged() -> None:
    openings = flower.warm_started(new.FedAvg(**apps.ONE), Average(), rounds=1).openings
    for session in range(1, 4):
        model = {"w": np.full(2, session, np.float32), "batches": np.array(10 * session)}
        openings.begin(model)
        opened = openings.open(model)
    # session 1 is the pilot, and the last model of session 2 opens session 3
    assert opened["w"].tolist() == [3.0, 3.0]
    assert opened["w"].dtype == np.float32
    assert opened["batches"] == 30


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"warm_start": Continuous()}, "a strategy cannot run the training or the check of this warm start"),
        (
            {"warm_start": Similarity(check=True)},
            "a strategy cannot run the training or the check of this warm start",
        ),
        ({"warm_start": Similarity(pilot_model="good")}, "needs accuracies"),
        ({"warm_start": "similarity"}, "warm_start is 'similarity': pass one of edgefl.learning.warm_starts"),
        ({"pilot_sessions": 0}, "pilot_sessions is 0: pass a whole number of at least 1"),
        ({"pilot_sessions": 1.5}, "pilot_sessions is 1.5"),
        ({"rounds": 0}, "rounds is 0: pass a whole number of at least 1, or None"),
        ({"rounds": "a"}, "rounds is 'a'"),
        ({"rounds": True}, "rounds is true"),
        ({"changed_share": 2}, "changed_share is 2: pass a number above 0 and up to 1, or None"),
        ({"changed_share": 0.0}, "changed_share is 0.0"),
        ({"changed_share": "half"}, "changed_share is 'half'"),
    ],
)
def test_what_a_strategy_cannot_do_is_refused(how: dict[str, Any], message: str) -> None:
    with refused_at("", message):
        flower.warm_started(new.FedAvg(), **how)
    with refused_at(""):
        flower.warm_started(object())


def test_in_flowers_own_simulation(tmp_path: Path) -> None:
    """In Flower's simulation, with Ray, the wrapped strategy opens sessions, and the model is learned."""
    pytest.importorskip("ray", reason="Flower's simulation needs Ray")
    from flwr.simulation import run_simulation

    server, found = ServerApp(), {}

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        strategy = flower.warm_started(new.FedAvg(fraction_evaluate=0.0, **apps.ONE), rounds=2)
        result = strategy.start(grid, ArrayRecord(apps.INITIAL), num_rounds=8)
        found["sessions"] = strategy.openings.number
        found["weights"] = dict(strategy.openings.weights)
        found["model"] = result.arrays.to_numpy_ndarrays()[0]

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 1}}
    run_simulation(server, apps.app(), num_supernodes=2, backend_config=resources)
    # 8 rounds are a pilot session of 2 rounds, then two sessions of a probe and 2 rounds
    assert found["sessions"] == 3
    assert found["weights"] == {2: 1.0}
    assert np.linalg.norm(found["model"] - apps.TRUTH) < np.linalg.norm(apps.TRUTH)
