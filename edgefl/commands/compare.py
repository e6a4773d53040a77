"""`edgefl compare`, `sweep`, `settings`, `drift`, `network`, `costs`: the commands that read run directories.

Their options stand in `analysis.command_line`, which `python -m analysis` has too.
"""

from collections.abc import Callable
from typing import Any

import typer

# in the order in which help shows them; in words, since `edgefl --help` imports neither pandas nor matplotlib
READING = {
    "compare": "Compare variants, or any runs: tables, paired tests over seeds, figures.",
    "sweep": "Draw what a target costs against the swept key; maps of two keys; time against energy.",
    "settings": "Compare the variants in every setting of a study's grid.",
    "drift": "Say how variants come through concept drift: dip, recovery, cost.",
    "network": "Count handovers, ping-pong, interruptions, wasted bits and joules.",
    "theory": "Compare the bound of the journal paper's Theorem 1, term by term, with the gradients of a run.",
    "day": "Draw the day of a cell: its population, and each variant's accuracy by the hour.",
    "reproduction": "Put the papers' tables beside those of the shipped studies.",
    "costs": "Say where joules and seconds went; epochs, transmissions and storage of adaptation.",
}
# all that stands behind the command's name is the reader's
CONTEXT: dict[str, Any] = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


def reading(name: str) -> Callable[[typer.Context], None]:
    """Make the command of this name."""

    def command(context: typer.Context) -> None:
        from analysis.command_line import main

        raise typer.Exit(main([name, *context.args], "edgefl"))

    return command
