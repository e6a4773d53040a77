"""Options of reports with their defaults, which the command line reads without importing pandas."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

FIRST_ROUNDS = 10  # rounds of a session in the compared mean accuracy; J, Tables II, III and X to XII
OVERLAP = 0.5  # minimum Jaccard index of two sessions with the same population
SMOOTH = 10  # rounds over which accuracy is averaged to detect recovery from drift
MARGIN = 0.01  # shortfall in accuracy that still counts as recovered from drift
Weights = Literal["devices", "samples"]
Recovery = Literal["level", "plateau"]
Recurring = Literal["labels", "population"]
Metric = Literal["seconds", "joules", "rounds", "accuracy"]
# column of a comparison -> whether runs have it: with training, without, or both
COLUMNS = {
    **dict.fromkeys(
        ("start", "first", "rounds", "seconds", "time_ratio", "joules", "energy_ratio", "missed"), "trained"
    ),
    **dict.fromkeys(("speed_up", "gain", "dip", "recovery"), "asked for"),
    **dict.fromkeys(
        ("latency", "latency_ratio", "latency_mean", "round_energy", "round_energy_ratio"), "untrained"
    ),
    **dict.fromkeys(("total_energy", "total_time"), "both"),
}


# options of several commands; a third element is the type on the command line, if Python accepts more types
Folders = Annotated[list[Path], typer.Argument(metavar="RUNS_DIR...", help="Folders of studies, or of runs.")]
Partial = Annotated[bool, typer.Option("--partial", help="Include the finished sessions of incomplete runs.")]
Names = Annotated[
    Sequence[str], typer.Option(metavar="NAME...", help="A name per folder, in order."), list[str] | None
]
Out = Annotated[
    str | Path | None,
    typer.Option(help="Folder to write to. Default: RUNS_DIR; with several, `comparison` next to them."),
    Path | None,
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Also print definitions of the numbers, and all additional tables.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, for programs, and nothing else.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print the result alone: a directory, files, names or answers, one per line."
    ),
]
Reference = Annotated[
    str | None, typer.Option(metavar="NAME", help="Variant to compare others with. Default: the study's.")
]
Transpose = Annotated[
    bool, typer.Option("--transpose", help="Give each variant or value a column in the files.")
]
Columns = Annotated[
    Sequence[str],
    typer.Option(metavar="NAME,...", help=f"Columns of the tables, in this order: {', '.join(COLUMNS)}."),
    list[str] | None,
]
Interval = Annotated[
    bool, typer.Option("--interval", help="Show 95 % intervals instead of standard deviations.")
]
Overlap = Annotated[
    float,
    typer.Option(
        help=(
            "Two sessions have the same population if at least this share of the devices in either session "
            "is in both."
        )
    ),
]
TARGET = (
    "Accuracy to reach: 0.8, or a share of the best accuracy: 95% (the reference's best; the default), '95% "
    "of NAME', '95% of best'"
)


@dataclass(frozen=True)
class Layout:
    """How a table is laid out in the terminal, Markdown and LaTeX.

    Attributes:
        columns: names of columns in `COLUMNS`, separated by commas or in a list; by default all columns that apply.
        transposed: whether LaTeX and Markdown tables have a column per variant, as tables in the terminal do.
        interval: whether ± precedes half the mean's 95 % interval (Student's t) instead of the standard deviation.
    """

    columns: Sequence[str] = ()
    transposed: bool = False
    interval: bool = False

    def __post_init__(self) -> None:
        names = tuple(name for some in self.columns for name in some.split(","))
        object.__setattr__(self, "columns", names)

    @property
    def spread(self) -> str:
        """The ending, `std` or `ci`, of the names of columns with values that are printed after ±."""
        return "ci" if self.interval else "std"
