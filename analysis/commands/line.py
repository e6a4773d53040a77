"""The commands that read run directories, as one Typer app: a part of `edgefl`."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from edgefl.analysis.commands.options import (
    TARGET,
    Explain,
    Folder,
    Folders,
    Names,
    Out,
    Overlap,
    Partial,
    ReadingCommand,
    Reference,
    Transpose,
    load,
    reporting,
)
from edgefl.analysis.runs.choices import (
    COLUMNS,
    FIRST_ROUNDS,
    MARGIN,
    OVERLAP,
    SMOOTH,
    Layout,
    Metric,
    Recovery,
    Recurring,
    Weights,
)


def compare(
    runs: Folders,
    partial: Partial = False,
    names: Names = None,
    out: Out = None,
    reference: Reference = None,
    target: Annotated[list[str] | None, typer.Option(help=f"{TARGET}; may be repeated.")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help=f"Columns of the tables, in this order: {', '.join(COLUMNS)}."),
    ] = None,
    transpose: Transpose = False,
    interval: Annotated[bool, typer.Option("--interval", help="95 % intervals, not deviations.")] = False,
    recurring: Annotated[
        Recurring,
        typer.Option(help="Average over sessions whose labels, or whose population, were there before."),
    ] = "labels",
    overlap: Overlap = OVERLAP,
    explain: Explain = False,
) -> None:
    """Compare variants, or any runs: a verdict on each, a table, paired tests over seeds, figures.

    Examples:

        edgefl compare runs/study --target 0.8 --target 95%

        edgefl compare runs/a runs/b --names old new --reference old

        edgefl compare runs/study --columns first,seconds,joules --transpose --interval
    """
    from edgefl.analysis.reports.comparison import compare, report

    comparison = compare(
        load(runs, names, partial),
        out=out,
        reference=reference,
        target=target or "95%",
        recurring=recurring,
        overlap=overlap,
        layout=Layout(tuple(name for some in columns or () for name in some.split(",")), transpose, interval),
    )
    report(comparison).print(explain=explain)


def sweep(
    runs: Folders,
    partial: Partial = False,
    names: Names = None,
    out: Out = None,
    reference: Reference = None,
    target: Annotated[str, typer.Option(help=f"{TARGET}.")] = "95%",
    key: Annotated[
        list[str] | None,
        typer.Option(help="Dotted key, or its end; twice: a map. Default: the number that is swept."),
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="What to draw: seconds, joules or rounds to the target (without training of a round), or accuracy of"
            " the first rounds. Default: seconds and joules, in a map seconds.",
        ),
    ] = None,
    transpose: Transpose = False,
    deviation: Annotated[bool, typer.Option("--deviation", help="Deviations, not 95 % intervals.")] = False,
    explain: Explain = False,
) -> None:
    """Draw what a target costs against the swept key; maps of two keys; time against energy.

    Examples:

        edgefl sweep runs/bandwidth_sweep

        edgefl sweep runs/study --key bandwidth_hz --target 0.8

        edgefl sweep runs/study --key bandwidth_hz --key count --metric joules
    """
    from edgefl.analysis.reports.sweep import report, sweep

    if names:
        raise ValueError("a sweep takes the names that the runs have: leave out --names")
    swept = sweep(
        runs[0] if len(runs) == 1 else runs,
        keys=key or (),
        out=out,
        reference=reference,
        target=target,
        metric=metric,
        layout=Layout(transposed=transpose, interval=not deviation),
        partial=partial,
    )
    report(swept).print(explain=explain)


def settings(
    runs: Folder,
    partial: Partial = False,
    out: Out = None,
    reference: Reference = None,
    session: Annotated[
        list[int] | None, typer.Option(help="Only this session; may be repeated. Default: recurring ones.")
    ] = None,
    first_rounds: Annotated[int, typer.Option(help="Rounds to average over.")] = FIRST_ROUNDS,
    explain: Explain = False,
) -> None:
    """Compare the variants in every setting of a study's grid.

    Examples:

        edgefl settings runs/journal_table_x --session 5 --session 7
    """

    from edgefl.analysis.reports.settings import compare_settings, report

    table = compare_settings(
        runs,
        out=out,
        reference=reference,
        sessions=session,
        first_rounds=first_rounds,
        partial=partial,
    )
    report(table).print(explain=explain)


def drift(
    runs: Folders,
    partial: Partial = False,
    names: Names = None,
    out: Out = None,
    reference: Reference = None,
    by: Annotated[
        Weights,
        typer.Option(help="Whose mean an accuracy is: each device counts alike, or each test sample."),
    ] = "devices",
    window: Annotated[int, typer.Option(help="Rounds whose mean is looked at for the dip.")] = 1,
    first: Annotated[int, typer.Option("--from", help="First round of the dip; 1: the drift's.")] = 1,
    last: Annotated[
        int | None, typer.Option("--to", help="Last one. Default: until the next change.")
    ] = None,
    recovery: Annotated[
        Recovery,
        typer.Option(
            help="level: back at the accuracy before or at the end; plateau: it hardly rises any more."
        ),
    ] = "level",
    smooth: Annotated[int, typer.Option(help="Rounds whose mean has to be back, or flat.")] = SMOOTH,
    margin: Annotated[float, typer.Option(help="Accuracy that may be missing, or gained.")] = MARGIN,
) -> None:
    """Say how variants come through concept drift: dip, recovery, cost.

    Examples:

        edgefl drift runs/flash_synthetic --smooth 5
    """
    from edgefl.analysis.measures.drift_reading import Reading
    from edgefl.analysis.reports.drift import compare_drift, report

    loaded = load(runs, names, partial)
    reading = Reading(by, window, first, last, recovery, smooth, margin)
    report(compare_drift(loaded, out=out, reference=reference, reading=reading)).print()


def choose(
    runs: Folders,
    key: Annotated[
        str | None, typer.Option(help="Axis of the grid, or its key; default: the only one.")
    ] = None,
    by: Annotated[str, typer.Option(help="Samples that decide: validation or test.")] = "validation",
    out: Out = None,
) -> None:
    """Choose a setting of a grid for each variant on validation samples, and report it on the test data.

    It needs runs with learning.evaluation.validation.

    Examples:

        edgefl choose runs/study --key learning.local.lr
    """
    from edgefl.analysis.reports.choosing import report_choice

    if by not in ("validation", "test"):
        raise ValueError(f"--by {by}: choose validation or test")
    samples: Literal["test", "validation"] = "test" if by == "test" else "validation"
    report_choice(runs, key=key, by=samples, out=out).print()


def day(
    runs: Folder,
    partial: Partial = False,
    out: Out = None,
    reference: Reference = None,
    cell: Annotated[int, typer.Option(help="Whose day.")] = 0,
    overlap: Overlap = OVERLAP,
) -> None:
    """Draw the day of a cell: its population, and each variant's accuracy by the hour.

    Examples:

        edgefl day runs/city_day
    """
    from edgefl.analysis.reports.day import draw_day

    loaded = load([runs], None, partial)
    print(draw_day(loaded, cell=cell, overlap=overlap, reference=reference, out=out))


def reproduction(
    runs: Annotated[list[Path], typer.Argument(metavar="RUNS_DIR...", help="Folder of a study.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write the page. Default: standard output.")
    ] = None,
) -> None:
    """Put the papers' tables beside those of the shipped studies."""
    from edgefl.analysis.reports.reproduction import page, reproduce

    text = page([reproduce(folder) for folder in runs])
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")


network = reporting(
    "network",
    """Count handovers, ping-pong, interruptions, wasted bits and joules.

    Examples:

        edgefl network runs/handover
    """,
)
fairness = reporting(
    "fairness",
    """Compare devices' scores: quantiles, the worst tenth, gaps between cells and classes of devices.

    It needs runs with learning.evaluation.tested_on: devices and learning.evaluation.scores_every.

    Examples:

        edgefl fairness runs/study
    """,
)
theory = reporting(
    "theory",
    """Compare the bound of the journal paper's Theorem 1, term by term, with the gradients of a run.

    Constants are estimated from the run, and the step-size limit with them.

    Examples:

        edgefl theory runs/study
    """,
)
costs = reporting(
    "costs",
    """Say where joules and seconds went; epochs, transmissions and storage of adaptation.

    Examples:

        edgefl costs runs/study
    """,
)

app = typer.Typer(
    help="Read edgefl run directories.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# in the order in which help shows them
COMMANDS = (
    compare,
    sweep,
    settings,
    drift,
    network,
    choose,
    fairness,
    theory,
    day,
    reproduction,
    costs,
)
for command in COMMANDS:
    app.command(cls=ReadingCommand)(command)


def keep_matplotlib_quiet() -> None:
    """Leave out what matplotlib says where it cannot keep its list of fonts; it then makes one for this process."""
    logging.getLogger("matplotlib").addFilter(_is_of_figures)


def _is_of_figures(record: logging.LogRecord) -> bool:
    return not any(part in record.getMessage() for part in ("MPLCONFIGDIR", "mkdir -p failed"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or 2 for bad input, which is named on stderr."""
    keep_matplotlib_quiet()
    try:
        app(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
