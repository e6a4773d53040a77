"""The `edgefl` command line. Invalid input ends a command with one clear message and exit code 2."""

import errno
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, TextIO

import typer
from typer.main import get_command

from edgefl.analysis.commands.line import app as reading
from edgefl.analysis.commands.line import keep_matplotlib_quiet
from edgefl.analysis.commands.report_command import OneValueCommand
from edgefl.analysis.page.words import complain
from edgefl.commands.describe import describe, list_, schema
from edgefl.commands.doctor import doctor
from edgefl.commands.hints import Hinting, errors
from edgefl.commands.new import new
from edgefl.commands.run import record, resume, run, watch
from edgefl.commands.scenarios import examples, scenarios
from edgefl.commands.study import merge, study
from edgefl.commands.validate import preview, validate
from edgefl.config import outside
from edgefl.errors import LONGEST_PATH, EdgeflError, clipped
from edgefl.learning.user_cache import without_tilde
from edgefl.run.garbage import seldom_at_start
from edgefl.version import __version__

OPTION = re.compile(r"--[a-z-]+=~")

app = typer.Typer(
    name="edgefl",
    cls=Hinting,
    help="Wireless edge network co-simulator for federated learning.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    suggest_commands=not hasattr(errors, "NoSuchCommand"),  # newer versions of click suggest
    pretty_exceptions_enable=False,  # show bugs as Python's own traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)
# the panels of `edgefl --help`, and the commands in each panel, in order
PANELS = {
    "Start": "new scenarios examples list describe schema doctor",
    "Run": "validate run resume study",
    "Look": "preview watch report",
    "Analyse": "compare sweep settings choose costs network day fairness drift theory",
    "Share": "record merge export papers",
}
for _own in (
    *(new, scenarios, examples, list_, describe, schema, doctor, validate, run, resume, study, preview),
    *(watch, record, merge),
):
    app.command(_own.__name__.rstrip("_"), cls=OneValueCommand)(_own)
_COMMANDS = {
    one.name or one.callback.__name__: one
    for one in (*app.registered_commands, *reading.registered_commands)
    if one.callback is not None
}
for _panel, _names in PANELS.items():
    for _name in _names.split():
        _COMMANDS[_name].rich_help_panel = _panel
app.registered_commands = [_COMMANDS[_name] for _names in PANELS.values() for _name in _names.split()]
_command = cache(lambda: get_command(app))  # takes 20 ms, as it inspects all signatures


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `edgefl` command, by default with the arguments of this process."""
    if sys.stdout is None:  # standard output was closed before the start
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        # file names may contain characters that the output cannot encode
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            _require_folder()
            keep_matplotlib_quiet()
            given = sys.argv[1:] if arguments is None else arguments
            with seldom_at_start():
                _command()([_without_tilde(each) for each in given or ["--help"]], prog_name="edgefl")
        finally:
            sys.stdout.flush()  # report a failed write here, not only when Python exits
    except EdgeflError as error:
        complain(f"edgefl: error: {error}")
        sys.exit(2)
    except Exception as error:
        if isinstance(error, OSError) and _lost(sys.stdout):
            complain(f"edgefl: error: standard output cannot be written ({error.strerror})")
            sys.exit(2)
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            complain(
                f"edgefl: error: {clipped(str(error.filename), LONGEST_PATH)}: {error.strerror}; check the path"
            )
            sys.exit(2)
        where = outside.blame(error)
        if where is None or os.environ.get("EDGEFL_TRACEBACK"):
            raise
        complain(f"edgefl: error: {where}\nEDGEFL_TRACEBACK=1 shows the traceback")
        sys.exit(2)


def _without_tilde(argument: str) -> str:
    """Replace a tilde in an argument by the home folder, including after `--out=`, where shells do not expand it."""
    option, sign, path = argument.partition("=") if OPTION.match(argument) else ("", "", argument)
    if path != "~" and not path.startswith("~/"):
        return argument
    return f"{option}{sign}{without_tilde(Path(path))}"


def _require_folder() -> None:
    """Refuse to work in a deleted folder, since libraries that look up the current folder would end the process."""
    try:
        os.getcwd()
    except OSError as error:
        raise EdgeflError(
            f"the current folder cannot be found ({error.strerror}): it was deleted or moved; cd to an existing one"
        ) from error


def _lost(stream: TextIO) -> bool:
    """Return whether writing to a stream fails, as on a full disk; if so, discard the stream's remaining output."""
    try:
        print(file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return True
    return False


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"edgefl {__version__}")
        raise typer.Exit
