"""Test that a command has its report function's parameters as options, and that listing commands needs no pandas."""

import subprocess
import sys
from inspect import signature

import pytest
import typer
from typer.testing import CliRunner

from edgefl.analysis import compare
from edgefl.analysis.commands.line import app
from edgefl.analysis.measures.drift import Reading

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
COMMON = {"runs", "partial", "names", "out", "json", "quiet"}


def options_of(name: str) -> dict[str, list[str]]:
    """Return the options of a command: name in Python -> name on the command line."""
    return {option.name: option.opts for option in COMMANDS[name].params}


def test_options_are_the_parameters_of_the_function_and_of_its_values() -> None:
    own = {*signature(compare).parameters} - {"layout"} | {"columns", "transposed", "interval", "explain"}
    assert {*options_of("compare")} == own | COMMON
    assert {*Reading.__dataclass_fields__} <= {*options_of("drift")}
    assert options_of("drift")["first"] == ["--from"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is(name: str) -> None:
    assert all(option.help for option in COMMANDS[name].params)
    assert {"runs", "out"} <= {*options_of(name)}


@pytest.mark.parametrize("second", [["--target", "0.8"], ["--target=0.8"]])
def test_two_values_of_an_option_that_takes_one_are_refused(second: list[str]) -> None:
    result = CliRunner().invoke(app, ["sweep", "runs", "--target", "0.7", *second])
    assert result.exit_code == 2
    assert "takes one value, not 0.7 and 0.8" in " ".join(result.output.replace("│", " ").split())
    assert (
        "takes one value"
        not in CliRunner().invoke(app, ["compare", "runs", "--target", "0.7", *second]).output
    )


def test_the_list_of_commands_needs_no_pandas() -> None:
    code = (
        "import sys; from edgefl.analysis.commands.line import main; main(['--help']);"
        " sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
