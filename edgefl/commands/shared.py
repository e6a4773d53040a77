"""Options and the console shared by several commands."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from edgefl.analysis.page.words import Words
from edgefl.config import outside
from edgefl.errors import EdgeflError

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


def _checked(settings: list[str] | None) -> list[str] | None:
    """Refuse `--set KEY VALUE`, in which VALUE would be taken for an argument, and two values of one key."""
    refuse_two_values(settings or ())
    return settings


def refuse_two_values(settings: Sequence[str], seed: int | None = None) -> None:
    """Refuse values of a command line that a later value of the same key, or of its section, would replace.

    Args:
        settings: KEY=VALUE texts in their order. seed: the value of --seed, which is read last.
    """
    from edgefl.config.yaml_source import assignment

    given = [*map(assignment, settings), *([] if seed is None else [(f"--seed {seed}", "seed", seed)])]
    earlier: dict[tuple[str, ...], tuple[str, Any]] = {}
    for origin, key, value in given:
        place = tuple(key.split("."))
        for other, (before, replaced) in earlier.items():
            if other[: len(place)] == place and _inside(value, other[len(place) :]) != replaced:
                section = "; set a section before its keys" if other != place else ""
                raise EdgeflError(f"{origin} would replace {before}: leave one of them out{section}")
        earlier[place] = origin, value


def _inside(value: Any, place: Sequence[str]) -> Any:
    """Return the value at a place inside a section's value; None if the section does not have it."""
    for part in place:
        value = value.get(part) if isinstance(value, dict) else None
    return value


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
        callback=_checked,
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
