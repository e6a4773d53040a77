"""Write a small scenario for tests of the steps before a run."""

from pathlib import Path

import pytest

DIGITS = """\
name: digits
devices: {count: 6}
sessions: {name: schedule, count: 2, rounds: 2}
learning:
  dataset: digits
  model: logistic
  warm_start: similarity
"""


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a scenario in a temporary folder, which becomes the current folder."""
    (tmp_path / "digits.yaml").write_text(DIGITS)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "digits.yaml"
