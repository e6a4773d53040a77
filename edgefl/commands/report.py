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
        Path | None,
        typer.Option(
            help="Also draw the moving network of a run, map and curves: a picture (.png, .pdf, .svg) or a film"
            " (.gif, .webp)."
        ),
    ] = None,
    cell: Annotated[int, typer.Option(help="Whose curves stand in the picture.")] = 0,
    at: Annotated[
        float | None, typer.Option(metavar="HOUR", help="Of the picture. Default: the middle of the run.")
    ] = None,
    phone: Annotated[
        bool, typer.Option("--phone", help="The picture's map above, for narrow pages.")
    ] = False,
) -> None:
    """Write a report as one HTML file: words, tables, charts, and a replay of the devices on a time slider.

    The file needs nothing else, no network either. Devices are where they were, unless record.positions_s is none.

    Examples:

        edgefl report runs/quickstart-seed100

        edgefl report runs/quickstart --out quickstart.html

        edgefl report runs/moving --picture moving.png

        edgefl report runs/moving --picture film.gif
    """
    from rich.text import Text

    from edgefl.analysis.html import write_report
    from edgefl.analysis.page.formatting import placed

    try:
        path = write_report(run, out)
        if picture:
            from edgefl.analysis.reports.moving import draw_moving
            from edgefl.analysis.runs.load import load_runs

            draw_moving(load_runs(run), picture, cell=cell, at_hour=at, phone=phone)
    except ValueError as error:
        raise EdgeflError(placed(error, run)) from error
    console.print(Text(f"report: {path} ({path.stat().st_size / 1e6:.2f} MB)"), soft_wrap=True)
