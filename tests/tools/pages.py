"""Read the code blocks of Markdown pages, and run a page's blocks from first to last.

A block's fence says how to treat it:

    ```sh                          commands, each run in the page's folder
    ```bash title="job.sh"         a script that cannot run here (it needs SLURM): only its syntax is checked
    ```yaml title="first.yaml"     a file to write there; without a title: keys of a scenario, which are validated
    ```python title="my_parts.py"  a file to write there; without a title: a program, which is run
    ```text                        output for comparison
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgefl.commands.cli import main
from edgefl.config.outside import ALLOW
from edgefl.scenario.scenario import Scenario

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LANGUAGES = ("sh", "bash", "yaml", "python", "text")
SETUP = ("make ", "pip ")  # commands that install packages, which are not run
NEEDS_A_SHELL = re.compile(r"[|<>;&$`#\\]")
# Overrides that shorten shipped scenarios, because these take about a minute. `make demo` and README's study run
# these scenarios in full, and test_scenarios.py tests each of them.
SMALLER = {
    "quickstart": ("learning.dataset=digits",),
    "riverside": ("duration_s=300",),
    "handover_hexagonal": ("learning.dataset=digits", "duration_s=60"),
    "drift_by_cell": (
        "learning.dataset=digits",
        "learning.partition.samples=20",
        "learning.drift.at=28",
        "learning.local.epochs=2",
        "duration_s=60",
    ),
}


@dataclass(frozen=True)
class Block:
    """A code block of a page; title: name of the file with this content, if any."""

    page: str
    line: int
    language: str
    title: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return a page's code blocks in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, text.count("\n", 0, found.start()) + 1, found[1], found[2], found[3])
        for found in FENCE.finditer(text)
    ]


def commands(block: Block) -> list[str]:
    """Return the commands of a block, one per line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    stripped = [line.partition(" # ")[0].strip() for line in lines]
    return [line for line in stripped if line and not line.startswith("#")]


def checkout(folder: Path) -> Path:
    """Copy scenarios and examples as in a fresh checkout, without runs."""
    for name in ("scenarios", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("runs"))
    return folder


def shell(command: str, folder: Path) -> None:
    """Run a command in a shell, with this Python's programs first on the PATH."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop(ALLOW, None)
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def follow(page: Path, folder: Path) -> None:
    """Run a page's blocks one after the other in a folder."""
    with there(folder):
        for block in blocks_of(page):
            try:
                _do(block, folder)
            except BaseException as error:
                error.add_note(f"in {block}:\n{block.text}")
                raise


def _do(block: Block, folder: Path) -> None:
    if block.title:
        (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.title).write_text(block.text)
    if block.language == "bash":
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
    elif block.language == "sh":
        for command in commands(block):
            run(command, folder)
    elif block.language == "python" and not block.title:
        file = folder / f"block_{block.line}.py"
        file.write_text(block.text)
        runpy.run_path(str(file), run_name="__main__")
    elif block.language == "yaml" and not block.title:
        scenario_of(yaml.safe_load(block.text))


def run(command: str, folder: Path) -> None:
    """Run a command; an edgefl command runs in this process, as a new process takes seconds to load PyTorch."""
    if command.startswith(SETUP):
        return
    if behind := re.fullmatch(r"cd (\w+) && (.*)", command):
        with there(folder / behind[1]):
            for further in behind[2].split(" && "):
                run(further, folder / behind[1])
        return
    if written := re.fullmatch(r"(edgefl .*) > (\S+)", command):
        with (folder / written[2]).open("w") as file, redirect_stdout(file):
            run(written[1], folder)
        return
    if not command.startswith("edgefl ") or NEEDS_A_SHELL.search(command):
        shell(command, folder)
        return
    os.environ.pop(ALLOW, None)  # pages contain --allow-code where it is needed
    words = [
        name for word in shlex.split(command)[1:] for name in (sorted(glob(word)) if "*" in word else [word])
    ]
    if words[0] == "run":
        words += [word for key in SMALLER.get(Path(words[1]).stem, ()) for word in ("--set", key)]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code, f"{command}: exit code {ended.value.code}"


def scenario_of(keys: dict[str, Any]) -> Scenario:
    """Return a scenario with these keys and those that every scenario requires."""
    further: dict[str, Any] = {
        "name": "some-keys",
        "devices": {"count": 10},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    }
    if "learning" not in keys:
        further["workload"] = {"payload_bits": 1, "flops_per_sample": 1}
    elif "model" not in keys["learning"]:
        keys = {**keys, "learning": {"dataset": "digits", "model": "logistic", **keys["learning"]}}
    if isinstance(keys.get("devices"), dict) and not {"count", "density_per_km2"} & set(keys["devices"]):
        keys = {**keys, "devices": {"count": 10, **keys["devices"]}}
    return Scenario.model_validate(further | keys)


@contextmanager
def there(folder: Path) -> Iterator[None]:
    """Change to a folder, and restore this process's state on exit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MPLBACKEND", "Agg")
        patch.delenv(ALLOW, raising=False)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        before = set(sys.modules)
        try:
            yield
        finally:
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[name]
