"""Commands that read run directories.

python -m analysis compare RUNS_DIR [--out DIR] [--reference NAME] [--target 0.95]
python -m analysis settings RUNS_DIR [--out DIR] [--reference NAME] [--session N ...] [--first-rounds 10]
python -m analysis drift RUNS_DIR [--out DIR] [--reference NAME] [--by devices] [--window 1] [--from 1] [--to N]
    [--recovery level] [--smooth 10] [--margin 0.01]
python -m analysis day RUNS_DIR [--cell 0] [--begin-hour 0] [--out DIR] [--reference NAME]
python -m analysis network RUNS_DIR
python -m analysis reproduction RUNS_DIR ... [--out FILE]
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from analysis.comparison import compare
from analysis.day import draw_day
from analysis.drift import compare_drift
from analysis.drift_reading import MARGIN, SMOOTH, Reading
from analysis.load import load_runs
from analysis.network import handover_figures
from analysis.populations import OVERLAP
from analysis.report import print_comparison, print_drift, print_network, print_settings
from analysis.reproduction import page, reproduce
from analysis.settings import compare_settings


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, or 2 for bad input, which is named on stderr in one line."""
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # runs left out are among the comparison's notes
            options.run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _compare(options: argparse.Namespace) -> None:
    comparison = compare(
        options.runs,
        out=options.out,
        reference=options.reference,
        target=options.target,
        recurring=options.recurring,
        overlap=options.overlap,
    )
    print_comparison(comparison, Console())


def _settings(options: argparse.Namespace) -> None:
    settings = compare_settings(
        options.runs,
        out=options.out,
        reference=options.reference,
        sessions=options.session,
        first_rounds=options.first_rounds,
    )
    print_settings(settings, Console())


def _drift(options: argparse.Namespace) -> None:
    comparison = compare_drift(
        options.runs,
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
    print_drift(comparison, Console())


def _day(options: argparse.Namespace) -> None:
    path = draw_day(
        options.runs,
        cell=options.cell,
        begin_hour=options.begin_hour,
        overlap=options.overlap,
        reference=options.reference,
        out=options.out,
    )
    print(path)


def _network(options: argparse.Namespace) -> None:
    runs = load_runs(options.runs)
    print_network(handover_figures(runs), Console(), runs.notes)


def _reproduction(options: argparse.Namespace) -> None:
    text = page([reproduce(folder) for folder in options.runs])
    if options.out is None:
        print(text, end="")
    else:
        options.out.write_text(text, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m analysis", description="Read edgefl run directories.")
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name: str, help_: str, run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help_)
        command.add_argument("runs", type=Path, metavar="RUNS_DIR", help="folder of a study or of a run")
        command.set_defaults(run=run)
        return command

    def add_writing(
        name: str, help_: str, run: Callable[[argparse.Namespace], None], reference: str
    ) -> argparse.ArgumentParser:
        command = add(name, help_, run)
        command.add_argument("--out", type=Path, help="where to write the files (default: RUNS_DIR)")
        command.add_argument("--reference", metavar="NAME", help=reference)
        return command

    command = add_writing(
        "compare",
        "compare the variants of a study: tables and a figure",
        _compare,
        "variant that sets the target accuracy",
    )
    command.add_argument(
        "--target", type=float, default=0.95, help="share of the reference's best accuracy to reach (0.95)"
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
        "settings",
        "compare the variants in every setting of a study's grid",
        _settings,
        "variant whose lead is counted",
    )
    command.add_argument(
        "--session", type=int, action="append", help="only this session; may be repeated (default: recurring)"
    )
    command.add_argument("--first-rounds", type=int, default=10, help="rounds to average over (10)")
    command = add_writing(
        "drift",
        "how variants come through concept drift: dip, recovery, cost",
        _drift,
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
    command = commands.add_parser(
        "reproduction", help="the papers' tables beside those of the shipped studies"
    )
    command.add_argument("runs", type=Path, nargs="+", metavar="RUNS_DIR", help="folder of a study")
    command.add_argument("--out", type=Path, help="where to write the page (default: standard output)")
    command.set_defaults(run=_reproduction)
    command = add_writing(
        "day",
        "draw the day of a cell: its population and each variant's accuracy by the hour",
        _day,
        "variant to emphasise, whose sessions are marked",
    )
    command.add_argument("--cell", type=int, default=0, help="whose day (0)")
    command.add_argument("--begin-hour", type=float, default=0.0, help="hour of the day at time 0 (0)")
    command.add_argument(
        "--overlap", type=float, default=OVERLAP, help=f"as for compare --recurring population ({OVERLAP:g})"
    )
    add("network", "handovers, ping-pong, time of stay, interruptions, wasted bits and joules", _network)
    return parser


if __name__ == "__main__":
    sys.exit(main())
