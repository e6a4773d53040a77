"""Scenarios small enough for a test, on real data."""

from pathlib import Path

import pytest

DIGITS = """\
name: digits
seed: 3
devices: {count: 8}
sessions: {name: schedule, count: 4, rounds: 3}
learning:
  dataset: digits
  partition: {name: dirichlet, alpha: 0.5, overlap: 0.0}
  model: logistic
  algorithm: fedprox
  warm_start: similarity
  lr: 0.05
  batch: 16
"""
STUDY = """\
name: small
scenario: digits.yaml
seeds: [3, 4]
reference: similarity
variants:
  similarity: {learning.warm_start: similarity}
  previous: {learning.warm_start: previous}
"""


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    """A scenario file; `small.yaml` beside it is a study of it."""
    path = tmp_path / "digits.yaml"
    path.write_text(DIGITS)
    (tmp_path / "small.yaml").write_text(STUDY)
    return path
