"""`edgefl watch`."""

import time
from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.shared import console


def watch(
    run: Annotated[Path, typer.Argument(help="Run directory, or the folder of a study, under way or ended.")],
    once: Annotated[bool, typer.Option("--once", help="Say how it stands now, and end.")] = False,
    every_s: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Watch a run or study under way: progress, time left, last accuracy, joules, failures. It ends with the runs.

    It only reads; runs on another machine can be watched where their folder is shared.

    Examples:

        edgefl watch runs/quickstart

        edgefl watch runs/quickstart --once
    """
    from rich.live import Live

    from edgefl.commands import watching

    of = watching.planned(run)
    known = {each.path: each for each in watching.find(run)}
    if list(known) == [run]:  # without others to go on with
        known[run].look()
    if once or not console.is_terminal:
        console.print(watching.table((each.standing() for each in known.values()), of, console.width))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            known |= {each.path: each for each in watching.find(run) if each.path not in known}
            standings = [each.standing() for each in known.values()]
            live.update(watching.table(standings, of, console.width), refresh=True)
            if all(each.over for each in standings) and len(standings) >= (of or 0):
                return
            time.sleep(every_s)
