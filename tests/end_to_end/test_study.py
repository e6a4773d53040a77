"""Test what happens to the other runs of a study if a run fails or a process is killed."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file

from edgefl.run_directory.status import resumable
from edgefl.studies import Failed, IncompleteStudy, StudyOptions, plan, run
from tests.tools.called import code_of
from tests.tools.forked import Command

WILD = "  wild: {learning.local.lr: 90, learning.algorithm: {name: fedprox, mu: 1.0e+9}}\n"
# No device is ever switched on, but only carrying out the run reveals this.
NOBODY = "  nobody: {devices.churn: {name: poisson, off_s: 1.0e+9, on_s: 0.001}, rounds.max_wait_s: 0.01}\n"
pytestmark = pytest.mark.usefixtures("unrendered")

# Of seeds 1 to 3, only seed 2 places no device in the cell. A study checks only its first seed before it begins, so
# the run of seed 2 fails, before it has a directory.
FEW = "  few: {devices.count: null, devices.density_per_km2: 3}\n"
RADIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: ROUNDS}
workload: {payload_bits: 100000, flops_per_sample: 1000}
"""
RADIO_STUDY = "name: radio\nscenario: radio.yaml\nseeds: [1, 2, 3]\nreference: a\nvariants: {a: {}}\n"
HOURS = 10**6  # more rounds than any test waits for
GONE_S = 30.0  # a worker ends in about a second; on a loaded machine it may take a while to be scheduled


def statuses(study: Path) -> dict[str, str]:
    paths = sorted(study.rglob("run.json"))
    return {str(path.parent.relative_to(study)): json.loads(path.read_text())["status"] for path in paths}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_fails_does_not_stop_the_others(
    jobs: int, digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = digits.with_name("small.yaml"), tmp_path / "study"
    study.write_text(study.read_text().replace("variants:\n", "variants:\n" + WILD + NOBODY))
    assert code_of("study", study, "--seed", 4, "--out", out, "--jobs", jobs) == 2
    assert statuses(out) == {
        "nobody/seed-4": "failed",
        "previous/seed-4": "completed",
        "similarity/seed-4": "completed",
        "wild/seed-4": "failed",
    }
    printed, errors = capsys.readouterr()
    at_once, at_end = errors.split("edgefl: error: 2 of 4 runs failed, and the others are complete:\n")
    assert "edgefl: failed: wild seed 4: training diverged" in at_once
    assert re.search(
        r"edgefl: failed: nobody seed 4: .*small.yaml:\d+ rounds.max_wait_s: cell 0 has had no device",
        at_once,
    )
    assert at_once.count("\n") == 2, "one line per failed run"
    assert sorted(at_end.splitlines()) == [
        "  nobody seed 4",
        "  once the cause is gone, --retry repeats them",
        "  wild seed 4",
    ]
    assert "training diverged" not in printed, "each reason once"
    # the table has only complete runs, and its page names the missing runs
    assert set(pd.read_csv(out / "comparison.csv").variant) == {"similarity", "previous"}
    assert (out / "comparison.png").exists()
    words = "".join((out / "comparison.md").read_text().split())
    for missing in ("wild/seed-4:itfailed(trainingdiverged", "nobody/seed-4:itfailed("):
        assert missing in words
    # the rounds before the fault and the last finite model are kept
    (rescued,) = set(re.findall(r"finite model is in (\S+\.safetensors)", errors))
    assert Path(rescued).parent == out / "wild" / "seed-4"
    assert load_file(rescued)["model"].isfinite().all()


@pytest.mark.parametrize("jobs", [1, 2])
def test_fail_fast_ends_a_study_with_its_first_failure(
    jobs: int, digits: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = digits.with_name("small.yaml"), tmp_path / "study"
    study.write_text(study.read_text().replace("variants:\n", "variants:\n" + NOBODY))
    digits.write_text(digits.read_text().replace("rounds: 3", "rounds: 3000"))
    assert code_of("study", study, "--out", out, "--jobs", jobs, "--fail-fast") == 2
    errors = capsys.readouterr().err
    assert errors.startswith("edgefl: error: nobody seed ")  # two processes could run both seeds at once
    assert errors.count("\n") == 1
    found = statuses(out)
    failed = [name for name, status in found.items() if status == "failed"]
    assert failed
    assert all(name.startswith("nobody/") and found.pop(name) for name in failed)
    assert set(found.values()) <= {"interrupted"}, "no run completes"
    assert not (out / "comparison.csv").exists()


def test_a_study_in_python_raises_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "radio.yaml").write_text(RADIO.replace("ROUNDS", "2"))
    study = tmp_path / "study.yaml"
    study.write_text(RADIO_STUDY.replace("{a: {}}", "\n  a: {}\n" + FEW))
    told: list[Failed] = []
    with pytest.raises(
        IncompleteStudy, match=r"1 of 6 runs failed(.|\n)*few seed 2: .*: with seed 2 there is no device"
    ) as error:
        run(plan(study), tmp_path / "out", StudyOptions(jobs=1, failed=told.append))
    assert tuple(told) == error.value.failures
    assert error.value.path == tmp_path / "out"
    assert list(statuses(tmp_path / "out").values()) == [*["completed"] * 4, "failed", "completed"]


def test_a_grid_without_training_has_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "radio.yaml").write_text("radio: {preset: journal}\n" + RADIO.replace("ROUNDS", "2"))
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(RADIO_STUDY + "grid: {radio.bandwidth_hz: [20.0e+6, 100.0e+6]}\n")
    assert code_of("study", study, "--out", out, "--jobs", 1) == 0
    printed = capsys.readouterr().out
    assert "Bandwidth 100 MHz needs " in printed
    assert "times the time of 20 MHz for a round" in printed
    assert "Costs against radio.bandwidth_hz" in printed
    latency_s = pd.read_csv(out / "sweep.csv").set_index("radio.bandwidth_hz")["latency_s_mean"]
    assert latency_s[20e6] > 2 * latency_s[100e6]
    assert (out / "sweep.png").exists()
    assert not (out / "settings.csv").exists()  # a setting with a single variant has nothing to compare


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_studys_workers_end_with_it(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "radio.yaml").write_text(RADIO.replace("ROUNDS", str(HOURS)))
    (tmp_path / "study.yaml").write_text(RADIO_STUDY)
    out = tmp_path / "out"
    process = Command(["study", str(tmp_path / "study.yaml"), "--out", str(out), "--jobs", "2"])
    workers = set()
    while len(workers) < 2:  # until both workers have written rounds
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.05)
        for path in out.rglob("rounds.csv"):
            if path.read_text().count("\n") > 2:
                workers.add(json.loads(path.with_name("run.json").read_text())["process"]["pid"])
    assert process.pid not in workers
    process.send_signal(number)
    _, errors = process.communicate()
    deadline = time.monotonic() + GONE_S
    while any(map(is_there, workers)):
        assert time.monotonic() < deadline, f"{workers} still exist"
        time.sleep(0.05)
    # workers interrupt their runs cleanly, even if the study's process was killed; the third run never began
    assert statuses(out) == {"a/seed-1": "interrupted", "a/seed-2": "interrupted"}
    for path in ("a/seed-1", "a/seed-2"):
        resumable(out / path)
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert errors.decode() == "edgefl: interrupted; the same command continues it\n"


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
