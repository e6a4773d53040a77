"""Test the findings and the exit code of `edgefl doctor`."""

from importlib import metadata
from pathlib import Path

import pytest

from edgefl.commands import doctor
from tests.tools.called import code_of


def run(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code and the output."""
    return code_of("doctor"), capsys.readouterr().out


def test_a_machine_that_runs_these_tests_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    code, screen = run(capsys)
    assert code == 0, screen
    assert f"torch {metadata.version('torch')}" in screen
    assert "digits" in screen
    assert screen.count("\n") <= 24, "one screen"
    assert screen.rstrip().endswith("edgefl run quickstart")


def test_every_extra_of_a_user_is_looked_for() -> None:
    extras = metadata.metadata(doctor.DISTRIBUTION).get_all("Provides-Extra")
    assert set(doctor.OPTIONAL) == set(extras or ()) - {"dev", "docs", "test"}


def test_a_package_that_is_missing_is_a_fault_with_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = doctor._metadata_of
    monkeypatch.setattr(doctor, "_metadata_of", lambda name: None if name == "simpy" else there(name))
    code, screen = run(capsys)
    assert code == 1
    assert "simpy missing" in screen
    assert "packages: pip install 'simpy>=4.1'" in screen


def test_a_folder_that_cannot_be_written_is_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor.os, "access", lambda folder, mode: Path(folder) != tmp_path)
    code, screen = run(capsys)
    assert code == 1
    assert f"{tmp_path} cannot be written" in screen
    assert f"chmod u+w {tmp_path}" in screen


def test_data_that_are_looked_for_in_no_folder_are_no_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEFL_DATA", "/nowhere/at/all")
    code, screen = run(capsys)
    assert code == 0, screen
    assert "EDGEFL_DATA: create it, or unset EDGEFL_DATA" in screen


def test_a_file_in_place_of_the_home_folder_is_said_once_and_with_what_helps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.touch()
    for name in ("XDG_CACHE_HOME", "EDGEFL_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    code, screen = run(capsys)
    assert code == 0, "only downloads are affected"
    assert f"{home} is not a folder" in screen
    assert "cache: set XDG_CACHE_HOME to a folder that you own\n" in screen
    assert "downloaded into" not in screen
