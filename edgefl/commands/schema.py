"""`edgefl schema`."""

from typing import Annotated

import typer


def schema(
    of: Annotated[str, typer.Argument(metavar="[scenario|study]", help="Which kind of file.")] = "scenario",
) -> None:
    """Print the JSON Schema of scenario or study files, with which editors complete and check while one types.

    Shipped files name theirs in their first lines. For files elsewhere, write the schema beside them and begin with
    `# yaml-language-server: $schema=scenario.schema.json` (VS Code, Neovim) or `# $schema: scenario.schema.json`
    (JetBrains); `edgefl new` does.

    Examples:

        edgefl schema > scenario.schema.json

        edgefl schema study > study.schema.json
    """
    from json import dumps

    from edgefl.studies.schema import schema as made

    print(dumps(made(of), indent=1, ensure_ascii=False))
