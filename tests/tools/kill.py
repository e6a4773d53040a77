"""Kill runs at random instants, resume them, and compare every table with an undisturbed run, byte for byte.

make kill
python -m tests.tools.kill my.yaml --kills 100 --snapshot-rounds 1 --seed 3
"""

import json
import random
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from edgefl.errors import EdgeflError
from edgefl.run_directory.reading import about_of
from tests.tools.forked import Command

ROOT = Path(__file__).parents[2]
# keys of run.json, the only file with wall-clock times, that differ between equal runs
WALL_CLOCK = ("wall_s", "resumed", "journal_notes", "process", "shared")
LOOK_S = 0.005  # interval at which a running run is checked


@dataclass
class KilledRuns:
    """The number of killed runs of a scenario, and how many of them have the results of an undisturbed run."""

    scenario: Path
    runs: int = 0
    identical: int = 0
    kills: int = 0  # kills of runs and of resumed runs that had not completed
    resumes: int = 0
    differences: list[str] | None = None


def defaults() -> list[Path]:
    """Return the golden scenarios and the quickstart."""
    return [
        *sorted((ROOT / "tests" / "golden").glob("*/scenario.yaml")),
        ROOT / "scenarios" / "quickstart.yaml",
    ]


def instants(duration_s: float, kills: int, seed: int) -> list[float]:
    """Draw times in a run: divide it into one equal part per kill, and draw one time in each."""
    draw = random.Random(seed)
    return [duration_s * (part + draw.random()) / kills for part in range(kills)]


def contents(run: Path) -> dict[str, Any]:
    """Return the contents of a run directory, file by file, without wall-clock times.

    Snapshots are left out: a completed run deletes them, unless it is killed at that moment.
    """
    files: dict[str, Any] = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and "snapshots" not in path.relative_to(run).parts
    }
    for name in files:
        if Path(name).name == "run.json":
            about = json.loads(files[name])
            files[name] = {key: value for key, value in about.items() if key not in WALL_CLOCK}
    return files


def differences(run: Path, undisturbed: Path) -> list[str]:
    """Return the names of files that differ between two run directories."""
    here, there = contents(run), contents(undisturbed)
    return sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))


def finish(process: Command) -> None:
    """Wait for a command, which must succeed."""
    _, errors = process.communicate()
    _succeeded(process, errors)


def _succeeded(process: Command, errors: bytes) -> None:
    if process.returncode:
        raise RuntimeError(f"edgefl ended with {process.returncode}: {errors.decode()}")


def has_begun(run: Path, process: Command) -> bool:
    """Wait until a process works on the run; return False if it ended before."""
    while process.poll() is None:
        with suppress(EdgeflError, KeyError):
            if about_of(run)["process"]["pid"] == process.pid:
                return True
        time.sleep(LOOK_S)
    return False


def killed_after(process: Command, seconds: float) -> bool:
    """Kill a command after some seconds; return False if it had succeeded by then, and raise if it failed."""
    try:
        _, errors = process.communicate(timeout=seconds)
        _succeeded(process, errors)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return True


def check(scenario: Path, kills: int, *, seed: int, snapshot_rounds: int, again: float) -> KilledRuns:
    """Kill runs of a scenario at evenly spread instants, resume them, and compare the tables.

    Args:
        again: probability that a resumed run is killed too.
    """
    options = ["--snapshot-rounds", str(snapshot_rounds)]
    tally, draw = KilledRuns(scenario), random.Random(seed + 1)
    with tempfile.TemporaryDirectory() as scratch:
        undisturbed, run = Path(scratch) / "undisturbed", Path(scratch) / "run"
        command = ["run", str(scenario), "--device", "cpu", *options, "--out"]
        process = Command([*command, str(undisturbed)])
        has_begun(undisturbed, process)
        began = time.monotonic()
        while process.poll() is None and not is_complete(undisturbed):
            time.sleep(LOOK_S)
        duration_s = time.monotonic() - began
        finish(process)
        for instant_s in instants(duration_s, kills, seed):
            shutil.rmtree(run, ignore_errors=True)
            process = Command([*command, str(run)])
            has_begun(run, process)
            killed = killed_after(process, instant_s)
            tally.kills += killed
            while killed and not is_complete(run):
                if not resumable(run):
                    shutil.rmtree(run)
                    finish(Command([*command, str(run)]))
                    break
                tally.resumes += 1
                process = Command(["resume", str(run), *options])
                if draw.random() >= again:
                    finish(process)
                    break
                has_begun(run, process)
                killed = killed_after(process, duration_s * draw.random())
                tally.kills += killed
            wrong = differences(run, undisturbed)
            tally.runs += 1
            tally.identical += not wrong
            tally.differences = tally.differences or wrong
    return tally


def is_complete(run: Path) -> bool:
    """Return whether a run has completed, so that a kill came too late."""
    with suppress(EdgeflError):
        return bool(about_of(run)["status"] == "completed")
    return False


def resumable(run: Path) -> bool:
    """Return whether a run can be resumed, that is, has written its copy of the scenario."""
    return (run / "scenario.yaml").exists() and (run / "scenario.yaml").stat().st_size > 0


def main(
    scenarios: Annotated[
        list[Path] | None, typer.Argument(help="Default: golden runs and quickstart.")
    ] = None,
    kills: Annotated[int, typer.Option(min=1, help="Runs of each scenario that are killed.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the instants.")] = 0,
    snapshot_rounds: Annotated[int, typer.Option(min=1, help="Rounds between snapshots.")] = 2,
    again: Annotated[float, typer.Option(min=0, max=0.9, help="Share of resumed runs killed too.")] = 0.3,
) -> None:
    """Kill runs at random instants, resume them, and compare with undisturbed runs byte for byte."""
    table = Table("scenario", "identical", "kills", "resumes", "first differences")
    tallies = []
    for scenario in scenarios or defaults():
        tally = check(scenario, kills, seed=seed, snapshot_rounds=snapshot_rounds, again=again)
        tallies.append(tally)
        identical = f"{tally.identical} of {tally.runs}"
        files = ", ".join(tally.differences or [])
        name = scenario.parent.name if scenario.stem == "scenario" else scenario.stem
        table.add_row(name, identical, str(tally.kills), str(tally.resumes), files)
    Console(markup=False, emoji=False).print(table)  # without markup, as names of files may contain brackets
    if any(tally.identical < tally.runs for tally in tallies):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
