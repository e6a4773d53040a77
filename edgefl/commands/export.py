"""`edgefl export`."""

from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.shared import console
from edgefl.errors import EdgeflError


def export(
    path: Annotated[Path, typer.Argument(help="Directory of a study, or of a run.")],
    to: Annotated[
        str, typer.Option(help="mlflow or wandb, each an extra, edgefl-cosim[mlflow]; or tensorboard.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the tool's files: mlflow.db and mlartifacts, wandb, tensorboard. Default: PATH."
        ),
    ] = None,
) -> None:
    """Write the runs, tables and figures of a study for MLflow (SQLite), Weights & Biases (offline) or TensorBoard.

    Nothing is sent anywhere. What is there already is not written again.

    Examples:

        edgefl export runs/quickstart --to mlflow

        edgefl export runs/quickstart --to wandb --out exported
    """
    from edgefl.analysis.export import export as exported
    from edgefl.analysis.page.formatting import placed

    try:
        written = exported(path, to, out)
    except ValueError as error:
        raise EdgeflError(placed(error, path)) from error
    there = f", {written.there} were there" if written.there else ""
    console.print(
        f"{written.place}: {written.new} runs{there}; {written.files} tables and figures", soft_wrap=True
    )
    for note in written.notes:
        console.print(f"note: {note}", soft_wrap=True)
    console.print(f"look: {written.look}", soft_wrap=True)
