"""Test that the scripts in docs/cluster.md are valid bash, with options that edgefl has."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import typer

from edgefl.commands.cli import app

TEXT = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"```bash\n(.*?)```", TEXT, flags=re.DOTALL)
COMMANDS = [
    (command, re.findall(r"(?<=\s)--[a-z-]+", rest))
    for script in SCRIPTS
    for command, rest in re.findall(r"edgefl (\w+)(.*)", script.replace("\\\n", " "))
]


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_a_script_is_bash(number: int, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    script = tmp_path / "script.sh"
    script.write_text(SCRIPTS[number])
    done = subprocess.run([bash, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_steps_of_a_job_have_the_cores_of_its_tasks() -> None:
    """From Slurm 22.05 on, srun reads SRUN_CPUS_PER_TASK, and no longer --cpus-per-task of the job (man srun)."""
    jobs = [script for script in SCRIPTS if "#SBATCH --cpus-per-task" in script]
    assert len(jobs) == 2
    for job in jobs:
        before, _, _ = job.partition("srun ")
        assert 'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"' in before


def test_there_are_scripts_and_commands() -> None:
    assert len(SCRIPTS) == 4
    assert {command for command, _ in COMMANDS} == {"study", "merge"}


@pytest.mark.parametrize(("command", "options"), COMMANDS)
def test_edgefl_has_the_options(command: str, options: list[str]) -> None:
    known = {name for each in typer.main.get_group(app).commands[command].params for name in each.opts}
    assert set(options) <= known
