"""Kill a study at random instants, continue it, and compare every run with an undisturbed study, byte for byte.

python -m tests.tools.kill_study STUDY.yaml --kills 20
"""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from tests.tools.forked import Command
from tests.tools.kill import differences


@dataclass
class KilledStudies:
    """The numbers of a study's kills and of the compared runs.

    differences: files as `RUN/FILE` that differ from the undisturbed study.
    """

    kills: int = 0
    starts: int = 0
    runs: int = 0
    differences: list[str] = field(default_factory=list)


def check(
    study: Path, kills: int, *, seed: int, jobs: int = 2, alone: bool = True, group: bool = False
) -> KilledStudies:
    """Kill a study repeatedly, then let it end; start over if it ends before all kills.

    Args:
        alone: whether the undisturbed study is carried out without shared training.
        group: whether to kill the workers at the same moment, as if the machine failed, or only the study's process.
    """
    tally, draw = KilledStudies(), random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        undisturbed, out = Path(scratch) / "undisturbed", Path(scratch) / "out"
        began = time.monotonic()
        _end(_start(study, undisturbed, jobs, *(["--alone"] if alone else [])))
        duration_s = time.monotonic() - began
        while tally.kills < kills:
            process = _start(study, out, jobs)
            tally.starts += 1
            try:
                process.communicate(timeout=duration_s * draw.random())
            except subprocess.TimeoutExpired:
                if group:
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
                process.communicate()
                tally.kills += 1
                continue
            if process.returncode:
                raise RuntimeError(f"the study ended with {process.returncode}")
            _compare(out, undisturbed, tally)
            shutil.rmtree(out)
        _end(_start(study, out, jobs))
        _compare(out, undisturbed, tally)
    return tally


def _compare(out: Path, undisturbed: Path, tally: KilledStudies) -> None:
    for run in sorted(path.parent.relative_to(undisturbed) for path in undisturbed.rglob("run.json")):
        tally.runs += 1
        missing = not (out / run / "run.json").exists()
        wrong = ["is missing"] if missing else differences(out / run, undisturbed / run)
        tally.differences += [f"{run}/{file}" for file in wrong]
    leftovers = [*out.rglob("lent"), *out.rglob("snapshots"), *out.glob("claims")]
    tally.differences += [f"{path.relative_to(out)} is left behind" for path in leftovers]


def _start(study: Path, out: Path, jobs: int, *options: str) -> Command:
    command = ["study", str(study), "--out", str(out), "--jobs", str(jobs), "--device", "cpu"]
    return Command([*command, "--snapshot-rounds", "2", *options], new_session=True)


def _end(process: Command) -> None:
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the study ended with {process.returncode}: {errors.decode()}")


def main(
    study: Annotated[Path, typer.Argument(help="Study file.")],
    kills: Annotated[int, typer.Option(min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Of the instants.")] = 0,
    jobs: Annotated[int, typer.Option(min=1)] = 2,
    group: Annotated[bool, typer.Option("--group", help="Kill the workers too, at the same moment.")] = False,
) -> None:
    """Kill a study at random instants, continue it, and compare it with an undisturbed one."""
    tally = check(study, kills, seed=seed, jobs=jobs, group=group)
    print(f"{tally.kills} kills, {tally.starts + 1} starts, {tally.runs} runs compared")
    if tally.differences:
        print("different: " + ", ".join(tally.differences))
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
