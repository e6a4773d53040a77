"""The commands `edgefl scenarios` and `edgefl examples`: list or copy the shipped files."""

import re
from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.folding import tell

SENTENCE_ENDS = re.compile(r"(?<!et al)(?<!Fig)\. ")


def scenarios(
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy the scenarios, with studies and traces, to a folder.")
    ] = False,
    folder: Annotated[Path, typer.Argument(help="Folder to copy to.")] = Path("scenarios"),
) -> None:
    """List the shipped scenarios and studies, or copy them.

    `edgefl run NAME` and `edgefl study NAME` find them by name from any folder.

    Examples:

        edgefl scenarios

        edgefl scenarios --copy
    """
    from edgefl.config import shipped

    if copy:
        written = shipped.copy(folder)
        print(f"{len(written)} files in {folder}")
        return
    for kind in ("scenario", "study"):
        command = "run" if kind == "scenario" else "study"
        print(f"edgefl {command} NAME:")
        tell(f"  {name:<36}  {_about(file)}" for name, file in shipped.names(kind).items())


def examples(
    copy: Annotated[bool, typer.Option("--copy", help="Copy the examples to a folder.")] = False,
    folder: Annotated[Path, typer.Argument(help="Folder to copy to.")] = Path("examples"),
) -> None:
    """List the shipped examples, or copy them: a component of every kind, notebooks, and files of a small town.

    Examples:

        edgefl examples

        edgefl examples --copy
    """
    from edgefl.config import shipped

    if copy:
        print(f"{len(shipped.copy(folder, shipped.EXAMPLES))} files in {folder}")
        return
    tell(f"{file.name:<20}  {_docstring(file)}" for file in sorted(shipped.EXAMPLES.glob("*.py")))
    for pattern in ("notebooks/*.ipynb", "riverside/*"):
        for file in sorted(shipped.EXAMPLES.glob(pattern)):
            print(file.relative_to(shipped.EXAMPLES))


def _docstring(file: Path) -> str:
    """Return the first line of a module's docstring."""
    return file.read_text(encoding="utf-8").partition("\n")[0].strip('"')


def _about(file: Path) -> str:
    """Return the first sentence of a file's first comment."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.strip() and not lines:
            continue
        if not line.startswith("#"):
            break
        if "schema:" not in line and "$schema=" not in line:  # for editors
            lines.append(line.lstrip("# "))
    return SENTENCE_ENDS.split(" ".join(lines), maxsplit=1)[0].rstrip(".")
