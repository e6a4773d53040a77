"""The README's commands work as printed (the two set-up commands aside)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from edgefl.scenario import Scenario

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SETUP = ("make ",)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def chains() -> list[list[str]]:
    """The commands, each on its own or behind the one that writes the directory that it reads."""
    found: list[list[str]] = []
    for line in "".join(blocks("sh")).splitlines():
        command = line.partition("#")[0].strip()
        if command.startswith(SETUP) or not command:
            continue
        written = [re.findall(r"--out (\S+)", " ".join(chain)) for chain in found]
        reads = [
            chain for chain, outs in zip(found, written, strict=True) if set(outs) & set(command.split())
        ]
        reads[0].append(command) if reads else found.append([command])
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a newcomer has checked out."""
    for name in ("scenarios", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("runs"))
    return tmp_path


def shell(command: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("chain", chains(), ids=" && ".join)
def test_command(chain: list[str], folder: Path) -> None:
    for command in chain:
        shell(command, folder)


def test_no_command_is_forgotten() -> None:
    commands = [line for line in "".join(blocks("sh")).splitlines() if line.strip()]
    assert len([command for command in commands if command.startswith(SETUP)]) == 2
    assert sum(map(len, chains())) == len(commands) - 2
    assert [len(chain) for chain in chains() if "analysis" in " ".join(chain)] == [2, 2], (
        "each behind its runs"
    )


@pytest.mark.slow
def test_python(folder: Path) -> None:
    for number, block in enumerate(blocks("python")):
        (folder / f"block_{number}.py").write_text(block)
        shell(f"python block_{number}.py", folder)


def test_the_scenario_shown_is_the_one_shipped() -> None:
    shown, _ = [yaml.safe_load(block) for block in blocks("yaml")]
    shipped = yaml.safe_load((ROOT / "scenarios" / "quickstart.yaml").read_text())

    def agrees(part: object, whole: object) -> bool:
        if isinstance(part, dict) and isinstance(whole, dict):
            return all(agrees(value, whole[key]) for key, value in part.items())
        return part == whole

    assert agrees(shown, shipped)


def test_the_real_places_shown_are_a_scenario() -> None:
    """With what every scenario needs; its maps are read when a run begins."""
    _, shown = [yaml.safe_load(block) for block in blocks("yaml")]
    further = {
        "name": "places",
        "radio": {"shadowing": "spatial"},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": 1, "flops_per_sample": 1},
    }
    scenario = Scenario.model_validate(shown | further)
    assert scenario.layout.cells == 9
    assert scenario.devices.mobility.calendar.period_h == 168


def test_files_and_links_named_exist() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link
    for name in re.findall(r"`([\w*]+\.yaml)`", README):
        assert name == "scenario.yaml" or list((ROOT / "scenarios").glob(name)), name
