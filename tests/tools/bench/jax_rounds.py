"""Implement rivals in a few lines of JAX: a jitted round of FedAvg over devices with equally many samples.

JAX is not a dependency of edgefl; benchmarks include these rivals if it is installed (`pip install jax`).
"""

import importlib
import importlib.util
import itertools
import math
import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.datasets import Split
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.mlp2 import Mlp2
from tests.tools.bench.training import CLASSES, LR, MEAN, MOMENTUM, STD, TrainingTask

# limits JAX to one thread, if set before it is imported
ONE_THREAD = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "JAX_PLATFORMS": "cpu"}


def rivals(task: TrainingTask, data: Split) -> dict[str, "JaxRound"]:
    """Return rivals by name, one per way of training the devices; none without JAX or for other models."""
    if importlib.util.find_spec("jax") is None or not isinstance(task.model, Logistic | Mlp2):
        return {}
    os.environ.update(ONE_THREAD)
    return {f"JAX {way}": JaxRound(task, data, way) for way in ("scan", "vmap")}


class JaxRound:
    """A round of softmax regression or of a network with one hidden layer, by SGD with momentum, in float32.

    Args:
        way: `scan` trains one device after the other inside one program, `vmap` trains all at once.
    """

    def __init__(self, task: TrainingTask, data: Split, way: str) -> None:
        self._task, self._rng = task, np.random.default_rng(0)
        self._numpy: Any = importlib.import_module("jax.numpy")
        self._round = self._compiled(data, way)
        rng, inputs = np.random.default_rng(1), math.prod(task.shape)
        sizes = [inputs, task.model.hidden, CLASSES] if isinstance(task.model, Mlp2) else [inputs, CLASSES]
        self._model: list[Any] = []
        for many, outputs in itertools.pairwise(sizes):
            bound = 1 / math.sqrt(many)  # PyTorch's initial values of a linear layer
            self._model += [rng.uniform(-bound, bound, (outputs, many)), rng.uniform(-bound, bound, outputs)]
        self._model = [self._numpy.asarray(part, "float32") for part in self._model]

    @property
    def model(self) -> Tensor:
        """The model [M] after the rounds so far."""
        return torch.cat([torch.from_numpy(np.array(part)).flatten() for part in self._model])

    def __call__(self) -> float:
        task = self._task
        steps = (task.steps, task.batch)
        batches = [
            np.resize(self._rng.permutation(task.samples), math.prod(steps)).reshape(steps)
            for _ in range(task.devices)
        ]
        self._model = self._round(self._model, self._numpy.asarray(np.stack(batches)))
        self._model[0].block_until_ready()
        return 1.0

    def _compiled(self, data: Split, way: str) -> Any:
        """Return the function that maps the model's parts and batches [devices, steps, B] to the next model."""
        task, numpy = self._task, self._numpy
        jax: Any = importlib.import_module("jax")
        apart = task.devices, task.samples
        x = (numpy.asarray(data.x.reshape(*apart, -1)).astype("float32") - MEAN) / STD
        y = jax.nn.one_hot(data.y.reshape(apart), CLASSES)

        def loss(model: list[Any], x: Any, y: Any) -> Any:
            for weights, bias in zip(model[:-2:2], model[1:-2:2], strict=True):
                x = jax.nn.relu(x @ weights.T + bias)
            logits = x @ model[-2].T + model[-1]
            return -(jax.nn.log_softmax(logits) * y).sum() / task.batch

        def trained(model: list[Any], x: Any, y: Any, batches: Any) -> list[Any]:
            def step(now: Any, batch: Any) -> Any:
                model, moving = now
                slopes = jax.grad(loss)(model, x[batch], y[batch])
                moving = [MOMENTUM * old + new for old, new in zip(moving, slopes, strict=True)]
                return ([part - LR * by for part, by in zip(model, moving, strict=True)], moving), None

            still = [numpy.zeros_like(part) for part in model]
            return list(jax.lax.scan(step, (model, still), batches)[0][0])

        def each_after_another(model: list[Any], batches: Any) -> list[Any]:
            def add(sums: Any, device: Any) -> Any:
                return [one + own for one, own in zip(sums, trained(model, *device), strict=True)], None

            sums, _ = jax.lax.scan(add, [numpy.zeros_like(part) for part in model], (x, y, batches))
            return [one / task.devices for one in sums]

        def all_at_once(model: list[Any], batches: Any) -> list[Any]:
            models = jax.vmap(trained, (None, 0, 0, 0))(model, x, y, batches)
            return [part.mean(0) for part in models]

        return jax.jit(each_after_another if way == "scan" else all_at_once)
