"""Test the FLOPs of a model, which PyTorch counts without importing its compiler."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from edgefl.learning.local.cost import flops_per_sample
from edgefl.learning.objective import CLASSIFICATION
from tests.tools.forked import loaded_after


class Attentive(nn.Module):
    """A model with attention and a recurrent layer, whose operations PyTorch counts in parts."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.memory = nn.LSTM(8, 8, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.memory(self.encoder(x))[0].mean(1))


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), (1, 8, 8)),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3)), (1, 8, 8)),
        (Attentive(), (5, 8)),
    ],
    ids=["logistic", "convolution", "attention"],
)
def test_they_are_those_of_pytorchs_counter(module: nn.Module, shape: tuple[int, ...]) -> None:
    own = flops_per_sample(module, shape)
    module.eval()
    with FlopCounterMode(display=False) as counter, torch.backends.mkldnn.flags(enabled=False):
        CLASSIFICATION.loss(
            module(torch.zeros(1, *shape)), torch.zeros(1, dtype=torch.long), "mean"
        ).backward()
    assert own == counter.get_total_flops() > 0


def test_they_are_counted_where_the_model_is() -> None:
    """The sample must be on the model's device, as models on `meta`, without memory, refuse other tensors."""
    assert flops_per_sample(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).to("meta"), (4,)) == 32


def test_no_compiler_is_imported_for_them() -> None:
    """Counting must not import the compiler, which would take 1.3 s in every process of a study."""
    code = (
        "from torch import nn; from edgefl.learning.local.cost import flops_per_sample;"
        "assert flops_per_sample(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), (4,)) == 32"
    )
    assert loaded_after(code, {"torch._dynamo"}) == set()
