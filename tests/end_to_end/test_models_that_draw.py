"""Test that runs of models that draw random numbers in training depend on the file and the seed only."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from edgefl import load_scenario, simulate
from edgefl.run.api import resume
from tests.tools import kill
from tests.tools.leaving import leave


class Net(nn.Module):
    """A network that draws random numbers in training as `draws` says."""

    def __init__(self, num_classes: int, draws: str) -> None:
        super().__init__()
        self.draws, self.body, self.head = draws, nn.Linear(64, 16), nn.Linear(16, num_classes)
        self.drop = nn.Dropout2d(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x.flatten(1))
        if self.draws == "Dropout2d":
            x = self.drop(x[..., None, None]).flatten(1)
        if self.draws == "F.dropout":
            x = functional.dropout(x, 0.5, self.training)
        if self.draws == "torch.randn" and self.training:
            x = x + torch.randn(x.shape)
        logits: Tensor = self.head(x)
        return logits


HERE = "tests.end_to_end.test_models_that_draw"
MODEL = f"learning.model={{name: factory, function: '{HERE}:Net', arguments: {{draws: %s}}}}"


@pytest.mark.parametrize(
    ("draws", "algorithm"),
    [("Dropout2d", "fedavg"), ("F.dropout", "fedavg"), ("torch.randn", "fedavg"), ("torch.randn", "ditto")],
)
def test_a_run_repeats_and_goes_on(
    draws: str, algorithm: str, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither threads, nor PyTorch's global seed, nor an interruption changes a byte; another seed does."""
    monkeypatch.setenv("EDGEFL_ALLOW_CODE", "1")
    settings = [MODEL % draws, f"learning.algorithm={algorithm}", "sessions.count=2"]
    scenario = load_scenario(digits, settings)
    whole = simulate(scenario, tmp_path / "whole", device="cpu", threads=1)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    again = simulate(scenario, tmp_path / "again", device="cpu", threads=2)
    assert torch.equal(torch.get_rng_state(), before), "a program's own random numbers stay its own"
    assert kill.differences(again, whole) == []
    leave(scenario, tmp_path / "left", 4, every=3)
    resume(tmp_path / "left")
    assert kill.differences(tmp_path / "left", whole) == []
    plain = simulate(
        load_scenario(digits, [MODEL % "nothing", *settings[1:]]), tmp_path / "plain", device="cpu"
    )
    assert not plain.rounds.loss.equals(whole.rounds.loss)
