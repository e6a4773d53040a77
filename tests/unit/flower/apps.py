"""Make small Flower apps for tests: linear regression in NumPy, as a message-based ClientApp or a NumPyClient."""

import logging
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp

logging.getLogger("flwr").setLevel(logging.ERROR)
TRUTH = np.array([1.0, -2.0, 3.0])
INITIAL = [np.zeros(3, np.float32)]
EXAMPLES, LR, STEPS = 32, 0.1, 3
# options of strategies that start with a single device
ONE: dict[str, Any] = {"min_train_nodes": 1, "min_evaluate_nodes": 1, "min_available_nodes": 1}
ONE_OLD: dict[str, Any] = {"min_fit_clients": 1, "min_evaluate_clients": 1, "min_available_clients": 1}


def data(device: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(device)
    x = rng.normal(size=(EXAMPLES + device, 3))
    return x, x @ TRUTH + 0.1 * rng.normal(size=len(x))


def trained(w: np.ndarray, device: int) -> np.ndarray:
    x, y = data(device)
    for _ in range(STEPS):
        w = w - LR * x.T @ (x @ w - y) / len(x)
    return w.astype(np.float32)


def loss(w: np.ndarray, device: int) -> float:
    x, y = data(device)
    return float(np.mean((x @ w - y) ** 2))


def app() -> ClientApp:
    """Return a message-based ClientApp."""
    made = ClientApp()

    @made.train()
    def train(message: Message, context: Context) -> Message:
        device = int(context.node_config["partition-id"])
        (w,) = message.content["arrays"].to_numpy_ndarrays()
        content = RecordDict(
            {
                "arrays": ArrayRecord([trained(w, device)]),
                "metrics": MetricRecord({"num-examples": EXAMPLES + device, "seen": loss(w, device)}),
            }
        )
        return Message(content, reply_to=message)

    @made.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        device = int(context.node_config["partition-id"])
        (w,) = message.content["arrays"].to_numpy_ndarrays()
        metrics = MetricRecord(
            {"num-examples": EXAMPLES + device, "eval_loss": loss(w, device), "eval_acc": 0.5}
        )
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return made


class Client(NumPyClient):  # type: ignore[misc]
    def __init__(self, device: int) -> None:
        self.device = device

    def get_parameters(self, config: dict[str, Any]) -> list[np.ndarray]:
        return INITIAL

    def fit(
        self, parameters: list[np.ndarray], config: dict[str, Any]
    ) -> tuple[list[np.ndarray], int, dict[str, Any]]:
        return [trained(parameters[0], self.device)], EXAMPLES + self.device, {}

    def evaluate(
        self, parameters: list[np.ndarray], config: dict[str, Any]
    ) -> tuple[float, int, dict[str, Any]]:
        return loss(parameters[0], self.device), EXAMPLES + self.device, {"accuracy": 0.25}


def old_app() -> ClientApp:
    """Return a ClientApp that wraps a NumPyClient."""

    def client_fn(context: Context) -> Any:
        return Client(int(context.node_config["partition-id"])).to_client()

    return ClientApp(client_fn)
