"""The command for whoever has a GPU: a step that fails stops no other, and what was measured stays."""

from pathlib import Path

import pytest

from tests.tools import gpu
from tests.tools.fuzz_calls import call

CPU_S = 60.0  # of one run


def fails(_: gpu.Asked) -> str:
    raise AssertionError("other bytes")


def test_a_step_that_fails_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "STEPS", {"First": fails, "Second": lambda asked: f"on {asked.device}"})
    out = tmp_path / "gpu"
    assert gpu.main(["--device", "cpu", "--out", str(out)]) == 1
    text = (out / "gpu.md").read_text()
    assert "AssertionError: other bytes" in text.split("## Second")[0]
    assert "on cpu" in text.split("## Second")[1]
    assert gpu.main(["--device", "cpu", "--out", str(out)]) == 2, "what was measured is not written over"


def in_this_process(asked: gpu.Asked, *arguments: str) -> str:
    done = call([*arguments, "--device", asked.device], gpu.ROOT, CPU_S)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.slow
def test_twice_the_same_run_is_found_unlike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that differ from the first run to the second are a failure that names them."""
    asked, real = gpu.Asked("cpu", tmp_path), gpu.run
    monkeypatch.setattr(gpu, "RUNS", {"logistic regression": []})
    # a process of its own for each run is not what is tried here
    monkeypatch.setattr(gpu, "command", in_this_process)

    def another_time(asked: gpu.Asked, scenario: Path, folder: Path, overrides: list[str]) -> None:
        real(asked, scenario, folder, [*overrides, f"seed={folder.name[-1]}"])

    assert "| logistic regression |" in gpu.runs_twice(gpu.Asked("cpu", tmp_path / "alike"))
    monkeypatch.setattr(gpu, "run", another_time)
    with pytest.raises(AssertionError, match=r"other bytes: logistic regression: .*rounds\.csv"):
        gpu.runs_twice(asked)
