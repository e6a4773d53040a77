"""`edgefl merge`."""

from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.shared import console


def merge(
    parts: Annotated[list[Path], typer.Argument(help="Directories of one study, computed apart.")],
    out: Annotated[Path, typer.Option(help="Directory for all of it; new, or of this study.")],
) -> None:
    """Merge directories of one study that were computed on different machines.

    Of a run that several of them hold, the one that is furthest is taken. What is still missing, `edgefl study` does
    in the new directory.

    Examples:

        edgefl merge node1/quickstart node2/quickstart --out runs/quickstart
    """
    from edgefl.studies.merging import merge as merged

    states = merged(parts, out)
    counted = ", ".join(f"{count} {state}" for state, count in states.items())
    console.print(f"{out}: {counted or 'no runs'}", soft_wrap=True)
