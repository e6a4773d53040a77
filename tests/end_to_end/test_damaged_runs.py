"""Test that damaged run directories, a full disk for output, and links in part of a study each cause one error."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from edgefl.analysis.html import write_report
from edgefl.analysis.runs.load import load_runs
from edgefl.run.api import simulate
from edgefl.scenario.scenario import load
from edgefl.studies.merging import merge
from tests.refusals import refused_at

SCENARIO = """
name: small
seed: 1
devices: {count: 3}
workload: {payload_bits: 100000, flops_per_sample: 1000}
sessions: {name: schedule, count: 1, rounds: 3}
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("damaged") / "small.yaml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def run(scenario: Path, tmp_path: Path) -> Path:
    """Return a copy of a completed run, which a test may damage."""
    whole = scenario.parent / "whole"
    if not whole.exists():
        simulate(load(scenario), whole, device="cpu")
    return Path(shutil.copytree(whole, tmp_path / "run"))


def info(**wrong: object) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        file = run / "run.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | wrong))

    return damage


def without(key: str) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        written = yaml.safe_load((run / "scenario.yaml").read_text())
        del written[key]
        (run / "scenario.yaml").write_text(yaml.safe_dump(written))

    return damage


def holding(text: str, name: str = "scenario.yaml") -> Callable[[Path], None]:
    return lambda run: (run / name).write_text(text) and None


def with_words(name: str) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        head, _, rows = (run / name).read_text().partition("\n")
        (run / name).write_text(f"{head}\n{rows.replace('0', 'x')}")

    return damage


def without_rows(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).write_text((run / name).read_text().partition("\n")[0] + "\n") and None


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (info(wall_s="long"), r"run\.json is damaged: its wall_s is 'long'"),
        (info(notes=5), r"run\.json is damaged: its notes is '5'"),
        (info(seed=None), r"run\.json is damaged: it has no seed"),
        (info(simulated_s=None), r"run\.json is damaged: it has no simulated_s"),
        (info(setting={"lr": {"a": 1}}), r"run\.json is damaged: its setting has \"\{'a': 1\}\""),
        (info(versions="1"), r"run\.json is damaged: its versions is '1'"),
        (info(notes=[5]), r"run\.json is damaged: its notes has '5'"),
        (info(model={"payload_bits": "x"}), r"run\.json is damaged: its model has 'x'"),
        (info(setting=["a"]), r"run\.json is damaged: its setting is"),
        (
            without("layout"),
            r"scenario\.yaml: was not written by a run or was changed \(it has no key 'layout'\)",
        ),
        (holding("layout: 3\n"), r"scenario\.yaml: was not written by a run or was changed"),
        (holding("- 1\n"), r"scenario\.yaml: was not written by a run or was changed"),
        (
            holding("x: !!python/object:os.system {}\n"),
            r"^cannot read .*scenario\.yaml \(could not determine",
        ),
        (lambda run: (run / "scenario.yaml").unlink(), r"^cannot read .*scenario\.yaml \(No such file"),
        (with_words("rounds.csv"), r"rounds\.csv is damaged: its column .* holds words"),
        (
            without_rows("sessions.csv"),
            r"sessions\.csv has 0 rows, but its run wrote 1: copy the file again or repeat the run",
        ),
        (with_words("ledger.csv"), r"ledger\.csv is damaged: its column device holds words"),
    ],
)
def test_a_report_names_the_damaged_file(run: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(run)
    with pytest.raises(ValueError, match=message) as told:
        write_report(run)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("ending", ["", "3"], ids=["after a line", "within a line"])
@pytest.mark.parametrize("table", ["rounds", "devices", "events", "sessions", "ledger", "positions"])
def test_a_copy_without_its_last_row_is_refused(run: Path, table: str, ending: str) -> None:
    """Otherwise a copy that broke off would give smaller sums."""
    file = run / f"{table}.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]) + ending)
    few = rf"{table}\.csv has {len(lines) - 2} rows, but its run wrote {len(lines) - 1}: copy the file again"
    with pytest.raises(ValueError, match=few):
        write_report(run)
    whole = shutil.copytree(run, run.parent / "whole")  # runs that are read together are parsed together
    (whole / f"{table}.csv").write_text("".join(lines))
    with pytest.raises(ValueError, match=few):
        getattr(load_runs([run, whole]), table)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")
def test_a_full_standard_output_is_one_message_after_the_whole_run(scenario: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from edgefl.commands.cli import main; main()", "run", scenario]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "--out", tmp_path / "out"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    told = "edgefl: error: standard output cannot be written (No space left on device)\n"
    assert done.stderr.endswith(told)
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "out/run.json").read_text())["status"] == "completed"


def test_a_file_that_cannot_be_copied_is_named(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate shutil's error for an unreadable file, because tests that run as root can read any file."""
    part = tmp_path / "part"
    shutil.copytree(run, part / "a/seed-1")
    (part / "study.yaml").write_text("name: study\n")
    locked = str(part / "a/seed-1/rounds.csv")

    def refuse(*_: object) -> None:
        raise shutil.Error([(locked, "there", "Permission denied")])

    monkeypatch.setattr(shutil, "copytree", refuse)
    with refused_at("", locked):
        merge([part], tmp_path / "merged")


@pytest.mark.parametrize("where", ["a/seed-1/rounds.csv", "study.yaml", "a/seed-1/beside"])
def test_a_part_with_links_is_not_merged(run: Path, tmp_path: Path, where: str) -> None:
    part, secret = tmp_path / "part", tmp_path / "secret"
    secret.write_text("name: study\n")
    part.mkdir()
    (part / "study.yaml").write_text("name: study\n")
    shutil.copytree(run, part / "a/seed-1")
    (part / where).unlink(missing_ok=True)
    (part / where).symlink_to(secret)
    with refused_at("", where):
        merge([part], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
