"""The commands `edgefl scenarios` and `edgefl examples`: list or copy the shipped files."""

import re
from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.folding import tell
from edgefl.errors import EdgeflError

SENTENCE_ENDS = re.compile(r"(?<!et al)(?<!Fig)\. ")


def scenarios(
    copy: Annotated[
        bool, typer.Option("--copy", help="Copy the scenarios, with studies and traces, to a folder.")
    ] = False,
    folder: Annotated[Path | None, typer.Argument(help="Folder to copy to. Default: scenarios.")] = None,
) -> None:
    """List the shipped scenarios and studies, or copy them.

    `edgefl run NAME` and `edgefl study NAME` find the shipped files by name from any folder.

    Examples:

        edgefl scenarios

        edgefl scenarios --copy
    """
    from edgefl.config import shipped

    if _copied("scenarios", shipped.FOLDER, folder, copy=copy):
        return
    for kind in ("scenario", "study"):
        command = "run" if kind == "scenario" else "study"
        print(f"edgefl {command} NAME:")
        tell(f"  {name:<36}  {_about(file)}" for name, file in shipped.names(kind).items())


def examples(
    copy: Annotated[bool, typer.Option("--copy", help="Copy the examples to a folder.")] = False,
    folder: Annotated[Path | None, typer.Argument(help="Folder to copy to. Default: examples.")] = None,
) -> None:
    """List the shipped examples, or copy them: a component of every kind, notebooks, and files of a small town.

    Examples:

        edgefl examples

        edgefl examples --copy
    """
    from edgefl.config import shipped

    if _copied("examples", shipped.EXAMPLES, folder, copy=copy):
        return
    tell(f"{file.name:<20}  {_docstring(file)}" for file in sorted(shipped.EXAMPLES.glob("*.py")))
    for pattern in ("notebooks/*.ipynb", "riverside/*"):
        for file in sorted(shipped.EXAMPLES.glob(pattern)):
            print(file.relative_to(shipped.EXAMPLES))


def _copied(what: str, source: Path, folder: Path | None, *, copy: bool) -> bool:
    """If asked to, copy shipped files to a folder and print their number; return whether files were copied.

    Raises:
        EdgeflError: a folder is given, but nothing is to be copied.
    """
    from edgefl.config import shipped

    if copy:
        into = folder or Path(what)
        print(f"{len(shipped.copy(into, source))} files in {into}")
    elif folder is not None:
        raise EdgeflError(
            f"'{folder}': a folder can only be given with --copy; `edgefl {what}` alone lists all {what}, and"
            f" `edgefl {what} --copy` copies them"
        )
    return copy


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
