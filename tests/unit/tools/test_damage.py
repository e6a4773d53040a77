"""Test the damage tool: cases are reproducible, broken rules are found, and damaged directories break no rule."""

import shutil
from pathlib import Path

import pytest

from tests.tools import damage
from tests.tools.fuzz_calls import CallResult


@pytest.mark.parametrize(
    ("ended", "rule"),
    [
        (CallResult(0, "", "", "Traceback"), "no traceback"),
        (CallResult(2, "", "Traceback (most recent call last)"), "no traceback"),
        (CallResult(1, "", "oh"), "exit code 0, 2 or 3"),
        (CallResult(2, "", "edgefl: error: wrong"), "errors name a file"),
        (CallResult(2, "", "edgefl: error: a-study/run.json: wrong"), ""),
        (CallResult(2, "", "known"), ""),
        (CallResult(3, "", ""), ""),
    ],
)
def test_each_rule_can_be_broken(ended: CallResult, rule: str) -> None:
    assert damage.broken(ended, "a-study", lambda: "known") == rule


def test_damaged_directories_are_read_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damaged directories are read or refused; `make damage` tries a hundred times as many."""
    monkeypatch.setenv("EDGEFL_OFFLINE", "1")
    code = damage.main(["--cases", "1", "--whole", str(tmp_path / "whole")])
    said = capsys.readouterr().out
    assert code == 0, said
    shutil.rmtree(tmp_path / "whole")
