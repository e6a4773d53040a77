"""The command for whoever has a GPU: a step that fails stops no other, and what was measured stays."""

from pathlib import Path

import pytest

from tests.tools import gpu


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
