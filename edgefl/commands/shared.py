"""What several commands share: their options, and the console."""

from collections.abc import Callable
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
