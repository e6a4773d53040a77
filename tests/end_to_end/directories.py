"""A scenario for small studies, and what tests look for in their directories."""

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
    """Each run's file that is written first, by which one knows whether it has been made again."""
    return {str(path.parent.relative_to(out)): path.stat().st_ino for path in out.rglob("scenario.yaml")}
