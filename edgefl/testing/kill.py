"""Kill runs at random instants, resume them, and compare every table with an undisturbed run, byte for byte.

python -m edgefl.testing.kill --kills 20
python -m edgefl.testing.kill my.yaml --kills 100 --snapshot-rounds 1 --seed 3
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

EDGEFL = [sys.executable, "-c", "from edgefl.cli import main; main()"]
ROOT = Path(__file__).parents[2]
# run.json alone says when and where a run was made
WALL_CLOCK = ("wall_s", "resumed", "process")


@dataclass
class Tally:
    """What became of the kills of one scenario."""

    scenario: Path
    kills: int = 0
    identical: int = 0
    unbegun: int = 0  # killed before there was a run directory to resume
    resumes: int = 0
    differences: list[str] | None = None


def defaults() -> list[Path]:
    """The golden scenarios and the quickstart of a checkout."""
    return [
        *sorted((ROOT / "tests" / "golden").glob("*/scenario.yaml")),
        ROOT / "scenarios" / "quickstart.yaml",
    ]


def instants(duration_s: float, kills: int, seed: int) -> list[float]:
    """Random times in a run, one in each of so many equal parts of it."""
    draw = random.Random(seed)
    return [duration_s * (part + draw.random()) / kills for part in range(kills)]


def contents(run: Path) -> dict[str, Any]:
    """All that a run directory says, file by file, but for the wall clock."""
    found: dict[str, Any] = {
        str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()
    }
    about = json.loads(found["run.json"])
    found["run.json"] = {key: value for key, value in about.items() if key not in WALL_CLOCK}
    return found


def differences(run: Path, undisturbed: Path) -> list[str]:
    """Files that are not the same in both."""
    here, there = contents(run), contents(undisturbed)
    return sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    """An edgefl command in a process of its own."""
    return subprocess.Popen([*EDGEFL, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command that has to succeed."""
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"edgefl ended with {process.returncode}: {errors.decode()}")


def killed_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a command then; whether it was still running."""
    try:
        process.communicate(timeout=seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return True


def check(scenario: Path, kills: int, *, seed: int, snapshot_rounds: int, again: float) -> Tally:
    """Kill a scenario's run so many times.

    Args:
        again: probability that the run that goes on is killed too.
    """
    options = ["--snapshot-rounds", str(snapshot_rounds)]
    tally, draw = Tally(scenario), random.Random(seed + 1)
    with tempfile.TemporaryDirectory() as scratch:
        undisturbed, run = Path(scratch) / "undisturbed", Path(scratch) / "run"
        command = ["run", str(scenario), "--device", "cpu", *options, "--out"]
        began = time.monotonic()
        finish(start([*command, str(undisturbed)]))
        duration_s = time.monotonic() - began
        for instant_s in instants(duration_s, kills, seed):
            shutil.rmtree(run, ignore_errors=True)
            killed = killed_after(start([*command, str(run)]), instant_s)
            tally.kills += 1
            tally.unbegun += not (run / "scenario.yaml").exists()
            while killed:
                if not (run / "scenario.yaml").exists():
                    shutil.rmtree(run, ignore_errors=True)
                    finish(start([*command, str(run)]))
                    break
                tally.resumes += 1
                process = start(["resume", str(run), *options])
                if draw.random() >= again:
                    finish(process)
                    break
                killed = killed_after(process, duration_s * draw.random())
            wrong = differences(run, undisturbed)
            tally.identical += not wrong
            tally.differences = tally.differences or wrong
    return tally


def main(
    scenarios: Annotated[
        list[Path] | None, typer.Argument(help="Default: golden runs and quickstart.")
    ] = None,
    kills: Annotated[int, typer.Option(min=1, help="Kills of each scenario.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the instants.")] = 0,
    snapshot_rounds: Annotated[int, typer.Option(min=1, help="Rounds between snapshots.")] = 2,
    again: Annotated[float, typer.Option(min=0, max=0.9, help="Share of resumed runs killed too.")] = 0.3,
) -> None:
    """Kill runs at random instants, resume them, and compare with undisturbed runs byte for byte."""
    table = Table("scenario", "identical", "resumes", "killed before it began", "first differences")
    tallies = []
    for scenario in scenarios or defaults():
        tally = check(scenario, kills, seed=seed, snapshot_rounds=snapshot_rounds, again=again)
        tallies.append(tally)
        found = f"{tally.identical} of {tally.kills}"
        files = ", ".join(tally.differences or [])
        name = scenario.parent.name if scenario.stem == "scenario" else scenario.stem
        table.add_row(name, found, str(tally.resumes), str(tally.unbegun), files)
    Console().print(table)
    if any(tally.identical < tally.kills for tally in tallies):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
