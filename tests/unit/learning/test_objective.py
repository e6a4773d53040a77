"""Smoothed labels and weights of classes: devices stacked, one by one, and PyTorch's own optimiser agree."""

from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from edgefl import EdgeflError, load_scenario
from edgefl.contract import SessionStart
from edgefl.learning.objective import Objective
from edgefl.run.plan import prepare

CLOSE = 1e-6
LR, RHO, STEPS, DEVICES = 0.1, 0.9, 50, 4
WEIGHTS = [0.5, 1.0, 2.0, 0.0, 1.0, 3.0, 1.0, 1.0, 0.2, 1.0]
BASE: dict[str, Any] = {
    "name": "objective",
    "devices": {"count": DEVICES},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "learning": {
        "dataset": "digits",
        "partition": "iid",
        "model": "logistic",
        "batch": 16,
        "lr": LR,
        "steps": STEPS,
        "momentum": RHO,
    },
}
CHANGES: list[dict[str, Any]] = [
    {"learning__label_smoothing": 0.1},
    {"learning__class_weights": WEIGHTS},
    {"learning__label_smoothing": 0.2, "learning__class_weights": WEIGHTS, "learning__model": "mlp2"},
]


@pytest.mark.parametrize("changes", CHANGES, ids=["smoothed", "weighted", "both"])
def test_stacked_is_one_by_one_is_pytorch(changes: dict[str, Any]) -> None:
    found = []
    for batching in ("stacked", "sequential"):
        scenario = load_scenario(BASE).with_(learning__batching=batching, **changes)
        learner = prepare(scenario, device="cpu").learners[0]
        stage = next(iter(learner.session(SessionStart(1, tuple(range(DEVICES)), 1))))
        stage.train(range(DEVICES), 1)
        found.append(learner.federation.model.waiting_round(range(DEVICES)))
    stacked, sequential = found
    assert torch.allclose(stacked.rows, sequential.rows, atol=CLOSE)
    weight = torch.tensor(WEIGHTS) if "learning__class_weights" in changes else None
    smoothing = changes.get("learning__label_smoothing", 0.0)
    data, layout, module = learner.trainer.training_data.train, learner.trainer.layout, learner.trainer.module
    for k in range(DEVICES):
        module.load_state_dict(layout.views(stacked.start.clone()))
        optimiser = torch.optim.SGD(module.parameters(), lr=LR, momentum=RHO)
        for step in range(STEPS):
            size = stacked.batches.sizes[k, step]
            rows = torch.from_numpy(stacked.batches.rows[k, step, :size])
            logits = module(data.normalised(rows).clone())
            optimiser.zero_grad()
            cross_entropy(
                logits, data.y[rows], weight=weight, label_smoothing=smoothing, reduction="none"
            ).mean().backward()
            optimiser.step()
        assert torch.allclose(layout.flatten(module), stacked.rows[k], atol=CLOSE)


def test_smoothing_mixes_the_label_with_the_mean_over_classes() -> None:
    """(1 - e) of the label's loss and e of the mean over all classes' losses, by hand."""
    logits, y, e = torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]), 0.3
    surprise = -logits.log_softmax(1)[0]
    wanted = (1 - e) * surprise[0] + e * surprise.mean()
    assert float(Objective(e).losses(logits, y)) == pytest.approx(float(wanted), abs=CLOSE)
    assert Objective().plain


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(EdgeflError, match=r"class_weights: has 3 weights, and the data set 10 classes"):
        prepare(load_scenario(BASE).with_(learning__class_weights=[1.0, 2.0, 1.0]), device="cpu")
