"""Model files of strangers: what does not fit is one error, and no pipe is waited for."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from edgefl.errors import EdgeflError
from edgefl.learning.modules import model_files

INPUTS: dict[str, Any] = {"shape": [4], "mean": 0.5, "std": 2.0, "labels": ["a", "b", "c"]}
State = dict[str, Tensor]
DOORS: dict[str, Callable[[nn.Module, Path], None]] = {
    "initial": lambda module, path: model_files.begin_with(module, path, partial=False),
    "kept": model_files.load_whole,
}


def state() -> State:
    return {"weight": torch.ones(3, 4), "bias": torch.zeros(3)}


@pytest.mark.parametrize("door", ["initial", "kept"])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: {f"x.{name}": one for name, one in s.items()}, "fit"),
        (lambda s: {"weight": s["weight"]}, "lacks 'bias'"),
        (lambda s: s | {"more": torch.zeros(1)}, "has 'more'"),
        (lambda s: s | {"bias": torch.zeros(1)}, r"has bias \[1\] for \[3\]"),
        (lambda s: s | {"weight": s["weight"].T.contiguous()}, r"has weight \[4, 3\] for \[3, 4\]"),
        (lambda s: s | {"bias": torch.tensor(1.0)}, r"has bias \[\] for \[3\]"),
        (lambda s: s | {"bias": torch.full((3,), torch.nan)}, "bias is not finite"),
        (lambda s: s | {"bias": torch.full((3,), torch.inf)}, "bias is not finite"),
        (lambda s: s | {"bias": torch.full((3,), 1e300, dtype=torch.float64)}, "bias is not finite"),
        (lambda s: s | {"bias": torch.zeros(3, dtype=torch.int64)}, "bias is of int64"),
        (lambda s: s | {"bias": torch.zeros(3, dtype=torch.bool)}, "bias is of bool"),
        (lambda s: s | {"bias": torch.zeros(3, dtype=torch.complex64)}, "bias is of complex64"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    door: str, change: Callable[[State], State], why: str, tmp_path: Path
) -> None:
    path = tmp_path / "strange.safetensors"
    save_file(change(state()), path)
    module = nn.Linear(4, 3)
    before = {name: one.clone() for name, one in module.state_dict().items()}
    with pytest.raises(EdgeflError, match=why):
        DOORS[door](module, path)
    assert all(torch.equal(one, before[name]) for name, one in module.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floating_numbers_are_taken(dtype: torch.dtype, tmp_path: Path) -> None:
    save_file({name: one.to(dtype) for name, one in state().items()}, tmp_path / "x.safetensors")
    module = nn.Linear(4, 3)
    model_files.load_whole(module, tmp_path / "x.safetensors")
    assert module.weight.dtype == torch.float32
    assert torch.equal(module.weight, state()["weight"])


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_not_waited_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x.safetensors")
    for reader in (model_files.read, model_files.read_about):
        with pytest.raises(EdgeflError, match="is no file"):
            reader(tmp_path / "x.safetensors")


@pytest.mark.parametrize("header", ["{", "[]", '"x"', "3", "[" * 100_000])
def test_a_header_that_is_none_is_refused(header: str, tmp_path: Path) -> None:
    save_file(state(), tmp_path / "x.safetensors", metadata={"edgefl": header})
    with pytest.raises(EdgeflError, match="its header is damaged"):
        model_files.read_about(tmp_path / "x.safetensors")


LIES: list[Any] = [
    None,
    [1],
    {},
    *({name: value for name, value in INPUTS.items() if name != lost} for lost in INPUTS),
    *(INPUTS | {"shape": shape} for shape in ("64", [-1], [0], [4.5], [True])),
    *(INPUTS | {"labels": labels} for labels in ([], 7, [1, 2])),
    *(INPUTS | {"mean": mean} for mean in ("x", float("nan"), [1.0, 2.0, 3.0], None)),
    *(INPUTS | {"std": std} for std in (0.0, -1.0, float("nan"), "x")),
    *(INPUTS | {name: value} for name in ("target_mean", "target_std") for value in ("x", float("nan"))),
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: json.dumps(lie)[:40])
def test_inputs_that_lie_are_refused(lie: Any) -> None:
    with pytest.raises(EdgeflError, match=r"a\.safetensors: its header does not say"):
        model_files.Inputs.checked(Path("a.safetensors"), lie)


def test_inputs_as_written_are_taken() -> None:
    assert model_files.Inputs.checked(Path("a"), INPUTS).shape == (4,)
