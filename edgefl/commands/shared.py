"""What several commands share: their options, the console, how a run ends."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from edgefl.config import outside

# what is printed is text as it stands: a folder may be called [red] or :car:
console = Console(highlight=False, markup=False, emoji=False)


def _found(kind: Literal["scenario", "study"]) -> Callable[[Path], Path]:
    """Find a file, or what comes with edgefl under that name."""

    def path(file: Path) -> Path:
        from edgefl.config import shipped

        return shipped.find(file, kind)

    return path


def _completed(kind: Literal["scenario", "study"]) -> Callable[[str], list[str]]:
    """Complete names of what comes with edgefl; where none fits a shell completes files itself."""

    def names(incomplete: str) -> list[str]:
        from edgefl.config import shipped

        return [name for name in shipped.names(kind) if name.startswith(incomplete)]

    return names


ScenarioFile = Annotated[
    Path,
    typer.Argument(
        help="Scenario YAML, or the name of one that comes with edgefl.",
        callback=_found("scenario"),
        autocompletion=_completed("scenario"),
    ),
]
StudyFile = Annotated[
    Path,
    typer.Argument(
        help="Study YAML (base scenario, variants, seeds), or the name of one that comes with edgefl.",
        callback=_found("study"),
        autocompletion=_completed("study"),
    ),
]
Out = Annotated[Path | None, typer.Option(help="Directory to write; new or empty. Default: below runs/.")]
Override = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one dotted key; may be repeated."),
]
TorchDevice = Annotated[str, typer.Option(help="Where models are trained: auto, cpu or cuda.")]
SnapshotRounds = Annotated[
    int | None,
    typer.Option(min=1, help="Rounds between snapshots of the models. Default: every 10 minutes."),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Import the scenario's own parts (module:Class), that is, run their code. Also: EDGEFL_ALLOW_CODE=1.",
        callback=lambda given: outside.allow() if given else None,
    ),
]


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM end a run with one line that says how to go on; exit code 130 or 143."""
    from edgefl.run_directory.interruption import Interrupted

    try:
        yield
    except Interrupted as error:
        how = f"go on with: edgefl resume {error.path}" if error.path else "nothing has been written"
        print(f"edgefl: interrupted; {how}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


class Notes:
    """Print notes as they come, and keep them."""

    def __init__(self) -> None:
        self.printed: list[str] = []

    def __call__(self, note: str) -> None:
        self.printed.append(note)
        print(f"edgefl: note: {note}", file=sys.stderr)


def print_end(path: Path, printed: Sequence[str]) -> None:
    """Print a run's directory, and those of its notes that are not printed yet."""
    from rich.text import Text

    from edgefl.run_directory.reading import about_of

    console.print(Text(f"run directory: {path}"), soft_wrap=True)
    for note in (note for note in about_of(path).get("notes") or () if note not in printed):
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
