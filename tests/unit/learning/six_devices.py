"""Set up six devices with small images, their training, and a model whose gradients autograd computes."""

from typing import Any

import numpy as np
import torch
from torch import nn

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model

SIDE, CLASSES, SAMPLES, DEVICES = 6, 3, 120, 6
LR, RHO, BATCH = 0.05, 0.9, 8
MEAN, STD = 100.0, 50.0

rng = np.random.default_rng(0)
X = rng.integers(0, 256, (SAMPLES, 2, SIDE, SIDE), dtype=np.uint8)
Y = rng.integers(0, CLASSES, SAMPLES)
OWN = [np.arange(k, SAMPLES, DEVICES)[: 4 + 3 * k] for k in range(DEVICES)]
# one algorithm of each kind: plain, with loss terms, with devices' states, and with devices' models
EACH_KIND = ("fedavg", "moon", "scaffold", "ditto")
HELD = {k: len(own) for k, own in enumerate(OWN)}


class Plain(Model):
    """A model with a representation, whose gradients are left to autograd."""

    typical_input = (2, SIDE, SIDE)
    typical_classes = CLASSES

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        module = nn.Sequential()
        module.add_module("features", nn.Sequential(nn.Flatten(), nn.Linear(2 * SIDE * SIDE, 7), nn.Tanh()))
        module.add_module("head", nn.Linear(7, classes))
        return module


def training(
    model: Model, rule: UpdateRule | None = None, x: np.ndarray = X, **options: Any
) -> LocalTraining:
    """Make the local training of a model on these devices' data; initial parameters are always the same."""
    torch.manual_seed(1)
    module = model.build((2, SIDE, SIDE), CLASSES)
    data = SplitInMemory(Split(x, Y), np.float32(MEAN), np.float32(STD), torch.device("cpu"))
    return LocalTraining(model, module, data, rule or UpdateRule(RHO), **options)
