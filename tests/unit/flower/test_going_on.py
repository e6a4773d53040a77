"""Test that interrupted Flower runs resume to the same bytes, and that state that cannot be saved is an error."""

import itertools
import os
import random
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs pip install 'edgefl-cosim[flower]'")

import flwr.server.strategy as old
import flwr.serverapp.strategy as new
import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters

import edgefl
from edgefl import flower
from edgefl.flower.keeping import Unkept, pack, state_of, unpack
from edgefl.learning.warm_starts.similarity import Similarity
from edgefl.testing import check_learner
from tests.refusals import refused_at
from tests.unit.flower import apps

PARAMETERS = {"initial_parameters": ndarrays_to_parameters(apps.INITIAL)}
SCENARIO = """
name: left
seed: 5
devices: {count: 8, populations: 2}
sessions: {name: schedule, count: 4, rounds: 4}
rounds: {selector: {name: uniform, count: 3}}
workload: {payload_bits: 1000, flops_per_sample: 1000}
"""


def drawing_app() -> ClientApp:
    """Return an app that adds noise from all common random generators, and counts its rounds in its context."""
    made = ClientApp()

    @made.train()
    def train(message: Message, context: Context) -> Message:
        device = int(context.node_config["partition-id"])
        own = context.state.setdefault("own", MetricRecord({"rounds": 0}))
        own["rounds"] += 1
        noise = random.random() + np.random.rand() + float(torch.rand(())) + own["rounds"]  # noqa: NPY002
        (w,) = message.content["arrays"].to_numpy_ndarrays()
        arrays = ArrayRecord([apps.trained(w, device) + np.float32(1e-3 * noise)])
        metrics = MetricRecord({"num-examples": apps.EXAMPLES})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    @made.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        (w,) = message.content["arrays"].to_numpy_ndarrays()
        metrics = MetricRecord({"num-examples": 1, "eval_loss": apps.loss(w, 0)})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return made


def warm(strategy: Any) -> Any:
    return flower.warm_started(strategy, Similarity(scale=50.0))


LEARNERS = {
    "momentum": lambda: flower.learner(
        drawing_app(), new.FedAvgM(server_momentum=0.5, **apps.ONE), initial=apps.INITIAL
    ),
    "warm adam": lambda: flower.learner(drawing_app(), warm(new.FedAdam(**apps.ONE)), initial=apps.INITIAL),
    "old warm adam": lambda: flower.learner(apps.old_app(), warm(old.FedAdam(**PARAMETERS, **apps.ONE_OLD))),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_run_that_was_left_goes_on_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    (tmp_path / "left.yaml").write_text(SCENARIO)
    scenario = edgefl.load_scenario(tmp_path / "left.yaml")
    whole = edgefl.simulate(scenario, tmp_path / "whole", learner=LEARNERS[name]())

    for left_at in ((2, 1), (3, 3)):
        out = tmp_path / f"left at {left_at}"

        def leave(row: Any, left_at: tuple[int, int] = left_at) -> None:
            if (row.session, row.round) == left_at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            edgefl.simulate(scenario, out, learner=LEARNERS[name](), on_round=leave, snapshot_rounds=1)
        assert list((out / "snapshots").iterdir())
        edgefl.resume(out, learner=LEARNERS[name]())
        for table in whole.glob("*.csv"):
            assert (out / table.name).read_bytes() == table.read_bytes(), (left_at, table.name)


@pytest.mark.parametrize(("function", "number"), [("trained", 2), ("trained", 20), ("loss", 3)])
def test_an_interruption_inside_an_app_changes_no_number(
    function: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "left.yaml").write_text(SCENARIO)
    scenario = edgefl.load_scenario(tmp_path / "left.yaml", ["sessions.count=2"])
    whole = edgefl.simulate(scenario, tmp_path / "whole", learner=LEARNERS["momentum"]())
    own, calls = getattr(apps, function), itertools.count(1)

    def interrupted(*given: Any) -> Any:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGINT)
        return own(*given)

    monkeypatch.setattr(apps, function, interrupted)
    with pytest.raises(KeyboardInterrupt):
        edgefl.simulate(scenario, tmp_path / "left", learner=LEARNERS["momentum"]())
    edgefl.resume(tmp_path / "left", learner=LEARNERS["momentum"]())
    for table in whole.glob("*.csv"):
        assert (tmp_path / "left" / table.name).read_bytes() == table.read_bytes(), table.name


def test_it_goes_on_by_the_contract_of_learners() -> None:
    check_learner(
        flower.learner(drawing_app(), lambda told: warm(new.FedYogi(**apps.ONE)), initial=apps.INITIAL)
    )


class Best(new.FedAvg):  # type: ignore[misc]
    """A strategy with state that cannot be serialised."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.net = torch.nn.Linear(2, 1)


class Saying(Best):
    """A strategy that declares its state."""

    def state_dict(self) -> dict[str, Any]:
        return {"net": dict(self.net.state_dict())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.net.load_state_dict(state["net"])


def test_a_strategy_with_more_than_data_begins_anew_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "left.yaml").write_text(SCENARIO)
    scenario = edgefl.load_scenario(tmp_path / "left.yaml", ["sessions.count=1"])
    learner = flower.learner(apps.app(), Best(**apps.ONE), initial=apps.INITIAL)
    with pytest.warns(
        UserWarning,
        match=r"an interrupted run will restart: Best.net is a torch.nn.* give the strategy state_dict",
    ):
        run = edgefl.simulate(scenario, tmp_path / "run", learner=learner)
    assert '"resumable": false' in (run / "run.json").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_learner(flower.learner(apps.app(), lambda told: warm(Saying(**apps.ONE)), initial=apps.INITIAL))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "x", b"\x00\xff"], 3: (4, {5})},
        {"nan": float("inf"), "numbers": (np.float32(0.1), np.int64(7))},
        {"arrays": [np.arange(6.0).reshape(2, 3)[:, ::2], np.zeros((0, 2), np.int8), np.array(3, ">f4")]},
        {"tensor": torch.arange(3, dtype=torch.float16)},
        {"records": RecordDict({"a": ArrayRecord([np.ones(2, np.float32)]), "m": MetricRecord({"n": 3})})},
        {"parameters": ndarrays_to_parameters([np.ones(2)])},
    ],
    ids=lambda value: next(iter(value)),
)
def test_data_come_back_as_they_were(value: Any) -> None:
    arrays: dict[str, np.ndarray] = {}
    back = unpack(pack(value, arrays), arrays)
    assert repr(back) == repr(value)
    assert str(jsoned := pack(back, {})) == str(pack(value, {}))
    assert all(array.dtype == np.uint8 for array in arrays.values()), jsoned


@pytest.mark.parametrize("value", [object(), np.array([object()]), {"deep": [torch.nn.Linear(1, 1)]}])
def test_what_is_no_data_is_not_kept(value: Any) -> None:
    with pytest.raises(Unkept):
        pack(value, {})


def test_a_strategys_own_functions_stay(tmp_path: Path) -> None:
    def evaluate(number: int, arrays: Any, config: Any) -> None:
        return None

    assert "evaluate_fn" not in state_of(old.FedAvg(evaluate_fn=evaluate))
    clipped = new.DifferentialPrivacyServerSideFixedClipping(new.FedAvg(), 0.1, 5.0, 8)
    assert state_of(clipped)["strategy"]["min_train_nodes"] == 2
    with refused_at("", "Best.net"):
        state_of(Best())
