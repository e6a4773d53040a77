"""Test that an error names the device whose ClientApp fails or replies wrongly, and that no bad value spreads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs pip install 'edgefl-cosim[flower]'")

import flwr.server.strategy as old
import flwr.serverapp.strategy as new
from flwr.app import Array, ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import edgefl
from edgefl import flower
from tests.refusals import refused_at
from tests.tables import sections
from tests.unit.flower import apps

SCENARIO: dict[str, Any] = sections("""
    name=flower; seed=5; devices={count: 3}; radio={preset: journal}
    sessions={name: schedule, count: 1, rounds: 2}; workload={payload_bits: 1000, flops_per_sample: 1000}
""")
HOSTILE = 1  # device
GOOD = np.zeros(3, np.float32)
Answer = Callable[[Message], Any]


def content(*arrays: np.ndarray, examples: Any = 32) -> RecordDict:
    return RecordDict(
        {"arrays": ArrayRecord(list(arrays)), "metrics": MetricRecord({"num-examples": examples})}
    )


def sends(*arrays: np.ndarray, examples: Any = 32) -> Answer:
    return lambda message: Message(content(*arrays, examples=examples), reply_to=message)


def raises(error: BaseException) -> Answer:
    def answer(message: Message) -> Message:
        raise error

    return answer


def bytes_of(data: bytes) -> Answer:
    array = Array(dtype="float32", shape=(3,), stype="numpy.ndarray", data=data)
    record = RecordDict({"a": ArrayRecord({"0": array}), "m": MetricRecord({"num-examples": 32})})
    return lambda message: Message(record, reply_to=message)


def run(tmp_path: Path, answer: Answer, initial: Any = (GOOD,)) -> Any:
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Any:
        return answer(message) if context.node_config["partition-id"] == HOSTILE else sends(GOOD + 1)(message)

    learner = flower.learner(
        app, new.FedAvg(**apps.ONE), initial=initial, evaluate=lambda _, arrays: MetricRecord(
            {"loss": float(arrays.to_numpy_ndarrays()[0].sum())}
        )
    )  # fmt: skip
    return edgefl.simulate(edgefl.load_scenario(SCENARIO), tmp_path / "run", learner=learner)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (sends(np.zeros(1, np.float32)), "reply of device 1 has arrays of shapes [(1,)]"),
        (sends(np.zeros((), np.float32)), "shapes"),
        (sends(np.zeros((3, 1), np.float32)), "shapes"),
        (sends(np.zeros(2, np.float32)), "shapes"),
        (sends(np.zeros(10**6, np.float32)), "shapes"),
        (sends(), "shapes"),
        (sends(GOOD, GOOD), "shapes"),
        (sends(GOOD.astype(complex)), "complex128: give real numbers"),
        (sends(np.array(["a"] * 3)), "<U1: give real numbers"),
        (bytes_of(b"junk"), "cannot be read"),
        (bytes_of(b"\x80\x04."), "cannot be read"),
        (sends(GOOD, examples=0), None),
        (sends(GOOD, examples=-5), "device 1 reports -5 samples"),
        (sends(GOOD, examples=10**18), "samples"),
        (sends(GOOD, examples=1.5), "samples"),
        (sends(GOOD, examples=float("nan")), "samples"),
        (sends(GOOD, examples=float("inf")), "samples"),
        (sends(GOOD, examples=[1, 2]), "samples"),
        (raises(ValueError("boom")), "device 1, train 1, raised ValueError: boom"),
        (raises(SystemExit(0)), "raised SystemExit"),
        (raises(MemoryError()), "raised MemoryError"),
        (lambda message: None, "returned NoneType: return one"),
        (lambda message: [message] * 2, "returned list: return one"),
        (lambda message: Message(Error(1, "bad"), reply_to=message), "an error (bad)"),
        (lambda message: Message(RecordDict({}), reply_to=message), "no 'num-examples'"),
    ],
)
def test_an_answer_that_is_none_is_one_error(answer: Answer, why: str | None, tmp_path: Path) -> None:
    """An invalid reply causes one error, even if its shape broadcasts, and no traceback of Flower is shown."""
    if why is None:
        run(tmp_path, answer)
        return
    with refused_at("", why):
        run(tmp_path, answer)


@pytest.mark.parametrize("spoilt", [np.nan, np.inf, -np.inf])
def test_an_update_that_is_not_finite_stays_out_of_the_model(spoilt: float, tmp_path: Path) -> None:
    results = run(tmp_path, sends(np.array([1.0, spoilt, 1.0], np.float32)))
    assert results.rounds["loss"].tolist() == pytest.approx([3.0, 3.0])  # all other devices send 1
    outcomes = results.devices.groupby("device")["outcome"].unique()
    assert outcomes[HOSTILE].tolist() == ["unusable_uplink"]


@pytest.mark.parametrize("initial", [[np.full(3, np.nan)], [np.array(["a"])], [np.array([None])], 3, "abc"])
def test_a_first_model_that_is_none_is_refused(initial: Any, tmp_path: Path) -> None:
    with refused_at("", "initial"):
        run(tmp_path, sends(GOOD), initial)


def test_older_clients_are_looked_at_alike(tmp_path: Path) -> None:
    class Hostile(apps.Client):
        def fit(self, parameters: Any, config: Any) -> Any:
            return [np.zeros(1, np.float32)], 32, {}

    app = ClientApp(lambda context: Hostile(int(context.node_config["partition-id"])).to_client())
    learner = flower.learner(app, old.FedAvg(**apps.ONE_OLD))
    with refused_at("", "device 0", "[(1,)]"):
        edgefl.simulate(edgefl.load_scenario(SCENARIO), tmp_path / "run", learner=learner)


@pytest.mark.parametrize("examples", [-5, 1.5, float("nan"), 10**15])
def test_a_test_of_no_number_of_samples_is_refused(examples: Any, tmp_path: Path) -> None:
    """A negative weight is refused, as it could raise the mean accuracy above each device's accuracy."""
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Any:
        return sends(GOOD)(message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Any:
        hostile = context.node_config["partition-id"] == HOSTILE
        told = MetricRecord({"accuracy": 0.5, "num-examples": examples if hostile else 32})
        return Message(RecordDict({"metrics": told}), reply_to=message)

    learner = flower.learner(app, new.FedAvg(**apps.ONE), initial=(GOOD,))
    with refused_at("", "device 1"):
        edgefl.simulate(edgefl.load_scenario(SCENARIO), tmp_path / "run", learner=learner)
