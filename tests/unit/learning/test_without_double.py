"""Test that tensors become float64 only in `in_double`, on the CPU, as Apple's GPUs have no float64."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import edgefl
from edgefl.learning import tensors
from edgefl.learning.tensors import in_double
from tests.tables import sections

SCENARIO = sections("""
    name=apple; devices={count: 4}; sessions={name: schedule, count: 3, rounds: 2}
    rounds={selector: {name: best_norm, count: 3}}; learning.dataset=digits
    learning.partition={name: dirichlet, alpha: 1.0}; learning.model=logistic
    learning.algorithm=adaptive_fedavg; learning.warm_start={name: similarity, scale: auto}
    learning.local={lr: 0.01, batch: 16, optimiser: adam}
""")


class Device(TorchDispatchMode):
    """A stand-in for a device without float64, which records operations that convert to float64."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = operation(*args, **(kwargs or {}))
        taken, made = (
            {one.dtype for one in tree_leaves(tree) if isinstance(one, torch.Tensor)}
            for tree in ((args, kwargs), found)
        )
        if taken and torch.float64 in made - taken and not _leaving():
            self.refused.add(str(operation))
        return found


def _leaving() -> bool:
    """Return whether the call is within `in_double`, which first moves the tensor to the CPU."""
    frame = sys._getframe()
    while frame is not None and frame.f_code is not in_double.__code__:
        frame = frame.f_back
    return frame is not None


@pytest.mark.parametrize(
    "evaluation",
    [{"metrics": ["top5", "macro_f1", "auc", "perplexity"]}, {"tested_on": "devices", "scores_every": 1}],
)
def test_a_run_makes_float64_only_on_the_processor(tmp_path: Path, evaluation: dict[str, Any]) -> None:
    scenario = edgefl.load_scenario(SCENARIO).with_(learning__evaluation=evaluation)
    with Device() as device:
        edgefl.simulate(scenario, tmp_path / "run", device="cpu", threads=1, progress=False)
    assert device.refused == set()


def test_the_stand_in_refuses_float64() -> None:
    with Device() as device:
        torch.ones(2).double()
        in_double(torch.ones(2))
    assert device.refused == {"aten._to_copy.default"}


def test_a_tensor_leaves_a_device_without_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "WITHOUT_DOUBLE", "meta")
    with pytest.raises(NotImplementedError, match="meta"):  # `meta` tensors hold no data to copy
        in_double(torch.ones(2, device="meta"))
