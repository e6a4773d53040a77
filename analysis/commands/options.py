"""What the commands that read run directories have in common: how they fail, and load runs; options of several."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from edgefl.analysis.page.formatting import placed

if TYPE_CHECKING:
    from edgefl.analysis.runs.load import Runs


class ReadingCommand(TyperCommand):
    """A command that says in one line on stderr what is wrong with its runs, and takes `--names A B`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_each_named(args)))

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # runs left out are among the notes
                return super().invoke(ctx)
        except ValueError as error:
            program = ctx.find_root().command.name
            about = f"{f'{program}: ' if program else ''}error: {placed(error, ctx.params.get('runs') or ())}"
            print(about, file=sys.stderr)
            raise typer.Exit(2) from error


def _each_named(arguments: Sequence[str]) -> Iterator[str]:
    """Write `--names A B` as `--names A --names B`, since an option of click has as many values as it always has."""
    naming = False
    for number, argument in enumerate(arguments):
        naming = argument == "--names" or (naming and not argument.startswith("-"))
        if naming and argument != "--names" and arguments[number - 1] != "--names":
            yield "--names"
        yield argument


def load(
    folders: list[Path],
    names: list[str] | None,
    partial: bool,
    every_setting: bool = False,
) -> "Runs":
    """Load the runs that a command was given."""
    from edgefl.analysis.runs.load import load_runs

    return load_runs(folders, names=names or (), partial=partial, every_setting=every_setting)


Folder = Annotated[Path, typer.Argument(metavar="RUNS_DIR", help="Folder of a study or of a run.")]
Folders = Annotated[list[Path], typer.Argument(metavar="RUNS_DIR...", help="Folders of studies, or of runs.")]
Partial = Annotated[
    bool, typer.Option("--partial", help="Also what there is of runs under way or cut short.")
]
Names = Annotated[list[str] | None, typer.Option(metavar="NAME...", help="One for each folder, in order.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Where to write the files. Default: RUNS_DIR; of several `comparison` beside them."),
]
Reference = Annotated[
    str | None, typer.Option(metavar="NAME", help="Variant to measure others by. Default: the study's.")
]
Transpose = Annotated[bool, typer.Option("--transpose", help="In files, a column per variant, or value.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Also how the numbers are defined, and all further tables.")
]
Overlap = Annotated[
    float,
    typer.Option(help="Devices in both of two sessions, over those in either: from here on one population."),
]
TARGET = (
    "Accuracy to reach: 0.8, or a share of the best one: 95% (of the reference's, the default), '95% of NAME',"
    " '95% of best'"
)


def reporting(name: str, about: str) -> Callable[..., None]:
    """Make the command that prints a report on all runs, in every setting of a grid."""

    def command(runs: Folders, partial: Partial = False, names: Names = None, out: Out = None) -> None:
        report = getattr(import_module(f"edgefl.analysis.reports.{name}"), f"report_{name}")
        report(load(runs, names, partial, every_setting=True), out=out).print()

    command.__name__, command.__doc__ = name, about
    return command
