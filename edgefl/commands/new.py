"""The command `edgefl new`: create a folder with a scenario and a study to start from."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def new(
    folder: Annotated[Path, typer.Argument(help="Folder to create; new or empty.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the scenario and study. Default: the folder's.")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Number of devices. Default: 12.")
    ] = None,
    parts: Annotated[
        bool | None,
        typer.Option(
            "--parts/--no-parts",
            help="Add my_algorithm.py, my_mobility.py and my_model.py to start from. Default: no.",
        ),
    ] = None,
) -> None:
    """Create a folder with a scenario, a study, a notebook, editor schemas and, optionally, Python components.

    In a terminal, the command asks for missing options.

    Examples:

        edgefl new first

        edgefl new first --devices 30 --parts
    """
    import re
    from shlex import quote
    from unicodedata import normalize

    from edgefl.commands import scaffold
    from edgefl.errors import EdgeflError
    from edgefl.run_directory.reading import refuse_run_directory

    refuse_run_directory(folder)
    ask = sys.stdin.isatty() and sys.stdout.isatty()
    plain = normalize("NFKD", folder.resolve().name).encode("ascii", "ignore").decode()  # ü becomes u
    default = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("._-") or "first"
    if name is None:
        name = typer.prompt("Name", default=default) if ask else default
    if devices is None:
        devices = typer.prompt("Number of devices", default=12, type=int) if ask else 12
    if parts is None:
        parts = typer.confirm("Add components of your own, in Python", default=False) if ask else False
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise EdgeflError(f"--name {name!r}: use a-z, A-Z, 0-9, . _ -, beginning with a letter or digit")
    for file in scaffold.write(folder, name=name, devices=devices, own_parts=parts):
        print(file)
    leave = " --allow-code" if parts else ""
    commands = f"edgefl validate scenario.yaml{leave}\n  edgefl run scenario.yaml{leave}"
    print(f"\ncontinue with:\n  cd {quote(str(folder))}\n  {commands}")
