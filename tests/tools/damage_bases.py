"""Make undamaged directories for the damage tool: a study, a study of a grid with a question, and a run."""

import json
import os
from contextlib import suppress
from pathlib import Path

from edgefl import studies
from edgefl.engine.records import Round
from edgefl.run.api import simulate
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.snapshot import Every
from edgefl.scenario.scenario import load

# names that no message contains by chance
STUDY, GRID, MOVING = "a-study", "a-grid", "a-moving-run"
LEFT = "a-left-run"  # an interrupted run
OFTEN = Every(rounds=2)
LONG_AGO_S = 1e9  # seconds since 1970, so long ago that the claim counts as abandoned
SCENARIO = """\
name: digits
seed: 3
devices: {count: 6}
record: {positions_s: none}
sessions: {name: schedule, count: 2, rounds: 4}
learning:
  dataset: digits
  model: logistic
  local:
    steps: 1
    batch: 8
    momentum: 0
  evaluation:
    scores_every: 2
    tested_on: devices
  theory: 1
  drift: {name: label_swap, at: 3}
"""
VARIANTS = """\
scenario: digits.yaml
reference: prox
variants:
  prox: {learning.algorithm: fedprox, learning.theory: null}
  avg: {learning.algorithm: fedavg}
"""
AXIS = """\
grid:
  learning.local.lr: [0.02, 0.1]
question: {metric: accuracy_first, variants: [prox, avg], precision: 20, budget: 2}
"""
PLANS = {
    STUDY: f"name: {STUDY}\nseeds: [3, 4]\n{VARIANTS}",
    GRID: f"name: {GRID}\nseeds: [3, 4]\n{VARIANTS}{AXIS}",
}
MOVING_SCENARIO = """\
name: moving
seed: 1
duration_s: 60
layout: {rings: 1, isd_m: 300}
devices: {count: 20, mobility: {name: random_waypoint, speed_min_m_s: 10, speed_max_m_s: 20}}
record: {positions_s: 5}
radio: {propagation: {shadowing: spatial}}
sessions: {name: schedule, count: 2, rounds: 4}
workload: {payload_bits: 2000000, flops_per_sample: 1000}
"""


def made(folder: Path, name: str) -> Path:
    """Return the undamaged directory of this name; make it, and the files next to it, if it is missing.

    Each directory except the run of moving devices contains an interrupted run that the study has claimed.
    """
    if (folder / name).exists():
        return folder / name
    for file, text in {"digits": SCENARIO, "moving": MOVING_SCENARIO, **PLANS}.items():
        (folder / f"{file}.yaml").write_text(text)
    if name in PLANS:
        plan = studies.plan(folder / f"{name}.yaml")
        last = plan.runs[-1]
        ends = _Interruption(last.label if name == STUDY else "")
        options = studies.StudyOptions(
            executor="inline", device="cpu", share=False, every=OFTEN, progress=ends.told
        )
        with suppress(Interrupted):
            studies.run(plan, folder / name, options)
        if name == STUDY:
            _claim(folder / name / "claims" / last.path / "1.json")
    elif name == MOVING:
        simulate(load(folder / "moving.yaml"), folder / MOVING, device="cpu")
    else:
        ends = _Interruption("")
        with suppress(Interrupted):
            simulate(
                load(folder / "digits.yaml"),
                folder / LEFT,
                device="cpu",
                snapshot_rounds=OFTEN.rounds,
                on_round=lambda row: ends.told("", row),
            )
    return folder / name


class _Interruption:
    """A callback that interrupts a run after some of its rounds."""

    def __init__(self, label: str) -> None:
        self._label, self._rounds = label, 0

    def told(self, label: str, row: Round | None) -> None:
        self._rounds += label == self._label
        if self._rounds == 5:
            raise Interrupted


def _claim(claim: Path) -> None:
    """Write a claim of another machine without a recent heartbeat."""
    claim.parent.mkdir(parents=True)
    claim.write_text(json.dumps({"pid": 1, "host": "another", "started": 1}))
    os.utime(claim, (LONG_AGO_S, LONG_AGO_S))
