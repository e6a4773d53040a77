"""`edgefl report`."""

from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.shared import console
from edgefl.errors import EdgeflError


def report(
    run: Annotated[Path, typer.Argument(help="Run directory, or the folder of a study.")],
    out: Annotated[Path | None, typer.Option(help="File to write. Default: report.html in it.")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw a run with positions as one picture: png, pdf or svg.")
    ] = None,
) -> None:
    """Write a report as one HTML file: words, tables, charts, and a replay of the devices on a time slider.

    The file needs nothing else, no network either. Devices are where they were, unless record.positions_s is none.
    For slides, `edgefl day RUN --town film.gif` makes a film of a day.

    Examples:

        edgefl report runs/quickstart-seed100

        edgefl report runs/quickstart --out quickstart.html

        edgefl report runs/moving --picture moving.png
    """
    from rich.text import Text

    from analysis.html import write_report

    try:
        path = write_report(run, out)
        if picture:
            from analysis.html.picture import draw_run

            draw_run(run, picture)
    except ValueError as error:
        raise EdgeflError(str(error)) from error
    console.print(Text(f"report: {path} ({path.stat().st_size / 1e6:.2f} MB)"), soft_wrap=True)
