"""Test that Numba trains PyTorch's models up to rounding, with equal bytes for any threads and after a resume."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from edgefl import load_scenario, simulate
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.kernels import numba_name
from edgefl.learning.local.local_task import LocalTask
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.mlp import Mlp
from edgefl.learning.models.mlp2 import Mlp2
from tests.refusals import refused_at
from tests.tables import sections
from tests.tools.leaving import goes_on

CLOSE = 1e-6  # error of parameters of order 0.1 to 1 after a round
SAMPLES, CHANNELS, SIDE, CLASSES = 300, 3, 5, 7
# samples per device, with batches of odd sizes, and more devices than a chunk
HELD = [1, 4, 15, 16, 60, 33, 0, 21, 60, 60, 10, 20]
STEPS, BATCH, ROUNDS = 6, 23, 3
MODELS = [Logistic(), Mlp2(hidden=19), Mlp(hidden=(33, 6, 18))]
BASE: dict[str, Any] = sections("""
    name=numba; devices={count: 12}; radio={preset: journal}; sessions={name: schedule, count: 2, rounds: 4}
    learning.dataset=digits; learning.partition=iid; learning.model={name: mlp2, hidden: 20}
    learning.local={batch: 16, weight_decay: 0.001}; learning.kernels=numba
""")

rng = np.random.default_rng(0)
X = rng.integers(0, 256, (SAMPLES, CHANNELS, SIDE, SIDE), dtype=np.uint8)
Y = rng.integers(0, CLASSES, SAMPLES)
MEAN, STD = (np.array(of)[:, None, None] for of in ([90.0, 110.0, 130.0], [50.0, 60.0, 70.0]))


def trained(model: Model, x: np.ndarray = X, **options: Any) -> Tensor:
    """Return the local models after some rounds; from round 2 on, each device starts from its own local model."""
    split = SplitInMemory(Split(x, Y), MEAN, STD, torch.device("cpu"))
    torch.manual_seed(0)
    module = model.build((CHANNELS, SIDE, SIDE), CLASSES)
    training = LocalTraining(model, module, split, UpdateRule(0.9, weight_decay=0.01), **options)
    own = [rng.choice(SAMPLES, count, replace=False) for rng, count in zip(generators(0), HELD, strict=True)]
    start = training.layout.flatten(module)
    for number in range(ROUNDS):
        batches = draw_batches(own, [STEPS] * len(HELD), BATCH, generators(number))
        start = training.run(LocalTask(start, batches, 0.02, FedAvg())).rows.clone()
    return start


def generators(number: int) -> list[np.random.Generator]:
    return [np.random.default_rng([number, k]) for k in range(len(HELD))]


@pytest.mark.parametrize("model", MODELS)
def test_models_are_those_of_pytorch(model: Model) -> None:
    pytest.importorskip("numba")
    expected = trained(model)
    assert (trained(model, compiled=True) - expected).abs().max() < CLOSE
    assert (expected[0] - expected[1]).abs().max() > 1000 * CLOSE, "devices learn different models"


@pytest.mark.parametrize("model", MODELS)
def test_neither_threads_nor_the_type_of_inputs_reach_a_bit(model: Model) -> None:
    pytest.importorskip("numba")
    one = trained(model, compiled=True)
    assert torch.equal(one, trained(model, compiled=True, threads=3))
    assert torch.equal(one, trained(model, X.astype(np.float32), compiled=True))


@pytest.mark.parametrize("model", MODELS)
def test_a_model_that_diverges_is_not_finite(model: Model) -> None:
    pytest.importorskip("numba")
    wild = X.astype(np.float32)
    wild[:] = 3e38
    assert not trained(model, wild, compiled=True)[1].isfinite().all()


def test_a_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    goes_on(load_scenario(BASE), tmp_path, 5, 2, None)
    found = json.loads((tmp_path / "left" / "run.json").read_text())
    assert found["kernels"] == numba_name()


def test_laps_of_a_drift_read_the_same_inputs(tmp_path: Path) -> None:
    """Both concepts share the stored inputs, and their labels are stored one after the other."""
    pytest.importorskip("numba")
    drift = ["learning.drift={name: label_swap, at: 3}"]
    losses = []
    for kernels in ("torch", "numba"):
        scenario = load_scenario(BASE, [*drift, f"learning.kernels={kernels}"])
        run = simulate(scenario, tmp_path / kernels, device="cpu")
        losses.append(run.rounds["loss"].to_numpy())
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


def test_without_numba_a_run_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with refused_at("learning.kernels", "numba", "pip install 'edgefl-cosim[kernels]'", "torch"):
        simulate(load_scenario(BASE), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


class Tanh(Mlp2):
    """A user's model that derives from a shipped model but has a different activation function."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> torch.nn.Module:
        module = super().build(input_shape, classes)
        module.features[2] = torch.nn.Tanh()
        return module


def test_an_own_module_is_not_trained_as_a_shipped_one() -> None:
    with refused_at("learning.model", "kernels"):
        load_scenario(BASE, [f"learning.model={__name__}:Tanh"])
