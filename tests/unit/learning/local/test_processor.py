"""Test whether a CPU has instructions for bfloat16, and the note of a run if it has none."""

import json
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from typer.testing import CliRunner

import edgefl
from edgefl.commands import cli
from edgefl.learning.local import processor
from edgefl.learning.models.text_bag import add_rows
from tests.tools.operations import Operations

# shortened /proc/cpuinfo of Cascade Lake, Sapphire Rapids, Neoverse N1 and V1
WITHOUT = "processor\t: 0\nmodel name\t: x\nflags\t\t: fpu avx2 avx512f avx512bw avx512_vnni\n"
WITH = "processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16 amx_bf16 amx_tile\n"
ARM_WITHOUT = "processor\t: 0\nFeatures\t: fp asimd asimddp\n"
ARM_WITH = "processor\t: 0\nFeatures\t: fp asimd sve bf16 i8mm\n"


@pytest.mark.parametrize(
    ("text", "has"),
    [(WITHOUT, False), (WITH, True), (ARM_WITHOUT, False), (ARM_WITH, True), ("cpu : POWER9\n", None)],
)
def test_linux_cpuinfo(text: str, has: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
    assert processor.has_bf16() is has
    assert (processor.bf16_note() is None) == (has is True)


def test_who_does_not_say_is_not_taken_for_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "none")
    assert processor.has_bf16() is None
    assert "it is unknown" in str(processor.bf16_note())


SCENARIO = """\
name: small
devices: {count: 3}
sessions: {name: schedule, count: 1, rounds: 1}
learning: {dataset: digits, model: logistic, local: {precision: %s}, cost: {flops_per_sample: 1}}
"""


@pytest.mark.parametrize(("precision", "has"), [("bf16", False), ("bf16", True), ("float32", False)])
def test_slow_bf16_is_noted(
    precision: str, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with bfloat16 on a CPU without the instructions has a note in run.json and on the screen."""
    monkeypatch.setattr(processor, "has_bf16", lambda: has)
    file = tmp_path / "small.yaml"
    file.write_text(SCENARIO % precision)
    done = CliRunner().invoke(cli.app, ["run", str(file), "--out", str(tmp_path / "run"), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    slow = precision == "bf16" and not has
    assert ("note: learning.local.precision is bf16" in done.stderr) == slow
    notes = json.loads((tmp_path / "run" / "run.json").read_text())["notes"]
    assert [("no bfloat16 instructions" in note) for note in notes] == [True] * slow


def test_float32_is_float32_on_a_gpu_and_its_bits_repeat(tmp_path: Path) -> None:
    """A run turns off TF32 (PyTorch's default in convolutions) and nondeterminism, whatever was set before."""
    of_cudnn = torch.backends.cudnn
    torch.backends.cuda.matmul.allow_tf32 = of_cudnn.allow_tf32 = of_cudnn.benchmark = True
    of_cudnn.deterministic = False
    file = tmp_path / "small.yaml"
    file.write_text(SCENARIO % "float32")
    edgefl.simulate(file, tmp_path / "run", device="cpu")
    assert torch.backends.cuda.matmul.allow_tf32 is of_cudnn.allow_tf32 is of_cudnn.benchmark is False
    assert of_cudnn.deterministic


def test_embeddings_add_up_with_the_same_bits_on_a_gpu() -> None:
    """On a GPU, index_add_ is avoided, as it adds in any order; on a CPU both ways have the same bits."""
    rows, values = torch.randint(0, 7, (50,)), torch.randn(50, 3)
    with FakeTensorMode(), Operations() as called, torch.device("cuda"):
        add_rows(torch.zeros(9, 3), torch.zeros(50).long(), torch.zeros(50, 3))
    assert "index_add_" not in called.names
    assert called.names[-1] in {"index_put_", "_index_put_impl_"}
    ours, sorted_first = torch.zeros(9, 3), torch.zeros(9, 3)
    add_rows(ours, rows, values)
    sorted_first.index_put_((rows,), values, accumulate=True)
    assert torch.equal(ours, sorted_first)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_adds_embeddings_twice_to_the_same_bits() -> None:
    rows, values = torch.randint(0, 7, (50_000,)), torch.randn(50_000, 64)
    sums = [torch.zeros(7, 64, device="cuda") for _ in range(2)]
    for each in sums:
        add_rows(each, rows.cuda(), values.cuda())
    assert torch.equal(*sums)
    exact = torch.zeros(7, 64, dtype=torch.float64).index_add_(0, rows, values.double())
    assert torch.allclose(sums[0].cpu().double(), exact, atol=1e-2)  # 7,000 terms of about one
