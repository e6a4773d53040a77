"""The commands that read run directories: `edgefl compare`, ... and `python -m analysis compare`, ... alike."""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from analysis import report
from analysis.comparison import compare
from analysis.costs_report import report_costs
from analysis.day import draw_day
from analysis.drift import compare_drift
from analysis.drift_reading import MARGIN, SMOOTH, Reading
from analysis.load import Runs, load_runs
from analysis.network_report import report_network
from analysis.populations import OVERLAP
from analysis.reproduction import page, reproduce
from analysis.results import Layout
from analysis.settings import compare_settings
from analysis.sweep import METRICS, sweep
from analysis.tables.comparison import COLUMNS
from analysis.theory_report import report_theory

Run = Callable[[argparse.Namespace], None]


def main(arguments: Sequence[str] | None = None, program: str = "python -m analysis") -> int:
    """Run one command. Returns the exit code: 0, or 2 for bad input, which is named on stderr in one line."""
    options = parser(program).parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # runs left out are among the notes
            options.run(options)
    except ValueError as error:
        print(f"{'edgefl: ' if program == 'edgefl' else ''}error: {error}", file=sys.stderr)
        return 2
    return 0


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)


def _runs(options: argparse.Namespace, *, every_setting: bool = False) -> Runs:
    names = options.names or ()
    return load_runs(options.runs, names=names, partial=options.partial, every_setting=every_setting)


def _compare(options: argparse.Namespace) -> None:
    columns = tuple(name for names in options.columns or () for name in names.split(","))
    comparison = compare(
        _runs(options),
        out=options.out,
        reference=options.reference,
        target=options.target or "95%",
        recurring=options.recurring,
        overlap=options.overlap,
        layout=Layout(columns, options.transpose, options.interval),
    )
    report.print_comparison(comparison, _console())


def _sweep(options: argparse.Namespace) -> None:
    if options.names:
        raise ValueError("a sweep takes the names that the runs have: leave out --names")
    found = sweep(
        options.runs[0] if len(options.runs) == 1 else options.runs,
        keys=options.key or (),
        out=options.out,
        reference=options.reference,
        target=options.target or "95%",
        metric=options.metric,
        layout=Layout(transposed=options.transpose, interval=not options.deviation),
        partial=options.partial,
    )
    report.print_sweep(found, _console())


def _settings(options: argparse.Namespace) -> None:
    settings = compare_settings(
        options.runs[0],
        out=options.out,
        reference=options.reference,
        sessions=options.session,
        first_rounds=options.first_rounds,
        partial=options.partial,
    )
    report.print_settings(settings, _console())


def _drift(options: argparse.Namespace) -> None:
    comparison = compare_drift(
        _runs(options),
        out=options.out,
        reference=options.reference,
        reading=Reading(
            by=options.by,
            window=options.window,
            first=options.first,
            last=options.last,
            recovery=options.recovery,
            smooth=options.smooth,
            margin=options.margin,
        ),
    )
    report.print_drift(comparison, _console())


def _network(options: argparse.Namespace) -> None:
    report.print_network(report_network(_runs(options, every_setting=True), out=options.out), _console())


def _costs(options: argparse.Namespace) -> None:
    report.print_costs(report_costs(_runs(options, every_setting=True), out=options.out), _console())


def _theory(options: argparse.Namespace) -> None:
    report.print_theory(report_theory(_runs(options, every_setting=True), out=options.out), _console())


def _day(options: argparse.Namespace) -> None:
    path = draw_day(
        options.runs[0],
        cell=options.cell,
        begin_hour=options.begin_hour,
        overlap=options.overlap,
        reference=options.reference,
        out=options.out,
    )
    print(path)


def _reproduction(options: argparse.Namespace) -> None:
    text = page([reproduce(folder) for folder in options.runs])
    if options.out is None:
        print(text, end="")
    else:
        options.out.write_text(text, encoding="utf-8")


def parser(program: str) -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(prog=program, description="Read edgefl run directories.")
    commands = parser.add_subparsers(dest="command", required=True)

    def add(
        name: str, help_: str, run: Run, examples: Sequence[str], several: bool = True
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=help_,
            description=f"{help_[0].upper()}{help_[1:]}.",
            epilog="examples:\n" + "\n".join(f"  {program} {name} {example}" for example in examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        folder = "folder of a study or of a run" + (", or several" if several else "")
        command.add_argument("runs", type=Path, metavar="RUNS_DIR", help=folder, nargs="+" if several else 1)
        command.add_argument(
            "--partial", action="store_true", help="also runs that are not completed, as far as they came"
        )
        if several:
            command.add_argument(
                "--names", nargs="+", metavar="NAME", help="one for each folder, in their order"
            )
        command.set_defaults(run=run, names=None)
        return command

    def add_writing(
        name: str, help_: str, run: Run, examples: Sequence[str], reference: str, several: bool = True
    ) -> argparse.ArgumentParser:
        command = add(name, help_, run, examples, several)
        command.add_argument(
            "--out",
            type=Path,
            help="where to write the files (default: RUNS_DIR; of several `comparison` beside them)",
        )
        if reference:
            command.add_argument("--reference", metavar="NAME", help=reference)
        return command

    command = add_writing(
        "compare",
        "compare variants, or any runs: tables, paired tests, figures",
        _compare,
        [
            "runs/study --target 0.8 --target 95%",
            "runs/a runs/b --names old new --reference old",
            "runs/study --columns first,seconds,joules --transpose --interval",
        ],
        "variant whose peak relative targets are of, and that others are tested against",
    )
    add_targets(command)
    command.add_argument(
        "--columns",
        action="append",
        metavar="NAME,...",
        help=f"columns of the tables, in this order: {', '.join(COLUMNS)}",
    )
    command.add_argument(
        "--transpose", action="store_true", help="a column per variant in Markdown and LaTeX"
    )
    command.add_argument(
        "--interval",
        action="store_true",
        help="95 %% intervals (Student's t) in place of standard deviations",
    )
    command.add_argument(
        "--recurring",
        choices=("labels", "population"),
        default="labels",
        help="average over sessions whose labels, or whose population, were there before (labels)",
    )
    command.add_argument(
        "--overlap",
        type=float,
        default=OVERLAP,
        help="devices in both of two sessions, over those in either, from which on they have the same"
        f" population ({OVERLAP:g})",
    )
    command = add_writing(
        "sweep",
        "cost of a target against the swept key: lines, a map of two keys, time against energy",
        _sweep,
        [
            "runs/bandwidth_sweep",
            "runs/study --key bandwidth_hz --target 0.8",
            "runs/study --key bandwidth_hz --key count --metric joules",
        ],
        "variant whose peak a relative target is of",
    )
    add_targets(command, repeated=False)
    command.add_argument(
        "--key",
        action="append",
        help="dotted key, or its end; twice: a map (default: the number that is swept)",
    )
    command.add_argument(
        "--metric",
        choices=tuple(METRICS),
        help="what to draw: seconds, joules or rounds to the target (without training of a round), or accuracy of the"
        " first rounds (default: seconds and joules, in a map seconds)",
    )
    command.add_argument("--transpose", action="store_true", help="a column per value in Markdown and LaTeX")
    command.add_argument(
        "--deviation", action="store_true", help="standard deviations in place of 95 %% intervals"
    )
    command = add_writing(
        "settings",
        "compare the variants in every setting of a study's grid",
        _settings,
        ["runs/journal_table_x --session 5 --session 7"],
        "variant whose lead is counted",
        several=False,
    )
    command.add_argument(
        "--session", type=int, action="append", help="only this session; may be repeated (default: recurring)"
    )
    command.add_argument("--first-rounds", type=int, default=10, help="rounds to average over (10)")
    command = add_writing(
        "drift",
        "how variants come through concept drift: dip, recovery, cost",
        _drift,
        ["runs/flash_synthetic --smooth 5"],
        "variant to emphasise",
    )
    command.add_argument(
        "--by",
        choices=("devices", "samples"),
        default="devices",
        help="whose mean an accuracy is: each device counts alike, or each test sample (devices)",
    )
    command.add_argument(
        "--window", type=int, default=1, help="rounds whose mean is looked at for the dip (1)"
    )
    command.add_argument(
        "--from",
        dest="first",
        type=int,
        default=1,
        help="first round of the dip's interval; 1: the drift's (1)",
    )
    command.add_argument("--to", dest="last", type=int, help="its last round (until the next change)")
    command.add_argument(
        "--recovery",
        choices=("level", "plateau"),
        default="level",
        help="level: back at the accuracy before or at the end; plateau: it hardly rises any more (level)",
    )
    command.add_argument(
        "--smooth", type=int, default=SMOOTH, help="rounds whose mean has to be back, or flat (10)"
    )
    command.add_argument(
        "--margin", type=float, default=MARGIN, help="accuracy that may be missing, or gained (0.01)"
    )
    add_writing(
        "network",
        "handovers, ping-pong, time of stay, interruptions, wasted bits and joules; their course over time",
        _network,
        ["runs/handover"],
        "",
    )
    add_writing(
        "costs",
        "where joules and seconds went; local epochs, transmissions and storage (J, section V)",
        _costs,
        ["runs/study"],
        "",
    )
    command = add_writing(
        "day",
        "draw the day of a cell: its population and each variant's accuracy by the hour",
        _day,
        ["runs/city --begin-hour 6"],
        "variant to emphasise, whose sessions are marked",
        several=False,
    )
    command.add_argument("--cell", type=int, default=0, help="whose day (0)")
    command.add_argument("--begin-hour", type=float, default=0.0, help="hour of the day at time 0 (0)")
    command.add_argument(
        "--overlap", type=float, default=OVERLAP, help=f"as for compare --recurring population ({OVERLAP:g})"
    )
    command = commands.add_parser(
        "reproduction", help="the papers' tables beside those of the shipped studies"
    )
    command.add_argument("runs", type=Path, nargs="+", metavar="RUNS_DIR", help="folder of a study")
    command.add_argument("--out", type=Path, help="where to write the page (default: standard output)")
    command.set_defaults(run=_reproduction)
    add_writing(
        "theory",
        "the bound of J's Theorem 1 term by term, and the step-size limit, with estimated constants",
        _theory,
        ["runs/study"],
        "",
    )
    return parser


def add_targets(command: argparse.ArgumentParser, repeated: bool = True) -> None:
    """Add the option that sets accuracies to reach."""
    command.add_argument(
        "--target",
        action="append" if repeated else "store",
        help="accuracy to reach: 0.8, or a share of the best one: 95%% (of the reference's, the default),"
        f" '95%% of NAME', '95%% of best'{'; may be repeated' if repeated else ''}",
    )
