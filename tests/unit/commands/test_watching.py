"""Test that `edgefl watch` reads a running run's new rows, and leaves incomplete rows for later."""

import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from edgefl.commands import watching
from edgefl.config.yaml_source import Source
from edgefl.run import completion
from edgefl.run.api import simulate
from edgefl.scenario.scenario import load
from edgefl.studies.merging import merge
from tests.refusals import refused_at

SCENARIO = """\
name: small
seed: 1
devices: {count: 3}
sessions: {name: schedule, count: 2, rounds: 4}
workload: {payload_bits: 1000, flops_per_sample: 1000}
"""
Making = Callable[..., Path]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watch")
    (folder / "small.yaml").write_text(SCENARIO)
    return simulate(load(folder / "small.yaml"), folder / "run")


@pytest.fixture
def under_way(done: Path, tmp_path: Path) -> Making:
    def make(
        rounds: int, status: str = "running", silent_s: float = 0.0, name: str = "run", **about: object
    ) -> Path:
        path = tmp_path / name
        path.mkdir(exist_ok=True, parents=True)
        (path / "scenario.yaml").write_text((done / "scenario.yaml").read_text())
        lines = (done / "rounds.csv").read_text().splitlines(keepends=True)
        (path / "rounds.csv").write_text("".join(lines[: 1 + rounds]))
        beat = (datetime.now(UTC) - timedelta(seconds=silent_s)).isoformat()
        told = {**json.loads((done / "run.json").read_text()), "status": status, **about}
        (path / "run.json").write_text(
            json.dumps(told | {"process": {"host": "lab", "pid": 17, "heartbeat": beat}})
        )
        return path

    return make


def text(*runs: watching.Standing, of: int | None = None, width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(watching.table(runs, of, width))
    return capture.get()


def test_a_run_under_way_is_followed(under_way: Making, done: Path) -> None:
    path = under_way(2)
    watched = watching.find(path)[0]
    first = watched.look()
    assert (first.rounds, first.status, first.over) == (2, "running", False)
    assert first.share == pytest.approx(2 / 8)
    assert first.left_s >= 0
    rest = (done / "rounds.csv").read_bytes()
    with (path / "rounds.csv").open("ab") as file:
        file.write(rest[(path / "rounds.csv").stat().st_size : -20])  # the last line is not complete
    second = watched.look()
    assert second.rounds == 7
    assert second.joules > first.joules
    with (path / "rounds.csv").open("ab") as file:
        file.write(rest[-20:])
    assert watched.look().rounds == 8


def test_the_run_in_the_current_folder_is_found(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder `.` is its own parent, like a run that holds the runs of federations."""
    monkeypatch.chdir(done)
    (run,) = watching.find(Path("."))
    assert text(run.look()).split()[6] == done.name


def test_tables_that_begin_anew_are_read_anew(under_way: Making) -> None:
    path = under_way(5)
    watched = watching.find(path)[0]
    assert watched.look().rounds == 5
    under_way(1)
    assert watched.look().rounds == 1


def test_a_table_that_became_wider_is_read_anew(under_way: Making, done: Path) -> None:
    """If a run starts over with other columns, no row is counted twice, and no row is cut off."""
    path = under_way(2)
    watched = watching.find(path)[0]
    assert watched.look().rounds == 2
    head, *rows = (done / "rounds.csv").read_text().splitlines()
    wider = "".join(f"{line}\n" for line in (f"{head},further", *(f"{row},1" for row in rows[:5])))
    (path / "rounds.csv").write_text(wider)
    standing = watched.look()
    assert standing.rounds == 5
    joules = [float(row.split(",")[head.split(",").index("energy_j")]) for row in rows[:5]]
    assert standing.joules == pytest.approx(sum(joules))


def test_the_end_says_how_it_came(done: Path, under_way: Making) -> None:
    [completed] = watching.find(done)
    assert "100 %" in text(completed.look())
    failed = watching.find(under_way(3, "failed", error="KeyError:\n 'x'"))[0].look()
    assert failed.over
    told = text(failed)
    assert "failed" in told
    assert "run: KeyError: 'x'" in told


def test_silence_is_told(under_way: Making) -> None:
    path = under_way(3, silent_s=600.0)
    told = text(watching.find(path)[0].look(), width=400)
    assert "silent for 10 min" in told
    remedy = f"continue there with: edgefl resume {path}"
    assert f"run: process 17 on lab may have been killed; if so, {remedy}" in told


def test_a_run_with_an_external_learner_is_resumed_in_python(under_way: Making) -> None:
    path = under_way(3, silent_s=600.0, learner={"name": "mine:Ridge"})
    told = text(watching.find(path)[0].look(), width=400)
    call = f"edgefl.resume({str(path)!r}, learner=...) # in Python, with mine:Ridge"
    assert f"continue there with: {call}" in told


@pytest.mark.parametrize("alive", [False, True])
def test_a_run_whose_process_on_this_machine_is_gone_is_over(under_way: Making, alive: bool) -> None:
    path = under_way(3, silent_s=600.0)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    about = json.loads((path / "run.json").read_text())
    about["process"] |= {"host": platform.node(), "pid": os.getpid() if alive else ended.pid}
    (path / "run.json").write_text(json.dumps(about))
    standing = watching.find(path)[0].look()
    told = text(standing, width=400)
    assert standing.over is not alive
    assert (f"run: its process {ended.pid} is gone; continue with: edgefl resume {path}" in told) is not alive
    assert ("1 running" if alive else "1 killed") in told
    assert "may have been" not in told, "processes of this machine are checked"


@pytest.mark.parametrize("day_s", [86_400.0, -86_400.0])
def test_a_clock_that_is_wrong_is_forgotten_with_the_next_sign_of_life(
    day_s: float, under_way: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = watching.find(under_way(3, silent_s=day_s))[0]
    now_s = time.monotonic()
    run.look()
    under_way(3, silent_s=day_s + 10.0)  # a new heartbeat, written by a clock a day behind
    assert run.look().silent_s < 60.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 600.0)
    assert run.look().silent_s == pytest.approx(600.0, abs=60.0)


def test_a_clock_set_back_leaves_no_time_that_is_negative(under_way: Making) -> None:
    path = under_way(3)
    os.utime(path / "scenario.yaml", (time.time() + 1000.0,) * 2)
    assert math.isnan(watching.find(path)[0].look().left_s)


def test_before_the_first_round(under_way: Making) -> None:
    path = under_way(0)
    (path / "rounds.csv").unlink()
    standing = watching.find(path)[0].look()
    assert (standing.rounds, standing.share) == (0, 0.0)
    assert "begins" in text(standing)


def test_a_study_is_all_of_its_runs_in_80_columns(under_way: Making, tmp_path: Path) -> None:
    for name in ("similarity-100", "a-variant-with-a-very-long-name-indeed-100"):
        under_way(3, name=name)
    (tmp_path / "study.yaml").write_text(
        "variants: {a: {}, b: {}}\nseeds: [1, 2]\ngrid: {x: [1, 2, 3]}\nscenario: s.yaml\n"
    )
    standings = [each.look() for each in watching.find(tmp_path)]
    told = text(*standings, of=watching.planned(tmp_path))
    assert "2 running; the study has at most 12 runs" in told
    assert text(*standings, of=2).rstrip().endswith("2 running")
    assert max(map(len, told.splitlines())) <= 80
    assert " left" in told
    # numbers are whole, names keep both ends, and bars are shown if the terminal is wide enough
    (row,) = (line for line in told.splitlines() if line.strip().startswith("a-"))
    assert "…" in row
    assert "indeed-100 " in row
    assert f" {standings[0].rounds} " in row
    assert "━" not in told
    wide = text(*standings, width=140)
    assert "━" in wide
    assert "session 1/2" in wide
    assert "a-variant-with-a-very-long-name-indeed-100" in wide


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with refused_at("", tmp_path):
        watching.find(tmp_path)


def test_runs_stand_in_the_order_of_the_studys_file(under_way: Making, tmp_path: Path) -> None:
    for name in ("a", "z"):
        (tmp_path / name).mkdir()
        for seed in (2, 10):
            under_way(1, name=f"{name}/seed-{seed}")
    (tmp_path / "study.yaml").write_text(
        "variants: {z: {}, a: {}}\nseeds: [2, 10]\nquestion: {budget: 5}\n"
        "grid: {x: {zip: {radio.slot_s: [1, 2, 3], seed: [1, 2, 3]}}}\n"
    )
    found = [each.label for each in watching.find(tmp_path)]
    assert found == ["z/seed-2", "z/seed-10", "a/seed-2", "a/seed-10"]
    assert watching.planned(tmp_path) == (2 * 2 + 2 * 3) * 3
    for why, most in (("", 30), ("precise", None)):
        (tmp_path / "question.csv").write_text(f"x,why\n1,budget\n2,{why}\n")
        assert watching.planned(tmp_path) == most


def test_a_study_with_a_damaged_file_is_watched_and_not_merged(under_way: Making, tmp_path: Path) -> None:
    under_way(3, name="a")
    (tmp_path / "study.yaml").write_bytes(b"name: \xe4\xff")
    assert [each.label for each in watching.find(tmp_path)] == ["a"]
    with refused_at("", "study.yaml: cannot be read"):
        merge([tmp_path], tmp_path / "merged")


def test_a_damaged_run_is_a_line_and_the_others_go_on(under_way: Making, tmp_path: Path) -> None:
    for name in ("good", "lost", "torn", "strange"):
        under_way(3, name=name)
    (tmp_path / "lost" / "run.json").write_text("[1, 2]")
    with (tmp_path / "torn" / "rounds.csv").open("a") as file:
        file.write('1,"\n')
    (tmp_path / "strange" / "scenario.yaml").write_text("a: [")
    standings = {each.label: each.standing() for each in watching.find(tmp_path)}
    assert [one.status for one in standings.values()].count("damaged") == 3
    told = text(*standings.values(), width=400)
    assert "1 running, 3 damaged" in told
    assert f"{tmp_path / 'lost' / 'run.json'}: is damaged" in told
    assert f"{tmp_path / 'torn' / 'rounds.csv'}:5: is not a line of a table" in told
    assert f"{tmp_path / 'strange' / 'scenario.yaml'}" in told
    with refused_at("", "run.json"):
        watching.find(tmp_path / "lost")[0].look()


@pytest.mark.parametrize("rounds", ["4", "[4, 4]"])
def test_a_run_with_own_components_is_watched_without_their_code(
    rounds: str, under_way: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the number of rounds in the current session is unknown if the policy's keys do not state it."""
    monkeypatch.delenv("EDGEFL_ALLOW_CODE", raising=False)
    file = under_way(6) / "scenario.yaml"
    written = file.read_text().replace("name: static", "name: mine:Moves")
    written = written.replace("name: schedule", "name: mine:Policy").replace("rounds: 4", f"rounds: {rounds}")
    assert "mine:Policy" in written
    assert "mine:Moves" in written
    file.write_text(written)
    standing = watching.find(file.parent)[0].standing()
    assert (standing.status, standing.rounds, standing.where) == ("running", 6, "session 2/2")
    assert standing.share == pytest.approx(6 / 8 if rounds == "4" else 1 / 2)


def test_runs_that_differ_by_their_seed_have_their_scenario_read_once(
    under_way: Making, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    monkeypatch.setattr(completion, "Source", lambda file: read.append(file) or Source(file))
    for seed in range(3):
        file = under_way(3, name=f"a/seed-{seed}") / "scenario.yaml"
        file.write_text(file.read_text().replace("seed: 1\n", f"seed: {seed}\n"))
    other = under_way(3, name="b/seed-1") / "scenario.yaml"
    other.write_text(other.read_text().replace("count: 3", "count: 4"))
    assert {each.look().rounds for each in watching.find(tmp_path)} == {3}
    assert len(read) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a terminal of POSIX")
@pytest.mark.parametrize("leaves", [False, True], ids=["to the end", "Ctrl-C"])
def test_on_a_terminal_it_ends_with_the_run_or_is_left_clean(under_way: Making, leaves: bool) -> None:
    import pty

    path, screen, since_s = under_way(3), b"", time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        code = "import sys; from edgefl.commands.cli import main; main(sys.argv[1:])"
        words = ["watch", str(path), "--every-s", "0.1"]
        os.execve(sys.executable, [sys.executable, "-c", code, *words], {**os.environ, "TERM": "xterm"})
    said = False
    with suppress(OSError):  # the error on Linux when no process has the terminal open
        while time.monotonic() - since_s < 60 and (some := os.read(terminal, 65536)):
            screen += some
            if b"1 running" in screen and not said:
                said = True
                os.write(terminal, b"\x03") if leaves else under_way(8, "completed")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == (130 if leaves else 0)
    assert b"Traceback" not in screen
    assert screen.rindex(b"\x1b[?25h") > screen.rindex(b"\x1b[?25l"), "the cursor must be visible again"
    assert leaves or b"1 completed" in screen
