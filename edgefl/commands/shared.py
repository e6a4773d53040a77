"""Options and the console shared by several commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from edgefl.analysis.page.words import Words
from edgefl.config import outside
from edgefl.errors import EdgeflError, clipped

console = Words()


def _found(kind: Literal["scenario", "study"]) -> Callable[[Path], Path]:
    """Return a callback that finds a file by its path, or a shipped file by its name."""

    def path(file: Path) -> Path:
        from edgefl.config import shipped

        return shipped.find(file, kind)

    return path


def _completed(kind: Literal["scenario", "study"]) -> Callable[[str], list[str]]:
    """Return a completer for names of shipped files; without a match the shell completes files itself."""

    def names(incomplete: str) -> list[str]:
        from edgefl.config import shipped

        return [name for name in shipped.names(kind) if name.startswith(incomplete)]

    return names


def _settings(incomplete: str) -> list[str]:
    """Complete KEY=VALUE: first the keys, level by level, and then the choices of a key."""
    from edgefl.commands.completing import settable

    return list(settable(incomplete))


def _in_one_word(settings: list[str] | None) -> list[str] | None:
    """Refuse `--set KEY VALUE`, in which VALUE would be taken for an argument."""
    for text in settings or ():
        if "=" not in text:
            raise EdgeflError(
                f"--set {clipped(text)}: write --set KEY=VALUE, e.g. --set learning.local.lr=0.05"
            )
    return settings


ScenarioFile = Annotated[
    Path,
    typer.Argument(
        help="Scenario YAML, or the name of a shipped scenario.",
        callback=_found("scenario"),
        autocompletion=_completed("scenario"),
    ),
]
StudyFile = Annotated[
    Path,
    typer.Argument(
        help="Study YAML (base scenario, variants, seeds), or the name of a shipped study.",
        callback=_found("study"),
        autocompletion=_completed("study"),
    ),
]
Out = Annotated[Path | None, typer.Option(help="Directory to create; new or empty. Default: below runs/.")]
Override = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one dotted key; may be repeated.",
        callback=_in_one_word,
        autocompletion=_settings,
    ),
]
TorchDevice = Annotated[str, typer.Option(help="Where models are trained: auto, cpu, cuda, cuda:N or mps.")]
SnapshotRounds = Annotated[
    int | None, typer.Option(min=1, help="Rounds between snapshots of the models. Default: every 10 minutes.")
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Import components named module:Class, which runs their code. Also: EDGEFL_ALLOW_CODE=1.",
        callback=lambda given: outside.allow() if given else None,
    ),
]
