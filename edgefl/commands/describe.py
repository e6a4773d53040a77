"""The commands `edgefl list`, `edgefl describe` and `edgefl schema`, which explain the content of scenarios."""

from pathlib import Path
from typing import Annotated

import typer

from edgefl.analysis.runs.choices import Json, Quiet
from edgefl.commands.folding import tell
from edgefl.errors import EdgeflError


def _kinds(incomplete: str) -> list[str]:
    from edgefl.config.registry import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


def _described(incomplete: str) -> list[str]:
    from edgefl.commands.completing import describable

    return [name for name in describable(incomplete) if name.startswith(incomplete)]


def list_(
    kind: Annotated[
        str | None, typer.Argument(help="Kind to list. Default: list the kinds.", autocompletion=_kinds)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the components of a kind, one line each.

    Examples:

        edgefl list

        edgefl list algorithms
    """
    from edgefl.commands.descriptions import listed

    lines = listed(kind)
    if json:
        from edgefl.analysis.page.machine import document

        pairs = (line.partition("  ") for line in lines)
        print(document("list", table=[{"name": name, "meaning": text.strip()} for name, _, text in pairs]))
    elif quiet:
        print(*(line.partition(" ")[0] for line in lines), sep="\n")
    else:
        tell(lines)


def describe(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="e.g. algorithms/fedprox, radio, radio.bandwidth_hz, energy_j, rounds.csv, study, quickstart",
            autocompletion=_described,
        ),
    ],
    scenario: Annotated[
        Path | None, typer.Argument(help="With layout: list the cells of this scenario.")
    ] = None,
) -> None:
    """Describe a component, a section, a key, or a column of a run's tables: meaning, unit, range, default, source.

    Examples:

        edgefl describe algorithms/fedprox

        edgefl describe radio

        edgefl describe learning.algorithm

        edgefl describe layout scenarios/handover_hexagonal.yaml

        edgefl describe papers
    """
    from edgefl.commands.descriptions import describe as text

    try:
        tell([text(what, scenario)])
    except EdgeflError:
        if context.parent is None or what not in getattr(context.parent.command, "commands", ()):
            raise
        raise EdgeflError(f"'{what}' is a command: see edgefl {what} --help") from None


def schema(
    of: Annotated[str, typer.Argument(metavar="[scenario|study]", help="The kind of file.")] = "scenario",
) -> None:
    """Print the JSON Schema of scenario or study files, which lets editors complete and check keys as you type.

    Shipped files name their schema in their first lines. For other files, write the schema beside them and begin
    them with `# yaml-language-server: $schema=scenario.schema.json` (VS Code, Neovim) or
    `# $schema: scenario.schema.json` (JetBrains), as `edgefl new` does.

    Examples:

        edgefl schema > scenario.schema.json

        edgefl schema study > study.schema.json
    """
    from json import dumps

    from edgefl.studies.schema import schema as made

    print(dumps(made(of), indent=1, ensure_ascii=False))
