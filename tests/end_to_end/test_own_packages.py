"""A user's own analysis.py or channel.py beside the script: it neither runs nor breaks edgefl."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

THEIRS = "print('theirs ran')\n"
FILES = {
    "modules": ("analysis.py", "channel.py"),
    "packages": ("analysis/__init__.py", "channel/__init__.py"),
}
SIMULATE = """
import edgefl
small = {
    "name": "small", "devices": {"count": 2}, "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1},
}
print(len(edgefl.simulate(edgefl.load_scenario(small), out="run", device="cpu").rounds))
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


@pytest.fixture(params=FILES.values(), ids=FILES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for name in request.param:
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(THEIRS)
    return tmp_path


def test_a_script_beside_such_files(folder: Path) -> None:
    (folder / "script.py").write_text(SIMULATE)
    done = answer(folder / "script.py", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_the_command_in_a_folder_with_such_files(folder: Path) -> None:
    """The first entry of PYTHONPATH hides all that is installed."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    for arguments in (("list", "warm_starts"), ("compare", "--help")):
        program = f"import sys; from edgefl.commands.cli import main; main({list(arguments)})"
        done = answer("-c", program, cwd=folder, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr
        assert "theirs ran" not in done.stdout
        assert not done.stderr


def test_such_a_file_that_is_imported_first_is_named(tmp_path: Path) -> None:
    (tmp_path / "channel.py").write_text("")
    (tmp_path / "script.py").write_text(f"import channel{SIMULATE}")
    done = answer(tmp_path / "script.py", cwd=tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"EdgeflError: {tmp_path}/channel.py was imported before edgefl's package 'channel'" in last
    assert "rename it, or import edgefl first" in last


def test_ones_own_analysis_and_a_run(tmp_path: Path) -> None:
    """What only simulates needs nothing of the package analysis."""
    (tmp_path / "analysis.py").write_text("MINE = 1\n")
    text = SIMULATE.replace("print(len(", "out = (").replace(".rounds))", ")")
    (tmp_path / "script.py").write_text(f"import analysis{text}print(analysis.MINE)\n")
    done = answer(tmp_path / "script.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    (tmp_path / "script.py").write_text("import analysis\nimport edgefl\nedgefl.compare('run')\n")
    done = answer(tmp_path / "script.py", cwd=tmp_path)
    assert f"EdgeflError: {tmp_path}/analysis.py was imported before" in done.stderr.splitlines()[-1]
