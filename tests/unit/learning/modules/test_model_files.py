"""A model's file is its module's whole state, and nothing else fits."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from edgefl.errors import EdgeflError
from edgefl.learning.modules import model_files
from edgefl.learning.modules.parameters import ModelLayout

INPUTS = model_files.Inputs((4,), 0.5, 2.0, ("a", "b"))


class Tied(nn.Module):
    """A frozen layer, batch norm with its counter, and a weight with two names."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(4, 3).requires_grad_(False)
        self.norm = nn.BatchNorm1d(3)
        self.one = nn.Linear(3, 3, bias=False)
        self.other = nn.Linear(3, 3)
        self.other.weight = self.one.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.other(self.one(self.norm(self.frozen(x))))
        return made


def test_a_file_is_a_state_dict(tmp_path: Path) -> None:
    module, again = Tied(), Tied()
    layout = ModelLayout.of(module)
    assert layout.parameters.size == 3 + 3 + 9 + 3, "what is frozen, or named twice, is not trained twice"
    vector = torch.arange(float(layout.size))
    state = model_files.whole_state(module, layout, vector)
    for name in ("one.safetensors", "two.safetensors"):
        model_files.write(tmp_path / name, state, {"cell": 0, "round": 3}, INPUTS)
    assert (tmp_path / "one.safetensors").read_bytes() == (tmp_path / "two.safetensors").read_bytes()
    again.load_state_dict(model_files.read(tmp_path / "one.safetensors"))
    assert torch.equal(layout.flatten(again), vector)
    assert torch.equal(again.other.weight, again.one.weight)
    assert torch.equal(again.frozen.weight, module.frozen.weight)
    about = model_files.read_about(tmp_path / "one.safetensors")
    assert model_files.Inputs.of(about.pop("inputs")) == INPUTS
    assert about == {"cell": 0, "round": 3}


def test_a_part_of_a_file_begins_a_model(tmp_path: Path) -> None:
    body, other = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 7))
    path = tmp_path / "body.safetensors"
    save_file({"0.weight": body.weight.detach(), "1.weight": torch.zeros(2, 3)}, path)
    with pytest.raises(
        EdgeflError, match=r"lacks '0.bias', '1.bias'; has 1.weight \[2, 3\] for \[7, 3\]; .*partial: true"
    ):
        model_files.begin_with(other, path, partial=False)
    last = other[1].weight.clone()
    model_files.begin_with(other, path, partial=True)
    assert torch.equal(other[0].weight, body.weight)
    assert torch.equal(other[1].weight, last)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(EdgeflError, match=r"cannot be read as safetensors .*module.state_dict\(\)"):
        model_files.begin_with(nn.Linear(4, 3), path, partial=True)
    save_file({"else": torch.zeros(1)}, path)
    with pytest.raises(EdgeflError, match="no tensor of it fits the model, whose first ones are 'weight'"):
        model_files.begin_with(nn.Linear(4, 3), path, partial=True)
    save_file({"weight": torch.zeros(2, 4), "bias": torch.zeros(2)}, path)
    with pytest.raises(
        EdgeflError, match=r"'weight' \[3, 4\], .* the file's are .*'weight' \[2, 4\].*: take the model"
    ):
        model_files.begin_with(nn.Linear(4, 3), path, partial=True)
    save_file({"weight": torch.full((3, 4), torch.nan), "bias": torch.zeros(3)}, path)
    with pytest.raises(EdgeflError, match="weight is not finite"):
        model_files.begin_with(nn.Linear(4, 3), path, partial=False)
