"""Test that edgefl installs one top-level name, leaving `channel` to users, and loads no module under two names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_floors import ROOT

THEIRS = "MINE = 'theirs'\n"
FILES = ("analysis/__init__.py", "channel.py")  # a user's package and module with names of edgefl's folders
USED = """
import analysis
import channel
import edgefl
small = {
    "name": "small", "devices": {"count": 2}, "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1},
}
run = edgefl.simulate(edgefl.load_scenario(small), out="run", device="cpu")
print(len(run.rounds), len(edgefl.compare("run").table), channel.MINE, analysis.MINE)
"""
WORKED = "1 1 theirs theirs\n"
COMPONENT = """
import analysis
import channel
from edgefl.channel.path_loss.free_space import FreeSpace

class Mine(FreeSpace):
    name = channel.MINE and analysis.MINE
"""
SCENARIO = """
name: own
devices: {count: 2}
radio: {path_loss: "mine:Mine"}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""


def answer(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(THEIRS)
    return tmp_path


def test_a_script_beside_such_files(folder: Path) -> None:
    (folder / "script.py").write_text(USED)
    done = answer(folder / "script.py", cwd=folder)
    assert (done.returncode, done.stdout) == (0, WORKED), done.stderr


def test_a_notebook_beside_such_files(folder: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(USED)])
    nbclient.NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}).execute()
    (cell,) = notebook.cells
    assert "".join(each["text"] for each in cell.outputs if each.get("name") == "stdout") == WORKED


def test_an_own_component_beside_such_files(folder: Path) -> None:
    (folder / "mine.py").write_text(COMPONENT)
    (folder / "own.yaml").write_text(SCENARIO)
    program = (
        "from edgefl.commands.cli import main; main(['run', 'own.yaml', '--allow-code', '--out', 'run'])"
    )
    done = answer("-c", program, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "run" / "rounds.csv").is_file()


def test_no_module_has_two_names() -> None:
    """No module has two names, even in a checkout, where the folders are importable directly and through links."""
    program = """
import sys
from tests.tools.isolated import warm
warm()
files = {}
for name, module in list(sys.modules.items()):
    file = os.path.realpath(getattr(module, "__file__", None) or "")
    if file.startswith(os.getcwd() + os.sep) and "site-packages" not in file:
        files.setdefault(file, set()).add(name)
twice = {file: names for file, names in files.items() if len(names) > 1}
ours = [name for name in sys.modules if name.partition(".")[0] == "edgefl"]
print(twice, len(ours) > 550, {"channel", "analysis", "scenarios"} & set(sys.modules))
"""
    done = answer("-c", f"import os{program}", cwd=ROOT)
    assert done.stdout.splitlines()[-1:] == ["{} True set()"], done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["channel", "analysis", "scenarios", "examples"])
def test_the_folders_are_parts_of_edgefl(folder: str) -> None:
    """Each folder is a link in edgefl/, so that a checkout has the same module names as an installation."""
    link = ROOT / "edgefl" / folder
    assert link.is_symlink() or "site-packages" in str(link)
    assert os.readlink(link) == f"../{folder}"
