"""`edgefl examples`."""

from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.folding import tell


def examples(
    copy: Annotated[bool, typer.Option("--copy", help="Copy them into the folder given.")] = False,
    folder: Annotated[Path, typer.Argument(help="Where --copy writes.")] = Path("examples"),
) -> None:
    """List the examples that come with edgefl, a part of your own of every kind and two notebooks, or copy them out.

    Examples:

        edgefl examples

        edgefl examples --copy
    """
    from edgefl.config import shipped

    if copy:
        print(f"{len(shipped.copy(folder, shipped.EXAMPLES))} files in {folder}")
        return
    tell(f"{file.name:<20}  {_about(file)}" for file in sorted(shipped.EXAMPLES.glob("*.py")))
    tell(f"notebooks/{file.name}" for file in sorted(shipped.EXAMPLES.glob("notebooks/*.ipynb")))


def _about(file: Path) -> str:
    """Return the first line of a module's docstring."""
    return file.read_text(encoding="utf-8").partition("\n")[0].strip('"')
