"""The commands `edgefl scenarios` and `edgefl examples`: list or copy the shipped files."""

import re
from itertools import takewhile
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from edgefl.commands.folding import tell
from edgefl.errors import EdgeflError

COMMANDS: dict[Literal["scenario", "study"], str] = {
    "scenario": "`edgefl preview NAME` draws it, `edgefl run NAME` runs it.",
    "study": "`edgefl study NAME --dry-run` lists its runs, `edgefl study NAME` runs them.",
}
SENTENCE_ENDS = re.compile(r"(?<!et al)(?<!Fig)\. ")
# file suffix -> pattern of the title in a file with this suffix; the title of a table is its header
TITLES = {
    ".py": re.compile(r'^"""(.+?)(?:"""|\n)'),
    ".ipynb": re.compile(r'"# (.+?)(?:\\n)?"'),
    ".geojson": re.compile(r'"description": "(.+?)"'),
    ".csv": re.compile(r"^(.+)"),
}


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
    """List the shipped examples, or copy them: a component of every kind, notebooks, and data files of a small town.

    Examples:

        edgefl examples

        edgefl examples --copy
    """
    from edgefl.config import shipped

    if _copied("examples", shipped.EXAMPLES, folder, copy=copy):
        return
    tell(
        f"{file.relative_to(shipped.EXAMPLES)!s:<20}  {_about(file)}"
        for file in shipped.files(shipped.EXAMPLES)
    )


def shipped_names() -> list[str]:
    """Return the names of all shipped scenarios and studies."""
    from edgefl.config import shipped

    return [name for kind in COMMANDS for name in shipped.names(kind)]


def shipped_as(name: str) -> list[str]:
    """Describe the shipped scenario and study with this name, with the commands that run them."""
    from edgefl.config import shipped

    known = ((kind, shipped.names(kind).get(name), commands) for kind, commands in COMMANDS.items())
    return [
        f"{name}, a shipped {kind}: {_about(file)}.\n\n{commands.replace('NAME', name)}\nFile: {file}"
        for kind, file, commands in known
        if file
    ]


def _copied(what: str, source: Path, folder: Path | None, *, copy: bool) -> bool:
    """If requested, copy shipped files to a folder and print their number; return whether files were copied.

    Raises:
        EdgeflError: a folder is given, but copying is not requested; or the folder is the name of a shipped file.
    """
    from edgefl.config import shipped
    from edgefl.config.registry import nearest
    from edgefl.run_directory.reading import refuse_run_directory

    if copy:
        named = [file for file in shipped.files(source) if folder and str(folder) in (file.name, file.stem)]
        if folder and named and not folder.is_dir():
            raise EdgeflError(
                f"'{folder}' is a shipped file, but --copy takes a folder, to which it copies all {what}: name"
                f" another folder, or copy only this file, `cp {quote(str(named[0]))} .`"
            )
        into = folder or Path(what)
        refuse_run_directory(into)
        print(f"{len(shipped.copy(into, source))} files in {into}")
    elif folder is not None:
        known = {name: file for file in shipped.files(source)[::-1] for name in (file.name, file.stem)}
        near = nearest(folder.name, list(known))
        raise EdgeflError(
            f"'{folder}': a folder can only be given with --copy; `edgefl {what}` alone lists all {what}, and"
            f" `edgefl {what} --copy` copies them{f'; did you mean the file {known[near]}?' if near else ''}"
        )
    return copy


def _about(file: Path) -> str:
    """Return the title that the file's pattern in `TITLES` finds, or the first sentence of the first comment."""
    text = file.read_text(encoding="utf-8")
    if file.suffix in TITLES:
        return "".join(TITLES[file.suffix].findall(text)[:1])
    comment = takewhile(lambda line: line.startswith("#"), text.strip().splitlines())
    lines = [line.lstrip("# ") for line in comment if "schema:" not in line and "$schema=" not in line]
    return SENTENCE_ENDS.split(" ".join(lines), maxsplit=1)[0].rstrip(".")
