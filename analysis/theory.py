"""The convergence theory of the journal paper, with constants estimated along a run: J's Theorem 1."""

from pathlib import Path

import numpy as np
import pandas as pd

from edgefl.analysis import tables
from edgefl.analysis.figures.theory import MOST_PANELS, theory_figure
from edgefl.analysis.load import Paths, Runs
from edgefl.analysis.metrics import RUN, SESSION, training_rounds
from edgefl.analysis.report import Report, noted

TERMS = ["a", "b", "c", "d"]
MEASURED = "theory_lr"  # the first of the columns that `learning.theory` makes a run record


def report_theory(runs: Paths | Runs, *, out: str | Path | None = None) -> Report:
    """Compute the bound along all runs, and write theory.csv, theory_rounds.csv, theory.png and .pdf.

    Raises:
        ValueError: no completed run, no run that has measured gradients, or a folder that cannot be written.
    """
    runs = Runs.of(runs)
    by_round, by_run = along(runs)
    lengths = training_rounds(runs.rounds).groupby("session")["round"].max()
    notes = [*runs.left_out, *runs.remarks]
    variants = by_round["variant"].nunique()
    if variants > MOST_PANELS:
        notes.append(f"the figure shows the first {MOST_PANELS} of {variants} variants")
    return Report(
        runs.folder(out),
        tables=[("", tables.theory.headline(by_run))],
        sentences=[*tables.theory.EXPLANATIONS, *noted(notes)],
        look=[("Round by round", "theory_rounds.csv"), ("Figure", "theory.png", " and .pdf")],
        numbers={"theory_rounds.csv": by_round, "theory.csv": by_run},
        figures={"theory": theory_figure(by_round, lengths)},
    ).write()


def measured_rounds(runs: Runs) -> pd.DataFrame:
    """Keep the training rounds in which a run has measured gradients.

    Raises:
        ValueError: no run has, and what to set.
    """
    rounds = training_rounds(runs.rounds)
    if MEASURED not in rounds or rounds[MEASURED].isna().all():
        raise ValueError(
            f"the runs in {runs.path} have measured no gradients: run with --set learning.theory.every=10"
        )
    return rounds[rounds[MEASURED].notna()]


def constants(measured: pd.DataFrame) -> pd.DataFrame:
    """Estimate the constants of each run, one row each.

    Returns:
        variant, seed; beta: the largest secant slope of a device's gradient between two consecutive global models (a
        lower bound of the true smoothness, which would be over all models); beta_median; zeta2: the largest
        sum_k a_k |grad F_k|^2 - |grad F|^2 seen, with zeta1 = 1 (exact for the models and shares met, no more than
        a lower bound beyond them); rounds measured.
    """
    divergence = measured["theory_gradient2_devices"] - measured["theory_gradient2"]
    by_run = measured.assign(divergence=divergence.clip(lower=0.0)).groupby(RUN, sort=False)
    return pd.concat(
        [
            by_run["theory_smoothness"].max().rename("beta"),
            by_run["theory_smoothness"].median().rename("beta_median"),
            by_run["divergence"].max().rename("zeta2"),
            by_run.size().rename("rounds"),
        ],
        axis=1,
    ).reset_index()


def theorem1(measured: pd.DataFrame, *, beta: float, zeta2: float, zeta1: float = 1.0) -> pd.DataFrame:
    """Compute J's bound on the squared gradient norm round by round, term by term.

    The gradient noise stands in place of its bound through the data: 2 Theta^2 sigma~_k^2 / D_k (J 52) is replaced by
    the variance sigma_k^2 of device k's gradients, which it bounds, and devices count with D_k / D as in (51). So (b)
    and (c) are at most those of (9). Lambda is the least that (14) admits at the round's learning rate.

    Args:
        measured: rounds of one run, as `measured_rounds` gives them.

    Returns:
        variant, seed, cell, session, round, gradient2 (the left side), a, b, c, d, bound (their sum), control
        (Lambda;
        NaN with all terms where the learning rate is too large for any below 1; where it is 0, (a) and the bound are
        NaN), lr, lr_limit_steps (J 65; negative
        from four local steps on: no rate is small enough there) and lr_limit_drift (J 14 for Lambda -> 1).

    Source: J, Theorem 1 and appendix B.
    """
    lr, e_max = measured["theory_lr"], measured["theory_steps_max"]
    pairs = e_max * (e_max - 1)
    x = 4 * beta**2 * lr**2 * pairs  # (14): x (zeta1 + Lambda) <= Lambda
    control = (x * zeta1 / (1 - x)).where(x < 1)
    control = control.where(control < 1)
    slack = 1 - control
    bounds = measured[[*SESSION, "round"]].copy()
    bounds["gradient2"] = measured["theory_gradient2"]
    bounds["a"] = 2 * (measured["theory_loss"] - measured["theory_loss_after"]) / (lr.where(lr > 0) * slack)
    bounds["b"] = 2 * beta * lr * measured["theory_noise_steps"] / slack
    bounds["c"] = 2 * beta**2 * lr**2 * measured["theory_noise_drift"] / slack
    bounds["d"] = 8 * beta**2 * lr**2 * pairs * zeta2 / slack
    bounds["bound"] = bounds[TERMS].sum(axis=1, skipna=False)
    bounds["control"] = control
    bounds["lr"] = lr
    bounds["lr_limit_steps"] = (0.5 - (1 / measured["theory_steps_min"] - 1) ** 2) / beta
    bounds["lr_limit_drift"] = 1 / (2 * beta * np.sqrt((zeta1 + 1) * pairs.where(pairs > 0)))
    return bounds


def along(runs: Runs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute the bound along every run; returns it by round, and the constants with the means over rounds by run."""
    measured = measured_rounds(runs)
    estimated = constants(measured)
    parts, rows = [], measured.groupby(RUN).indices
    for run in estimated.itertuples():
        own = measured.iloc[rows[run.variant, run.seed]]
        parts.append(theorem1(own, beta=float(run.beta), zeta2=float(run.zeta2)))
    by_round = pd.concat(parts, ignore_index=True)
    columns = ["gradient2", *TERMS, "bound", "lr", "lr_limit_steps", "lr_limit_drift"]
    means = by_round.groupby(RUN)[columns].mean()
    means["without_bound"] = by_round["bound"].isna().groupby([by_round[c] for c in RUN]).sum()
    return by_round, estimated.merge(means.reset_index(), on=RUN)
