"""Test that a model's file holds its module's whole state, and that any other content is an error."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from edgefl.learning.modules import model_files
from edgefl.learning.modules.parameters import ModelLayout
from tests.refusals import refused_at

INPUTS = model_files.Inputs((4,), 0.5, 2.0, ("a", "b"))
HUGE = torch.full((3, 4), 1e300, dtype=torch.float64)  # infinite as float32


class Tied(nn.Module):
    """A module with a frozen layer, batch norm with its counter, and a weight with two names."""

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
    assert layout.parameters.size == 3 + 3 + 9 + 3, "frozen weights do not count, shared ones once"
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
    assert model_files.Inputs.of(tmp_path / "one.safetensors", about) == INPUTS
    assert {name: about[name] for name in about if name != "inputs"} == {"cell": 0, "round": 3}


def test_a_part_of_a_file_begins_a_model(tmp_path: Path) -> None:
    body, other = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 7))
    path = tmp_path / "body.safetensors"
    save_file({"0.weight": body.weight.detach(), "1.weight": torch.zeros(2, 3)}, path)
    with refused_at("learning.initial.path", "'0.bias' [3]", "'1.weight' [2, 3]", "partial: true"):
        model_files.begin_with(other, path, partial=False)
    last = other[1].weight.clone()
    model_files.begin_with(other, path, partial=True)
    assert torch.equal(other[0].weight, body.weight)
    assert torch.equal(other[1].weight, last)


@pytest.mark.parametrize(
    ("content", "partial", "nouns"),
    [
        (b"PK\x03\x04", True, ("cannot be read as safetensors", "module.state_dict()")),
        ({"else": torch.zeros(1)}, True, ("none of its tensors", "'weight'")),
        ({"weight": torch.zeros(2, 4), "bias": torch.zeros(2)}, True, ("'weight' [3, 4]", "'weight' [2, 4]")),
        ({"weight": torch.full((3, 4), torch.nan), "bias": torch.zeros(3)}, False, ("weight is not finite",)),
        ({"weight": HUGE, "bias": torch.zeros(3)}, False, ("not finite",)),
    ],
)
def test_invalid_files(
    content: bytes | dict[str, torch.Tensor], partial: bool, nouns: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content) if isinstance(content, bytes) else save_file(content, path)
    with refused_at("learning.initial.path", *nouns):
        model_files.begin_with(nn.Linear(4, 3), path, partial=partial)


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ({"weight": torch.ones(3, 4, dtype=torch.int8)}, "'weight' [3, 4] of int8"),
        ({"weight": torch.ones(3, 4, dtype=torch.complex64)}, "'weight' [3, 4] of complex64"),
        ({"weight": torch.ones(1)}, "'weight' [1]"),
        ({}, "none of its tensors"),
    ],
)
def test_other_types_are_refused(tensors: dict[str, torch.Tensor], said: str, tmp_path: Path) -> None:
    """Tensors of a different type or shape are refused, although PyTorch would silently convert or broadcast them."""
    module, path = nn.Linear(4, 3, bias=False), tmp_path / "x.safetensors"
    save_file(tensors, path)
    before = module.weight.clone()
    with refused_at("", said):
        model_files.begin_with(module, path, partial=False)
    with refused_at("", said):
        model_files.put_into(module, model_files.read(path), path)
    assert torch.equal(module.weight, before)


def test_shorter_and_longer_real_numbers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        save_file({"weight": torch.full((3, 4), 0.5, dtype=dtype)}, path)
        module = nn.Linear(4, 3, bias=False)
        model_files.begin_with(module, path, partial=False)
        assert module.weight.dtype == torch.float32
        assert (module.weight == 0.5).all()


def test_a_header_that_is_no_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    for text in ("hello", "[1]", "null", "[" * 100_000):
        save_file({"weight": torch.zeros(3)}, path, metadata={"edgefl": text})
        with refused_at(str(path), "not a JSON object"):
            model_files.read_about(path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shape": "abc"},
        {"shape": [10**9, 1000]},
        {"shape": [10**400]},
        {"shape": [-1]},
        {"shape": [2.5]},
        {"shape": None},
        {"labels": 3},
        {"labels": [1, 2]},
        {"labels": ["a"] * 100_000},
        {"mean": "x"},
        {"mean": [1.0, 2.0, 3.0]},
        {"std": 0.0},
        {"std": float("nan")},
        {"target_std": -1.0},
        {"target_mean": [0.0]},
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_what_a_strangers_header_says_is_checked(wrong: dict[str, Any], tmp_path: Path) -> None:
    """A file whose header describes a model that is too large is refused before memory is allocated."""
    path = tmp_path / "x.safetensors"
    inputs = {"shape": [4], "mean": 0.5, "std": 2.0, "labels": ["a", "b"]}
    save_file({"weight": torch.zeros(2, 4)}, path, metadata={"edgefl": json.dumps({"inputs": inputs})})
    assert model_files.Inputs.of(path, model_files.read_about(path)) == INPUTS
    with refused_at(str(path), "header"):
        model_files.Inputs.of(path, {"inputs": {**inputs, **wrong}})


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_not_waited_for(make: Any, tmp_path: Path) -> None:
    make(path := tmp_path / "x.safetensors")
    for read in (model_files.read, model_files.read_about):
        with refused_at(str(path), "not a file"):
            read(path)
