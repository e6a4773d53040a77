"""A run that was killed or interrupted goes on, and nobody can tell."""

import json
import signal
from pathlib import Path

import pytest

from edgefl import load_scenario, simulate
from edgefl.analysis.runs.load import load_runs
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.resuming import resume
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.journal import FILE, FORMAT
from edgefl.run_directory.seal import sealed, unsealed
from edgefl.run_directory.snapshot import Every
from tests.tools import kill

ROUND = 9  # of 15: a session's second


@pytest.fixture
def undisturbed(digits: Path, tmp_path: Path) -> Path:
    return simulate(load_scenario(digits), tmp_path / "undisturbed", device="cpu")


def left(digits: Path, out: Path, error: BaseException) -> int:
    """Leave a run in its ROUND-th round; returns how many there were."""
    rounds = 0

    def leave(row: Round) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == ROUND:
            raise error

    with pytest.raises(type(error)):
        simulate(load_scenario(digits), out, device="cpu", on_round=leave, every=Every(rounds=4))
    return rounds


@pytest.mark.parametrize("error", [Interrupted(signal.SIGTERM), RuntimeError("a fault")])
def test_a_run_goes_on(digits: Path, tmp_path: Path, undisturbed: Path, error: BaseException) -> None:
    run = tmp_path / "run"
    assert left(digits, run, error) == ROUND
    status = json.loads((run / "run.json").read_text())["status"]
    assert status == ("interrupted" if isinstance(error, Interrupted) else "failed")
    notes: list[str] = []
    resume(run, on_note=notes.append)
    assert kill.differences(run, undisturbed) == []
    assert notes == []
    assert not (run / "snapshots").exists()
    with pytest.raises(EdgeflError, match="is complete"):
        resume(run)


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("error", [Interrupted(signal.SIGTERM), EdgeflError("no space left")])
def test_a_run_of_several_cells_goes_on_after_an_error_outside_of_its_learners(
    error: BaseException, number: int, digits: Path, tmp_path: Path
) -> None:
    """Both cells' rounds end at one deadline: what is asked behind the row that failed no run asks again."""
    file = tmp_path / "cells.yaml"
    file.write_text(
        digits.read_text()
        + "layout: {sites: [[0, 0], [60, 0]], federations: all}\nrounds: {deadline_s: 0.007}\n"
        "radio: {preset: journal, shadowing: spatial, bandwidth_hz: 1.0e+6}\n"
    )
    undisturbed, run = (tmp_path / name for name in ("undisturbed", "run"))
    rounds = simulate(load_scenario(file), undisturbed, device="cpu").rounds
    assert (rounds.groupby("end_s").size() == 2).any()
    seen = 0

    def fail(row: Round) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise error

    with pytest.raises(type(error)):
        simulate(load_scenario(file), run, device="cpu", on_round=fail, every=Every(rounds=1))
    resume(run)
    assert kill.differences(run, undisturbed) == []


def test_another_scenario_is_not_this_run(digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    left(digits, run, RuntimeError())
    text = (run / "scenario.yaml").read_text()
    (run / "scenario.yaml").write_text(text.replace("lr: 0.05", "lr: 0.06"))
    with pytest.raises(
        EdgeflError, match=r"learning.lr is 0.06, was 0.05; undo that, or start anew: edgefl run"
    ):
        resume(run)


def test_a_run_of_the_version_before_is_read_and_not_gone_on_with(digits: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    left(digits, run, RuntimeError())
    first, *others = (run / FILE).read_bytes().splitlines(keepends=True)
    begun = unsealed(first)
    assert begun is not None
    (run / FILE).write_bytes(b"".join([sealed({**begun, "journal": FORMAT - 1}).encode(), *others]))
    with pytest.raises(EdgeflError, match=f"has format {FORMAT - 1}, .* reads {FORMAT}; use the edgefl that"):
        resume(run)
    assert len(load_runs(run, partial=True).rounds), "its sessions that have ended"


def test_a_run_without_learning_starts_again(tmp_path: Path) -> None:
    file = tmp_path / "radio.yaml"
    file.write_text(
        "name: radio\nseed: 1\ndevices: {count: 4}\nsessions: {name: schedule, count: 2, rounds: 6}\n"
        "workload: {payload_bits: 1.0e+5, flops_per_sample: 1.0e+6}\n"
    )
    undisturbed = simulate(load_scenario(file), tmp_path / "undisturbed")
    run = tmp_path / "run"
    left(file, run, Interrupted())
    assert not (run / "journal.jsonl").exists()
    resume(run)
    assert kill.differences(run, undisturbed) == []


def test_a_run_by_the_clock_goes_on(digits: Path, tmp_path: Path) -> None:
    """The journal holds no times: those of the rounds, and the learning rates that follow them, come about again."""
    file = tmp_path / "clock.yaml"
    lines = [line for line in digits.read_text().splitlines() if not line.startswith("sessions:")]
    file.write_text(
        "\n".join(lines)
        + "\nduration_s: 130\nsessions: {name: interval, length_s: 45}\nrounds: {every_s: 10, server_s: 1}\n"
    )
    undisturbed, run = (tmp_path / name for name in ("undisturbed", "run"))
    simulate(load_scenario(file), undisturbed, device="cpu")
    left(file, run, RuntimeError("a fault"))
    resume(run)
    assert kill.differences(run, undisturbed) == []
    about = json.loads((run / "run.json").read_text())
    assert about["simulated_s"] == 130.0


@pytest.mark.parametrize("content", ["", "[]", '{"status": 3}', '{"status": "interrupted"}'])
def test_a_run_that_has_lost_its_name_is_refused_before_it_computes(
    content: str, digits: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    left(digits, run, RuntimeError())
    tables = {file.name: file.read_bytes() for file in run.glob("*.csv")}
    (run / "run.json").write_text(content)
    with pytest.raises(EdgeflError, match=r"run\.json: (cannot be read|is damaged)"):
        resume(run)
    assert (run / "run.json").read_text() == content
    assert {file.name: file.read_bytes() for file in run.glob("*.csv")} == tables


def test_an_error_of_on_round_leaves_nothing_half_written_where_cells_act_at_one_instant(
    digits: Path, tmp_path: Path
) -> None:
    cells = ["devices.count=24", "layout={rings: 1, isd_m: 300, federations: [0, 1, 2]}", "sessions.count=1"]
    alike = ["learning.partition=iid", "sessions.rounds=4"]
    scenario = load_scenario(digits, [*cells, *alike])
    rows: list[Round] = []
    whole = simulate(scenario, tmp_path / "whole", on_round=rows.append)
    ends_s = [row.end_s for row in rows]
    at = next(place for place, end_s in enumerate(ends_s[:-1], 1) if place > 3 and end_s == ends_s[place])

    def fail(row: Round) -> None:
        if (row.cell, row.round) == (rows[at - 1].cell, rows[at - 1].round):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        simulate(scenario, tmp_path / "left", on_round=fail, every=Every(rounds=1))
    resume(tmp_path / "left")
    for table in sorted(whole.glob("*.csv")):
        assert (tmp_path / "left" / table.name).read_bytes() == table.read_bytes(), table.name
