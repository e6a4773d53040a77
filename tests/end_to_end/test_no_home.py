"""Test that a run starts and has the same results for a user without a home folder, a name or a compiler."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import edgefl
from edgefl.learning.user_cache import user_cache, without_tilde
from tests.refusals import refused_at

ROOT = Path(edgefl.__file__).parents[1]
Done = subprocess.CompletedProcess[str]
NOBODY = 12345  # a user id without a passwd entry, as with `docker run -u`
SMALL = ["--set", "sessions.count=2", "--set", "sessions.rounds=3", "--set", "devices.count=12"]


# a user who owns all files, but has no home
STRANGER = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")


def run_edgefl(folder: Path, *arguments: str, user: Sequence[str] = (), **environment: str) -> Done:
    """Run edgefl with only these variables in the environment."""
    return subprocess.run(
        [*user, sys.executable, "-c", "from edgefl.commands.cli import main; main()", *arguments],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def may_be_a_stranger() -> bool:
    """Return whether this machine lets a process become another user in a namespace."""
    try:
        return subprocess.run([*STRANGER, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


stranger = pytest.mark.skipif(
    not may_be_a_stranger(), reason="unshare --user --map-user is missing or forbidden"
)


@stranger
def test_a_user_without_a_home_gets_the_same_bytes(tmp_path: Path) -> None:
    scenario = ROOT / "scenarios" / "quickstart.yaml"
    edgefl.simulate(edgefl.load_scenario(scenario, SMALL[1::2]), tmp_path / "mine", device="cpu")
    done = run_edgefl(
        tmp_path, "run", str(scenario), *SMALL, "--out", "theirs", user=STRANGER, CC="/bin/false"
    )
    assert done.returncode == 0, done.stderr
    for table in ("rounds.csv", "devices.csv", "ledger.csv"):
        mine, theirs = (tmp_path / run / table for run in ("mine", "theirs"))
        assert mine.read_bytes() == theirs.read_bytes(), table


@stranger
def test_what_needs_a_home_says_so_in_a_line(tmp_path: Path) -> None:
    """A scenario whose data set must be downloaded fails with an error, whereas `edgefl doctor` succeeds."""
    scenario = str(ROOT / "scenarios" / "quickstart.yaml")
    done = run_edgefl(tmp_path, "run", scenario, "--set", "learning.dataset=svhn", user=STRANGER)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "no home folder" in done.stderr
    done = run_edgefl(tmp_path, "doctor", user=STRANGER)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stdout
    assert "set XDG_CACHE_HOME to a folder that you own" in done.stdout


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nowhere(path: Path = Path()) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.setattr(Path, "expanduser", nowhere)
    assert user_cache() is None
    with refused_at("", "home folder"):
        without_tilde(Path("~/data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "edgefl"


def test_a_file_in_the_caches_place_is_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    scenario = edgefl.load_scenario(ROOT / "scenarios" / "quickstart.yaml", ["learning.dataset=svhn"])
    with refused_at("learning.dataset", tmp_path / "cache"):
        edgefl.simulate(scenario, tmp_path / "out", device="cpu")
