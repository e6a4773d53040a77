"""Test that a killed or interrupted run resumes, with the results of an uninterrupted run."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

from edgefl import load_scenario, simulate
from edgefl.analysis.runs.load import load_runs
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.api import resume
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.journal import FILE, FORMAT
from edgefl.run_directory.seal import sealed, unsealed
from tests.refusals import refused_at
from tests.tools.leaving import goes_on, leave

LEFT_AT = 9  # the second round of a session; a run has 15 rounds
# rounds of both cells end at the same deadline; after resuming, no request to the learner is repeated
CELLS = (
    "layout={sites: [[0, 0], [60, 0]], federations: all}; rounds.deadline_s=0.007;"
    " radio={preset: journal, propagation: {shadowing: spatial}, bandwidth_hz: 1.0e+6}"
)
# the journal has no times, so a resumed run must compute times of rounds, and rates that depend on them, again
CLOCK = "duration_s=130; sessions={name: interval, length_s: 45}; rounds={every_s: 10, server_s: 1}"
DRIFT = (
    "learning.dataset={name: synthetic, groups: 8}; learning.partition=natural; learning.local.epochs=3;"
    " learning.local.early_stopping=0.02; learning.drift={name: label_swap, at: 8};"
    " learning.evaluation.tested_on=devices; learning.warm_start=previous; learning.algorithm="
)
# devices change cells and lose updates; if rounds overlap, the server holds updates that started from several models,
# each with the models that its device would have received
CODECS = (
    "seed=4; layout={rings: 1, isd_m: 300}; sessions={name: schedule, count: 3, rounds: 3};"
    " devices={count: 24, mobility: {name: random_waypoint, speed_min_m_s: 40, speed_max_m_s: 60}};"
    " radio={preset: journal, bandwidth_hz: 1.0e+5, propagation: {shadowing: spatial}};"
    " learning={dataset: digits, model: {name: mlp2, hidden: 100}, partition: {name: dirichlet, alpha: 0.5},"
    " local: {lr: 0.05, batch: 16}, uplink_codec: {name: qsgd, error_feedback: true, levels: 3},"
    " downlink_codec: {name: top_k, share: 0.2}}"
)
OVERLAPPING = (
    "radio.sharing=dynamic; radio.scheduler=round_robin; handover.policy=finish;"
    " rounds.server={name: fedbuff, buffer: 2, concurrency: 4}"
)
REGRESSION = (
    "seed=4; sessions.count=4; sessions.rounds=1; learning.dataset=diabetes; learning.partition=iid;"
    " learning.warm_start=similarity"
)
SIGNAL, QSGD = Interrupted(signal.SIGTERM), "learning.uplink_codec=qsgd"
CASES = {
    "as it is, by a signal": ("", LEFT_AT, 4, SIGNAL),
    "as it is, by a fault": ("", LEFT_AT, 4, None),
    "two cells, by a signal, at once": (CELLS, 1, 1, SIGNAL),
    "two cells, by a signal, later": (CELLS, 4, 1, SIGNAL),
    "two cells, by an error, at once": (CELLS, 1, 1, EdgeflError("no space left")),
    "two cells, by an error, later": (CELLS, 4, 1, EdgeflError("no space left")),
    "by the clock": (CLOCK, LEFT_AT, 4, None),
    "by a score": ("stop={accuracy: 0.75}; learning.local.lr=0.002; sessions.rounds=40", LEFT_AT, 4, SIGNAL),
    "no learning": ("learning=null; workload={payload_bits: 1e5, flops_per_sample: 1e6}", LEFT_AT, 4, SIGNAL),
    "oort": (f"{QSGD}; rounds.selector={{name: oort, count: 4}}", LEFT_AT, 4, SIGNAL),
    "best_norm": (f"{QSGD}; rounds.selector={{name: best_norm, count: 3}}", LEFT_AT, 4, SIGNAL),
    "least_energy": ("rounds.selector={name: least_energy, count: 4}", LEFT_AT, 4, SIGNAL),
    "drift, fedavg": (f"{DRIFT}fedavg", LEFT_AT, 2, None),
    "drift, oracle": (f"{DRIFT}oracle", LEFT_AT, 2, None),
    "drift, apfl": (f"{DRIFT}apfl", LEFT_AT, 2, None),
    # a saved model of 11 numbers opens a session, and is tested, right after the snapshot
    "regression": (REGRESSION, 2, 1, SIGNAL),
    "codecs": (CODECS, 17, 3, None),
    "codecs, fedbuff": (f"{CODECS}; {OVERLAPPING}", 17, 3, None),
    "scores of devices": ("learning.evaluation={tested_on: devices, scores_every: 2}", 7, 3, None),
}


@pytest.mark.parametrize(("overrides", "after", "every", "error"), CASES.values(), ids=CASES.keys())
def test_a_run_goes_on(
    overrides: str, after: int, every: int, error: BaseException | None, digits: Path, tmp_path: Path
) -> None:
    scenario = load_scenario(digits, [each for each in overrides.split("; ") if each])
    whole = goes_on(scenario, tmp_path, after, every, error)
    if overrides == CELLS:
        assert (whole.rounds.groupby("end_s").size() == 2).any()
    if overrides == CLOCK:
        assert json.loads((tmp_path / "left" / "run.json").read_text())["simulated_s"] == 130.0
    if CODECS in overrides:
        assert whole.devices.groupby("device").cell.nunique().max() > 1, "some device must learn in two cells"
        assert (whole.devices.outcome != "completed").any(), "some update must be lost"
    assert ("reached" in whole.info.get("stopped", "")) == ("stop=" in overrides)
    assert ("loss_received" in whole.devices) == ("oort" in overrides)
    assert ("update_norm" in whole.devices) == ("best_norm" in overrides)
    assert (whole / "evaluation.csv").exists() == ("scores" in overrides)


@pytest.mark.parametrize("error", [SIGNAL, RuntimeError("a fault")])
def test_a_run_that_was_left_says_how(error: BaseException, digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    leave(load_scenario(digits), run, LEFT_AT, error=error)
    status = json.loads((run / "run.json").read_text())["status"]
    assert status == ("interrupted" if error is SIGNAL else "failed")
    with refused_at("", f"{run}: is not empty", f"`edgefl resume {run}`"):
        # resuming is refused before the device, which does not exist, is used
        simulate(load_scenario(digits), run, device="none")
    notes: list[str] = []
    resume(run, on_note=notes.append)
    assert notes == []
    with refused_at("", run):
        resume(run)


def test_another_scenario_is_not_this_run(digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    leave(load_scenario(digits), run, LEFT_AT)
    text = (run / "scenario.yaml").read_text()
    (run / "scenario.yaml").write_text(text.replace("lr: 0.05", "lr: 0.06"))
    with refused_at("", "learning.local.lr is 0.06, was 0.05"):
        resume(run)


def test_other_data_are_not_this_run(digits: Path, tmp_path: Path) -> None:
    """Rounds after the stop would otherwise learn from the changed file; a refusal leaves the directory as it was."""
    rng, run, file = np.random.default_rng(3), tmp_path / "run", tmp_path / "own.npz"
    x, y = rng.normal(size=(240, 5)).astype(np.float32), rng.integers(0, 3, 240)

    def write(labels: np.ndarray) -> None:
        np.savez(file, x_train=x, y_train=labels, x_test=x, y_test=labels)

    write(y)
    own = ["learning.dataset", f"{{name: npz, path: {file}}}"], ["learning.partition", "iid"]
    leave(load_scenario(digits, ["=".join(one) for one in own]), run, LEFT_AT)
    write((y + 1) % 3)
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    assert b"," in before["rounds.csv"]
    with refused_at("", f"{run}: cannot be resumed", "the data of learning.dataset is "):
        resume(run)
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before
    write(y)
    resume(run)


def test_another_trace_is_not_this_run(digits: Path, tmp_path: Path) -> None:
    """The journal does not hold positions, so a fix that moves after the stop would go unseen."""
    run, trace = tmp_path / "run", tmp_path / "tracks.csv"
    rows = [f"{t},{id_},{10 + id_ + t},20" for id_ in range(6) for t in (0, 500, 1000)]
    trace.write_text("\n".join(["t,id,x,y", *rows]))
    leave(
        load_scenario(digits, [f"devices={{count: all, mobility: {{name: trace, path: {trace}}}}}"]),
        run,
        LEFT_AT,
    )
    before = (run / "rounds.csv").read_bytes()
    trace.write_text("\n".join(["t,id,x,y", *rows[:-1], "1000,5,99,20"]))
    with refused_at("", f"{run}: cannot be resumed", "the data of devices.mobility.path is "):
        resume(run)
    assert (run / "rounds.csv").read_bytes() == before


def test_a_run_of_the_version_before_is_read_and_not_gone_on_with(digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    leave(load_scenario(digits), run, LEFT_AT)
    first, *others = (run / FILE).read_bytes().splitlines(keepends=True)
    begun = unsealed(first)
    assert begun is not None
    (run / FILE).write_bytes(b"".join([sealed({**begun, "journal": FORMAT - 1}).encode(), *others]))
    with refused_at("", f"format {FORMAT - 1}", f"reads {FORMAT}"):
        resume(run)
    assert len(load_runs(run, partial=True).rounds), "completed sessions can be read"


@pytest.mark.parametrize("content", ["", "[]", '{"status": 3}', '{"status": "interrupted"}'])
def test_a_run_that_has_lost_its_name_is_refused_before_it_computes(
    content: str, digits: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    leave(load_scenario(digits), run, LEFT_AT)
    tables = {file.name: file.read_bytes() for file in run.glob("*.csv")}
    (run / "run.json").write_text(content)
    with refused_at("", "run.json"):
        resume(run)
    assert (run / "run.json").read_text() == content
    assert {file.name: file.read_bytes() for file in run.glob("*.csv")} == tables


def test_an_error_of_on_round_leaves_nothing_half_written_where_cells_act_at_one_instant(
    digits: Path, tmp_path: Path
) -> None:
    cells = ["devices.count=24", "layout={rings: 1, isd_m: 300, federations: [0, 1, 2]}", "sessions.count=1"]
    alike = ["learning.partition=iid", "sessions.rounds=4", "radio.access=null"]
    scenario = load_scenario(digits, [*cells, *alike])
    rows: list[Round] = []
    whole = simulate(scenario, tmp_path / "whole", on_round=rows.append)
    ends_s = [row.end_s for row in rows]
    at = next(place for place, end_s in enumerate(ends_s[:-1], 1) if place > 3 and end_s == ends_s[place])

    def fail(row: Round) -> None:
        if (row.cell, row.round) == (rows[at - 1].cell, rows[at - 1].round):
            raise LookupError("mine")

    with pytest.raises(LookupError):
        simulate(scenario, tmp_path / "left", on_round=fail, snapshot_rounds=1)
    resume(tmp_path / "left")
    for table in sorted(whole.glob("*.csv")):
        assert (tmp_path / "left" / table.name).read_bytes() == table.read_bytes(), table.name
