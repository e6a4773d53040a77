"""Test that on a full disk (a small mount) a run prints one error, loses nothing, and resumes once there is space."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "sessions.count=30", "sessions.rounds=5"
# mounts a disk at the second argument, in a namespace that other processes do not see
ON_A_SMALL_DISK = 'mount -t tmpfs -o size="$1" tmpfs "$2" && cd "$2" && shift 2 && "$@"'
INSIDE = """\
import subprocess, sys
from pathlib import Path
from edgefl.commands.cli import main

def tried(*arguments):
    try:
        main(arguments)
    except SystemExit as ended:
        return ended.code or 0
    return 0

scenario, whole, *sets = sys.argv[1:]
again = ["run", scenario, "--out", "r", "--snapshot-rounds", "5", *sets]
assert tried(*again) == 2
assert Path("r/rounds.csv").stat().st_size
Path("fill").write_bytes(b"")
try:
    with open("fill", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
except OSError:
    pass
assert tried("run", scenario, "--out", "second", *sets) == 2
assert tried("watch", "r", "--once") == 0
assert tried("report", "r") == 2
assert tried("compare", "r") == 2
subprocess.run(["mount", "-o", "remount,size=9m", "."], check=True)
assert tried("resume", "r") == 0
assert tried("run", scenario, "--out", "second", *sets) == 0
for one in ("r", "second"):
    for table in Path(whole).glob("*.csv"):
        assert (Path(one) / table.name).read_bytes() == table.read_bytes(), (one, table.name)
"""


def may_mount() -> bool:
    """Return whether this process may create its own mounts."""
    if not (shutil.which("unshare") and shutil.which("mount")):
        return False
    tried = subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return tried.returncode == 0


@pytest.mark.skipif(not may_mount(), reason="needs unshare and mount, and a kernel that lets users mount")
def test_a_full_disk_loses_nothing(digits: Path, tmp_path: Path) -> None:
    from edgefl import load_scenario, simulate

    simulate(load_scenario(digits, RUN), tmp_path / "whole", device="cpu")
    (tmp_path / "disk").mkdir()
    sets = [word for each in RUN for word in ("--set", each)]
    command = ["unshare", "-rm", "sh", "-ec", ON_A_SMALL_DISK, "sh", "200k", str(tmp_path / "disk")]
    program = [sys.executable, "-c", INSIDE, str(digits), str(tmp_path / "whole"), *sets]
    ended = subprocess.run([*command, *program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [line for line in ended.stderr.splitlines() if line.startswith("edgefl: error: ")]
    assert len(lines) == 4
    assert all("No space left on device" in line for line in lines)
    assert "Traceback" not in ended.stderr
