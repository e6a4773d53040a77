"""The README's commands work as printed (the two set-up commands aside)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SETUP = ("make ",)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("newcomer")
    shutil.copytree(ROOT / "scenarios", path / "scenarios")
    return path


def shell(command: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_commands(folder: Path) -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    run = [command for command in commands if not command.startswith(SETUP)]
    assert len(run) >= 7
    assert len(commands) - len(run) == 2
    for command in run:
        shell(command, folder)


def test_python(folder: Path) -> None:
    for number, block in enumerate(blocks("python")):
        (folder / f"block_{number}.py").write_text(block)
        shell(f"python block_{number}.py", folder)


def test_the_scenario_shown_is_the_one_shipped() -> None:
    (shown,) = [yaml.safe_load(block) for block in blocks("yaml")]
    shipped = yaml.safe_load((ROOT / "scenarios" / "quickstart.yaml").read_text())

    def agrees(part: object, whole: object) -> bool:
        if isinstance(part, dict) and isinstance(whole, dict):
            return all(agrees(value, whole[key]) for key, value in part.items())
        return part == whole

    assert agrees(shown, shipped)


def test_files_and_links_named_exist() -> None:
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link
    for name in re.findall(r"`([\w*]+\.yaml)`", README):
        assert name == "scenario.yaml" or list((ROOT / "scenarios").glob(name)), name
