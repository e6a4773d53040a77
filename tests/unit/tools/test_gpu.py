"""Test the command that runs everything on a GPU: after a failed step, other steps run; results are kept."""

from pathlib import Path

import pytest
import torch

from tests.tools import gpu
from tests.tools.bench.training import LOGISTIC


def fails(_: gpu.Asked) -> str:
    raise AssertionError("other bytes")


def test_a_step_that_fails_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "STEPS", {"First": fails, "Second": lambda asked: f"on {asked.device}"})
    out = tmp_path / "gpu"
    assert gpu.main(["--device", "cpu", "--out", str(out)]) == 1
    text = (out / "gpu.md").read_text()
    assert "AssertionError: other bytes" in text.split("## Second")[0]
    assert "on cpu" in text.split("## Second")[1]
    assert gpu.main(["--device", "cpu", "--out", str(out)]) == 2, "existing results are not overwritten"


def test_operations_of_a_round_do_not_grow_with_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five stacked steps have five forward and five backward products, and the host waits for two results."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    names = gpu.operations(LOGISTIC)
    assert names["baddbmm"] == 2 * LOGISTIC.steps
    assert sum(names[name] for name in gpu.WAITED_FOR) == 2
    assert names.total() < 200
    assert not torch.backends.cudnn.allow_tf32, "runs train in float32, and so do benchmarks"
