"""A scenario for small studies, and functions that inspect their directories."""

from pathlib import Path

SMALL = """\
name: base
devices: {count: 8}
sessions: {name: schedule, count: 4, rounds: 3}
learning:
  dataset: digits
  partition: {name: dirichlet, alpha: 0.5, overlap: 0.0}
  model: logistic
  warm_start: previous
  local:
    lr: 0.05
    batch: 16
"""


def runs(out: Path) -> dict[str, int]:
    """Return the inode of each run's scenario.yaml, its first file: a new inode means that the run was repeated."""
    return {str(path.parent.relative_to(out)): path.stat().st_ino for path in out.rglob("scenario.yaml")}
