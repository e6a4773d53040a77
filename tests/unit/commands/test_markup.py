"""Test that names, paths and values are printed literally, with brackets and colons not taken as markup."""

import os
import shlex
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from edgefl.engine.records import Round
from edgefl.run.progress import MOST_BARS, ProgressDisplay
from edgefl.scenario import scenario as scenarios
from tests.tools.called import code_of

UNTRAINED = """\
name: small
devices: {count: 2}
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 1000, flops_per_sample: 1.0e+3}
"""
# [red] is a style, [/x] closes one that was never opened, :car: is an emoji
NAMES = ["[red]a", "[/x]", "a [bold]b[/bold]", ":car:", "\\[x]", "[link=file:x]", "ü [x]"]

Edgefl = Callable[..., tuple[int, str, str]]


@pytest.fixture
def edgefl(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Edgefl:
    """Return a function that runs `edgefl` in this process and in tmp_path: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        return code_of(*arguments), *capfd.readouterr()

    return call


@pytest.mark.parametrize("name", NAMES)
def test_paths_are_printed_as_they_are(edgefl: Edgefl, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)
    file, out = f"{name}/w.yaml", f"{name}/out"
    (tmp_path / file).write_text(UNTRAINED)
    code, output, errors = edgefl("validate", file)
    assert (code, output.partition("\n")[0], errors) == (0, f"{file}: ok", "")
    code, output, errors = edgefl("run", file, "--out", out)
    assert (code, errors) == (0, "")
    assert output.endswith(f"\nnext: edgefl report {shlex.quote(out)}\n")
    assert (tmp_path / out / "rounds.csv").exists()


@pytest.mark.parametrize("name", NAMES)
def test_values_in_errors_are_printed_as_they_are(edgefl: Edgefl, tmp_path: Path, name: str) -> None:
    (tmp_path / "w.yaml").write_text(UNTRAINED.replace("small", f"'{name}'"))
    for command in ("validate", "run"):
        code, output, errors = edgefl(command, "w.yaml")
        assert (code, output) == (2, "")
        assert f"got {name!r}" in errors
    assert edgefl("validate", f"{name}.yaml")[2].startswith(f"edgefl: error: {name}.yaml: cannot be read")
    assert name in edgefl("list", name)[2]
    assert name in edgefl(name)[2]  # no such command


@pytest.mark.skipif(sys.platform != "linux", reason="on other systems file names are text")
def test_a_file_name_that_is_no_text(edgefl: Edgefl, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.yaml")
    (tmp_path / name).write_text(UNTRAINED)
    code, output, errors = edgefl("validate", name)
    assert (code, output.partition("\n")[0], errors) == (0, "\\udcff.yaml: ok", "")


@pytest.mark.parametrize("runs", [1, MOST_BARS + 1])
def test_the_progress_display_shows_names_as_they_are(tmp_path: Path, runs: int) -> None:
    (tmp_path / "w.yaml").write_text(UNTRAINED)
    scenario = scenarios.load(tmp_path / "w.yaml")
    labels = [f"{name} seed {number}" for name in NAMES for number in range(runs)]
    screen = StringIO()
    console = Console(file=screen, width=200, force_terminal=True)
    row = Round(1, 1, 1, "train", 0.0, 1.0, 1.0, 1.0, 2, 2, *[0] * 7, accuracy=None, loss=None)
    with ProgressDisplay(console, dict.fromkeys(labels, scenario)) as progress:
        for label in labels:
            progress.update(label, row)
            progress.update(label, lambda: ["1 s simulated"])
    if runs == 1:
        assert all(label in screen.getvalue() for label in labels)
    assert "all runs" in screen.getvalue() or runs == 1
