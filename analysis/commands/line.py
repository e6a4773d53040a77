"""The commands that read run directories, as one Typer app: a part of `edgefl`."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from edgefl.analysis.commands.report_command import ReadingCommand, command_for
from edgefl.analysis.runs.choices import Json, Quiet

app = typer.Typer(
    help="Read edgefl run directories.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# commands in the order of `--help`; each takes the options of its report's function
@app.command(cls=command_for("comparison.compare", explains=True))
def compare() -> None:
    """Compare variants, or any runs, with a verdict on each, a table, paired tests over seeds, and figures.

    Examples:

        edgefl compare runs/study --target 0.8 --target 95%

        edgefl compare runs/a runs/b --names old new --reference old

        edgefl compare runs/study --columns first,seconds,joules --transpose --interval
    """


@app.command(cls=command_for("sweep.sweep", explains=True))
def sweep() -> None:
    """Draw the cost of reaching a target against a swept key or on a map of two keys, and time against energy.

    Examples:

        edgefl sweep runs/bandwidth_sweep

        edgefl sweep runs/study --key bandwidth_hz --target 0.8

        edgefl sweep runs/study --key bandwidth_hz --key count --metric joules
    """


@app.command(cls=command_for("settings.compare_settings", explains=True))
def settings() -> None:
    """Compare the variants in every setting of a study's grid.

    Examples:

        edgefl settings runs/journal_table_x --session 5 --session 7
    """


@app.command(cls=command_for("drift.compare_drift"))
def drift() -> None:
    """Compare how variants dip and recover under concept drift, and at what cost.

    Examples:

        edgefl drift runs/flash_synthetic --smooth 5
    """


@app.command(cls=command_for("network.report_network"))
def network() -> None:
    """Count handovers, ping-pongs and interruptions, and the bits and joules that they waste.

    Examples:

        edgefl network runs/handover
    """


@app.command(cls=command_for("choosing.report_choice"))
def choose() -> None:
    """Choose a setting of a grid for each variant by its validation score, and report the setting's test score.

    The runs' scenario must set learning.evaluation.validation.

    Examples:

        edgefl choose runs/study --key learning.local.lr
    """


@app.command(cls=command_for("fairness.report_fairness"))
def fairness() -> None:
    """Compare devices' scores by quantiles, the worst tenth, and the gaps between cells and between device classes.

    The runs' scenario must set learning.evaluation.tested_on: devices and learning.evaluation.scores_every.

    Examples:

        edgefl fairness runs/study
    """


@app.command(cls=command_for("theory.report_theory"))
def theory() -> None:
    """Compare the bound of the journal paper's Theorem 1, term by term, with the gradients of a run.

    The constants are estimated from the run; the step-size limit follows from them.

    Examples:

        edgefl theory runs/study
    """


@app.command(cls=command_for("day.report_day"))
def day() -> None:
    """Draw the day of a cell: its population, and each variant's accuracy by the hour.

    Examples:

        edgefl day runs/city_day
    """


@app.command(cls=ReadingCommand)
def papers(
    paper: Annotated[str | None, typer.Argument(help="Short name of a paper. Default: list all.")] = None,
    result: Annotated[
        str | None, typer.Argument(help="Table or figure of the paper, such as XIV or 'figure 4'.")
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Folder of a finished study to compare; may be repeated."),
    ] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="With --runs or --run: keep the numbers for `papers` and --audit."),
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Write the page of all numbers that were compared.")
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(metavar="PAPER", help="Run the scripts of a paper again, or of all papers (`cheap`)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Page to write, .md. Default: standard output.")] = None,
) -> None:
    """List papers and their tables, what was run, what a run needs, and the paper's numbers beside edgefl's.

    Examples:

        edgefl papers

        edgefl papers journal

        edgefl papers journal XIV

        edgefl papers --runs runs/table_x --out comparison.md

        edgefl papers --run cheap
    """
    from edgefl.analysis.page.formatting import ending_in
    from edgefl.analysis.page.own_files import file_to_write
    from edgefl.analysis.reports import papers as known
    from edgefl.analysis.reports.reproduction import page, reproduce

    file = None if out is None else file_to_write(ending_in(out, ".md"))
    if run:
        for line in known.rerun(run, record):
            print(line, flush=True)
    elif runs and record:
        print("\n".join(known.record_studies(runs)))
    elif runs or audit:
        text = page([reproduce(folder) for folder in runs]) if runs else known.audit(known.papers())
        if file is None:
            print(text, end="")
        else:
            file.write_text(text, encoding="utf-8")
    else:
        known.show(paper, result)


@app.command(cls=command_for("costs.report_costs"))
def costs() -> None:
    """Break down energy and time; count the epochs, transmissions and storage that adapting to drift costs.

    Examples:

        edgefl costs runs/study
    """


@app.command(cls=ReadingCommand)
def report(
    runs: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or the folder of a study.")],
    out: Annotated[
        Path | None, typer.Option(help="Page to write, .html. Default: report.html in RUN.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Also draw the moving network of a run as a map and curves: a picture (.png, .pdf, .svg) or a film"
            " (.gif, .webp)."
        ),
    ] = None,
    cell: Annotated[int, typer.Option(help="Cell whose curves the picture shows.")] = 0,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="HOUR",
            help="Time that the picture shows, 7.75 or 7:45 or, without a time of day, 0:00:45 since the start. "
            "Default: the middle of the run.",
        ),
    ] = None,
    phone: Annotated[
        bool, typer.Option("--phone", help="Put the picture's map on top, for narrow pages.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report as one HTML file: text, tables, charts, and a replay of the devices on a time slider.

    The file is self-contained and needs no network. Devices appear at their positions, unless record.positions_s is
    none.

    Examples:

        edgefl report runs/quickstart-seed100

        edgefl report runs/quickstart --out quickstart.html

        edgefl report runs/moving --picture moving.png

        edgefl report runs/moving --picture film.gif
    """
    from edgefl.analysis.html import page_to_write, write_report
    from edgefl.analysis.page.machine import document
    from edgefl.analysis.reports.moving import draw_moving
    from edgefl.analysis.runs.clock import hour_of

    drawn = dict[str, Path]()
    if picture:  # first, since most mistakes are the picture's, and then nothing is written
        if out:
            page_to_write(out)
        hour = None if at is None else hour_of(at)
        drawn["picture"] = draw_moving(runs, picture, cell=cell, at_hour=hour, phone=phone)
    elif at is not None or cell or phone:
        raise ValueError("--at, --cell and --phone describe a picture: name its file with --picture")
    files = {"report": write_report(runs, out), **drawn}
    if json:
        table = [{"about": about, "file": file} for about, file in files.items()]
        print(document("report", out=files["report"].parent, table=table))
        return
    for about, file in files.items():
        print(file if quiet else f"{about}: {file} ({file.stat().st_size / 1e6:.2f} MB)")


@app.command(cls=ReadingCommand)
def export(
    runs: Annotated[Path, typer.Argument(metavar="PATH", help="Directory of a study, or of a run.")],
    to: Annotated[
        str, typer.Option(help="mlflow or wandb (extra edgefl-cosim[mlflow] or [wandb]), or tensorboard.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help=("Folder for mlflow.db and mlartifacts, or wandb, or tensorboard. Default: PATH.")),
    ] = None,
) -> None:
    """Write the runs, tables and figures of a study for MLflow (SQLite), Weights & Biases (offline) or TensorBoard.

    Nothing is sent anywhere. Existing entries are not written again.

    Examples:

        edgefl export runs/quickstart --to mlflow

        edgefl export runs/quickstart --to wandb --out exported
    """
    from edgefl.analysis.export import export

    written = export(runs, to, out)
    there = f", {written.there} already there" if written.there else ""
    files = f"; {written.files} tables and figures" if written.files else ""
    print(f"{written.place}: {written.new} run{'s' * (written.new != 1)}{there}{files}")
    for note in written.study.notes:
        print(f"note: {note}")
    print(f"look: {written.look}")


def keep_matplotlib_quiet() -> None:
    """Silence matplotlib's messages about building its font cache, which otherwise appear in every process."""
    logging.getLogger("matplotlib").addFilter(_is_of_figures)


def _is_of_figures(record: logging.LogRecord) -> bool:
    return not any(part in record.getMessage() for part in ("MPLCONFIGDIR", "mkdir -p failed"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0, or 2 for bad input, with an error on stderr."""
    keep_matplotlib_quiet()
    try:
        app(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
