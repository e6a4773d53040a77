"""A Flower ClientApp in NumPy, in which each device fits a line to its own measurements."""

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()
first_model = [np.zeros(2, np.float32)]  # slope and offset


def measured(context: Context) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs [50, 2] and noisy outputs [50] of y = 3 x + 1, different on each device."""
    rng = np.random.default_rng(int(context.node_config["seed"]))  # derived from the run's seed
    x = rng.uniform(-1, 1, 50)
    return np.stack([x, np.ones(50)], axis=1), 3 * x + 1 + 0.1 * rng.normal(size=50)


@app.train()
def train(message: Message, context: Context) -> Message:
    (w,), (x, y) = message.content["arrays"].to_numpy_ndarrays(), measured(context)
    for _ in range(5):
        w = (w - 0.1 * x.T @ (x @ w - y) / len(y)).astype(np.float32)
    content = RecordDict({"arrays": ArrayRecord([w]), "metrics": MetricRecord({"num-examples": len(y)})})
    return Message(content, reply_to=message)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    (w,), (x, y) = message.content["arrays"].to_numpy_ndarrays(), measured(context)
    metrics = MetricRecord({"num-examples": len(y), "eval_loss": float(np.mean((x @ w - y) ** 2))})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
