"""How accuracy through concept drift is read: what is averaged, where the dip is looked for, what recovered means."""

import math
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np
import pandas as pd
import typer

from edgefl.analysis.runs.choices import MARGIN, SMOOTH, Recovery, Weights

SAMPLES = "accuracy_by_samples"  # of rounds, where devices are tested on their own data
WEIGHT = "test_samples"  # of a participant
PERSONAL = "accuracy_personal"  # of a participant; in rounds, the mean of all devices with such a model


@dataclass(frozen=True)
class Reading:
    """A way to read accuracies. F's paper leaves all of it open but the interval; the default is the plain way.

    Attributes:
        by: whose mean an accuracy is: each device counts alike, or each test sample.
        window: rounds whose mean accuracy is looked at for the dip; 1: each round by itself.
        first, last: the interval of the dip (F, equation 4), in rounds after the drift's first round, itself the
            1st; the windows lie within. last None: until the concept changes again.
        recovery: level: `smooth` rounds average at least the lower of the levels before and at the end, minus
            `margin`. plateau: `smooth` rounds are followed by `smooth` rounds that gain no more than `margin`.
        smooth, margin: of this rule; margin is a share of accuracy.
    """

    by: Annotated[
        Weights,
        typer.Option(help="Whose mean an accuracy is: each device counts alike, or each test sample."),
    ] = "devices"
    window: Annotated[int, typer.Option(help="Rounds whose mean is looked at for the dip.")] = 1
    first: Annotated[int, typer.Option("--from", help="First round of the dip; 1: the drift's.")] = 1
    last: Annotated[int | None, typer.Option("--to", help="Last one. Default: until the next change.")] = None
    recovery: Annotated[
        Recovery,
        typer.Option(
            help="level: back at the accuracy before or at the end; plateau: it hardly rises any more."
        ),
    ] = "level"
    smooth: Annotated[int, typer.Option(help="Rounds whose mean has to be back, or flat.")] = SMOOTH
    margin: Annotated[float, typer.Option(help="Accuracy that may be missing, or gained.")] = MARGIN

    def __post_init__(self) -> None:
        for name, value, known in (
            ("by", self.by, get_args(Weights)),
            ("recovery", self.recovery, get_args(Recovery)),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}: choose {' or '.join(known)}")
        for name, number in (("smooth", self.smooth), ("window", self.window), ("from", self.first)):
            if number < 1:
                raise ValueError(f"{name} is {number}: a number of rounds, at least 1")
        if not 0 <= self.margin < 1:
            raise ValueError(f"margin is {self.margin}: a share of accuracy, from 0 to below 1")
        if self.last is not None and self.last - self.first + 1 < self.window:
            raise ValueError(
                f"from {self.first} to {self.last} are fewer rounds than the window, {self.window}: widen the"
                " interval or shorten the window"
            )

    def dip(self, accuracy: np.ndarray) -> float:
        """Return the lowest mean of a window of rounds [rounds from the drift on]; NaN: no tested one.

        Of a concept that ends within the first window, the mean of what there is. Untested rounds are NaN.
        """
        inside = pd.Series(accuracy[self.first - 1 : self.last])
        means = inside.rolling(self.window, min_periods=1).mean().to_numpy()
        whole = means[min(self.window, len(means)) - 1 :] if len(means) else means
        known = whole[np.isfinite(whole)]
        return float(known.min()) if len(known) else math.nan

    def recovery_rounds(self, accuracy: np.ndarray, before: float, final: float) -> float:
        """Count the rounds [from the drift on] until the model has recovered; inf: never."""
        tested = np.flatnonzero(np.isfinite(accuracy))
        level = np.fmin(before, final) - self.margin
        if math.isnan(level) or not len(tested):
            return math.nan
        smooth = min(self.smooth, len(tested))
        means = np.convolve(accuracy[tested], np.full(smooth, 1 / smooth), mode="valid")
        if self.recovery == "plateau":
            good = np.flatnonzero(means[smooth:] - means[:-smooth] <= self.margin + 1e-12)
        else:
            good = np.flatnonzero(means >= level - 1e-12)
        return float(tested[good[0]]) if len(good) else math.inf

    def words(self) -> list[str]:
        """Say how dip and recovery are defined."""
        interval = (
            "from the first drifted round on" if self.first == 1 else f"from its {self.first}th round on"
        )
        if self.last is not None:
            interval = f"in rounds {self.first} to {self.last} of the drift"
        what = "accuracy of a round" if self.window == 1 else f"mean accuracy of {self.window} rounds"
        if self.recovery == "level":
            rule = (
                f"{self.smooth} rounds average at most {100 * self.margin:g} points below the accuracy before"
                " or, if that is lower, the final one"
            )
        else:
            rule = (
                f"{self.smooth} rounds are followed by {self.smooth} that average at most"
                f" {100 * self.margin:g} points more"
            )
        weights = "each device" if self.by == "devices" else "each test sample"
        return [
            f"before and final: means of 20 rounds; dip: lowest {what} {interval}; 1 round, ...: that many after the"
            f" last step of the drift, itself the first; in all of these {weights} counts alike.",
            "recovery: rounds, simulated time and energy of all devices from the last step of the drift until"
            f" {rule} (∞: never).",
        ]
