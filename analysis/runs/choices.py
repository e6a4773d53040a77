"""What a reader may choose, with its defaults: known to the command line without pandas."""

from dataclasses import dataclass
from typing import Literal

FIRST_ROUNDS = 10  # of a session, whose mean accuracy is compared; J, Tables II, III and X to XII
OVERLAP = 0.5  # Jaccard index from which on two sessions have the same population
SMOOTH = 10  # rounds whose mean has to be back for a recovery from drift
MARGIN = 0.01  # of accuracy, below the level to come back to after drift
Weights = Literal["devices", "samples"]
Recovery = Literal["level", "plateau"]
Recurring = Literal["labels", "population"]
Metric = Literal["seconds", "joules", "rounds", "accuracy"]
# column of a comparison -> whether runs have it: with training, without, or both
COLUMNS = {
    **dict.fromkeys(
        ("start", "first", "rounds", "seconds", "joules", "missed", "speed_up", "gain"), "trained"
    ),
    **dict.fromkeys(("dip", "recovery"), "asked for"),
    **dict.fromkeys(("latency", "latency_mean", "round_energy"), "untrained"),
    **dict.fromkeys(("total_energy", "total_time"), "both"),
}


@dataclass(frozen=True)
class Layout:
    """How a table is laid out in the terminal, Markdown and LaTeX.

    Attributes:
        columns: names of the columns, see `COLUMNS`; none: all that apply.
        transposed: LaTeX and Markdown with a column per variant, as the terminal has it.
        interval: behind ± stands half the 95 % interval of the mean (Student's t) in place of the deviation.
    """

    columns: tuple[str, ...] = ()
    transposed: bool = False
    interval: bool = False

    @property
    def spread(self) -> str:
        """Ending of the columns that hold what stands behind ±."""
        return "ci" if self.interval else "std"


PLAIN = Layout()
