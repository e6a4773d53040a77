"""Compare local optimisers with PyTorch's optimisers, one device after the other."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from edgefl.config import registry
from edgefl.learning.algorithms.ditto import Ditto
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.data.batches import Batches, draw_batches
from edgefl.learning.local.local_task import LocalTask
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.optimisers import Optimiser
from tests.tools.constants import with_constants
from tests.unit.learning import digits_cell
from tests.unit.learning.six_devices import BATCH, DEVICES, MEAN, OWN, STD, Plain, X, Y, training

STEPS, LR, RHO = 50, 0.01, 0.8
MOST = [STEPS, 20, 50, 7, 33, 1]  # local steps of each device
EXACT = 1e-6

BESIDE = {
    "sgd": (torch.optim.SGD, {}, {"momentum": RHO}),
    "nesterov": (torch.optim.SGD, {"nesterov": True}, {"momentum": RHO, "nesterov": True}),
    "adam": (torch.optim.Adam, {"beta2": 0.99, "epsilon": 1e-4}, {"betas": (RHO, 0.99), "eps": 1e-4}),
    "adamw": (torch.optim.AdamW, {}, {"betas": (RHO, 0.999)}),
}


def made(name: str, given: dict[str, Any]) -> Optimiser:
    return with_constants(registry.get("optimisers", "sgd" if name == "nesterov" else name), **given)()


CASES = [
    pytest.param(name, decay, clip, id=f"{name}-{decay}-{clip}")
    for name in BESIDE
    for decay, clip in ((0.0, None), (0.1, 0.7))
]


def rule_of(name: str, decay: float = 0.0, clip: float | None = None) -> UpdateRule:
    return UpdateRule(RHO, made(name, BESIDE[name][1]), decay, clip)


def torchs(name: str, parameters: list[Tensor], decay: float) -> torch.optim.Optimizer:
    kind, _, given = BESIDE[name]
    optimizer: torch.optim.Optimizer = kind(parameters, lr=LR, weight_decay=decay, **given)
    return optimizer


@pytest.mark.parametrize(("name", "decay", "clip"), CASES)
def test_stacked_steps_equal_pytorchs_on_each_device(name: str, decay: float, clip: float | None) -> None:
    """Steps agree in float64 for losses (w - c)' A (w - c) / 2 with different A and c on each device."""
    generator = torch.Generator().manual_seed(3)
    curvature, centre = torch.rand(2, 4, 9, generator=generator, dtype=torch.float64) * 3
    begin = torch.randn(4, 9, generator=generator, dtype=torch.float64)
    rule, stacked = rule_of(name, decay, clip), begin.clone()
    state = [torch.zeros_like(begin) for _ in range(rule.optimiser.vectors)]
    for number in range(1, STEPS + 1):
        rule.step(number, LR, stacked, rule.clipped(curvature * (stacked - centre)), state)
    for k in range(4):
        alone = begin[k].clone().requires_grad_()
        optimizer = torchs(name, [alone], decay)
        for _ in range(STEPS):
            alone.grad = curvature[k] * (alone.detach() - centre[k])
            if clip is not None:
                nn.utils.clip_grad_norm_([alone], clip)
            optimizer.step()
        assert (stacked[k] - alone).abs().max() < 1e-12
    assert (stacked - begin).abs().max() > 0.1


def dealt() -> Batches:
    generators = [np.random.default_rng([0, k]) for k in range(DEVICES)]
    return draw_batches(list(OWN), list(MOST), BATCH, generators, 1)


@pytest.mark.parametrize(("name", "decay", "clip"), CASES)
@pytest.mark.parametrize("model", [Logistic(), Plain()], ids=lambda model: type(model).__name__)
def test_local_training_is_pytorchs_loop(name: str, decay: float, clip: float | None, model: Model) -> None:
    """All kernels agree with PyTorch's loop, even if devices take different numbers of steps."""
    ways, batches = ("stacked",) if isinstance(model, Logistic) else ("stacked", "sequential"), dealt()
    found = []
    for way in ways:
        train = training(model, rule_of(name, decay, clip), batching=way)
        start = train.layout.flatten(train._module)
        task = LocalTask(start, batches, LR, FedAvg())
        found.append(train.run(task).rows.clone())
        assert torch.equal(train.run(task).rows, found[-1]), "a state was kept from one round to the next"
    x = (torch.from_numpy(X).double() - MEAN) / STD
    module = train._module.double()
    for k in range(DEVICES):
        views = {n: v.double().clone().requires_grad_() for n, v in train.layout.views(start).items()}
        optimizer = torchs(name, list(views.values()), decay)
        for step in range(MOST[k]):
            some = batches.rows[k, step, : batches.sizes[k, step]]
            loss = nn.functional.cross_entropy(
                functional_call(module, views, (x[some],)), torch.from_numpy(Y[some])
            )
            optimizer.zero_grad()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(list(views.values()), clip)
            optimizer.step()
        for rows in found:
            for key, mine in train.layout.views(rows[k]).items():
                assert (mine - views[key]).abs().max() < 10 * EXACT


@pytest.mark.parametrize("batching", ["stacked", "sequential"])
@pytest.mark.parametrize("name", BESIDE)
def test_a_kept_state_goes_on_as_pytorchs(name: str, batching: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept state equals a continuing optimizer's state, even for device 1, which misses one of three rounds."""
    given = BESIDE[name][1]
    here = {"name": "sgd" if name == "nesterov" else name, "state": "kept"}
    for key, value in given.items():  # class constants
        monkeypatch.setattr(registry.get("optimisers", here["name"]), key, value)
    plain = {"steps": 4, "lr": LR, "lr_schedule": "constant", "momentum": RHO, "weight_decay": 0.01}
    learner = digits_cell.learner(partition="iid", local={**plain, "optimiser": here, "batching": batching})
    stage = digits_cell.opened(learner, ids=(0, 1, 2), longest=3)
    data, layout = learner.trainer.training_data.train, learner.trainer.layout
    model = learner.model.clone()
    of = [torch.zeros_like(model).requires_grad_() for _ in range(3)]
    optimizers = [torchs(name, [one], 0.01) for one in of]
    for round_ in (1, 2, 3):
        stage.train((0, 1, 2), round_)
        batches = learner.federation.model.waiting_round((0, 1, 2)).batches
        arrived = [0, 2] if round_ == 2 else [0, 1, 2]
        stage.aggregate(arrived)
        for k in arrived:
            with torch.no_grad():
                of[k].copy_(model)
            for rows in torch.from_numpy(batches.rows[k]):
                logits = functional_call(
                    learner.trainer.module, layout.views(of[k]), (data.normalised(rows).clone(),)
                )
                optimizers[k].zero_grad()
                nn.functional.cross_entropy(logits, data.y[rows]).backward()
                optimizers[k].step()
        model = torch.stack([of[k].detach() for k in arrived]).mean(0)
        assert torch.allclose(learner.model, model, atol=EXACT)


@pytest.mark.parametrize("name", BESIDE)
def test_personal_models_step_by_the_same_rule(name: str) -> None:
    """Without its proximal term, Ditto trains the personal model to the same values as the local model."""
    train = training(Plain(), rule_of(name, 0.1, 0.7))
    start = train.layout.flatten(train._module)
    task = LocalTask(
        start, dealt(), LR, Ditto(mu=0), personal=lambda positions: start.expand(len(positions), -1)
    )
    models = train.run(task)
    assert torch.equal(models.rows, models.personal)
    assert not torch.equal(models.rows[0], start)


def test_a_longer_state_leaves_room_for_fewer_devices() -> None:
    few, many = (
        training(Plain(), rule_of(name), memory_bytes=10**6).chunk(BATCH) for name in ("adam", "sgd")
    )
    assert 0 < few < many
