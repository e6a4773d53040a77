"""Report the journal paper's convergence theory, Theorem 1, with constants estimated along a run."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import DASHES, EDGE, INK, MARKS, PALETTE, SMALL, SOFT, legend, panels
from edgefl.analysis.measures.metrics import RUN, SESSION, training_rounds
from edgefl.analysis.page.markup import Quantity, quantities
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.choices import Names, Out, Partial
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_as_variants

TERMS = ["a", "b", "c", "d"]
MEASURED = "theory_lr"  # the first of the columns that `learning.theory` adds


def report_theory(
    *runs: Paths | Runs, partial: Partial = False, names: Names = (), out: Out = None
) -> Report:
    """Compute the bound along all runs, and write theory.csv, theory_rounds.csv, theory.png and .pdf.

    Raises:
        ValueError: no run is completed, no run has measured gradients, or the folder cannot be written.
    """
    given = given_runs(runs, load_as_variants, names=names, partial=partial)
    by_round, by_run = _along(given)
    lengths = training_rounds(given.rounds).groupby("session")["round"].max()
    notes = [*given.left_out, *given.remarks]
    variants = by_round["variant"].nunique()
    if variants > MOST_PANELS:
        notes.append(f"the figure shows the first {MOST_PANELS} of {variants} variants")
    return Report(
        given.folder(out),
        tables=[("", quantities(by_run, ROWS))],
        sentences=[*EXPLANATIONS, *noted(notes)],
        look=[("Round by round", "theory_rounds.csv"), ("Figure", "theory.png", " and .pdf")],
        numbers={"theory_rounds.csv": by_round, "theory.csv": by_run},
        figures={"theory": theory_figure(by_round, lengths)},
    ).write()


def _measured_rounds(runs: Runs) -> pd.DataFrame:
    """Keep the training rounds in which a run has measured gradients; refuse runs without such rounds."""
    rounds = training_rounds(runs.rounds)
    if MEASURED not in rounds or rounds[MEASURED].isna().all():
        raise ValueError(
            f"the runs in {runs.path} have measured no gradients: run them with"
            " --set learning.theory=1 --set learning.local.momentum=0 (the algorithm must be fedavg; a larger"
            " interval saves time, but measures nothing in sessions of fewer rounds)"
        )
    return rounds[rounds[MEASURED].notna()]


def constants(measured: pd.DataFrame) -> pd.DataFrame:
    """Estimate the bound's constants for each run, one row per run.

    Returns:
        variant, seed; beta: the largest secant slope of a device's gradient between two consecutive global models (a
        lower bound of the true smoothness, which is a maximum over all models); beta_median: the median of these
        slopes; zeta2: the largest sum_k a_k |grad F_k|^2 - |grad F|^2 seen, with zeta1 = 1 (exact for the models and
        shares seen, only a lower bound for others); rounds, the number of measured rounds.
    """
    divergence = measured["theory_gradient2_devices"] - measured["theory_gradient2"]
    by_run = measured.assign(divergence=divergence.clip(lower=0.0)).groupby(RUN, sort=False)
    columns = {"beta": ("theory_smoothness", "max"), "beta_median": ("theory_smoothness", "median")}
    columns |= {"zeta2": ("divergence", "max"), "rounds": ("divergence", "size")}
    return by_run.agg(**columns).reset_index()


def theorem1(measured: pd.DataFrame, *, beta: float, zeta2: float, zeta1: float = 1.0) -> pd.DataFrame:
    """Compute J's bound on the squared gradient norm round by round, term by term.

    The bound on the gradient noise through the data, 2 Theta^2 sigma~_k^2 / D_k (J 52), is replaced by the noise that
    it bounds, the measured variance sigma_k^2 of device k's gradients, and devices count with D_k / D as in (51).
    Therefore (b) and (c) are at most as large as in (9). Lambda is the smallest value that (14) admits at the round's
    learning rate.

    Args:
        measured: the rounds of one run, as `_measured_rounds` returns them.

    Returns:
        variant, seed, cell, session, round, gradient2 (the left side), a, b, c, d, bound (their sum), control
        (Lambda; if the learning rate is too large for any Lambda below 1, it and all terms are NaN; if the rate is 0,
        (a) and the bound are NaN), lr, lr_limit_steps (J 65; negative for four or more local steps: no rate is small
        enough) and lr_limit_drift (J 14 for Lambda -> 1).

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


def _along(runs: Runs) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute the bound along every run; return it by round, and constants and means over rounds by run."""
    measured = _measured_rounds(runs)
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


ROWS: dict[str, Quantity] = {
    "beta": ("smoothness β, largest secant", "{:.3g}", 1),
    "beta_median": ("smoothness, median", "{:.3g}", 1),
    "zeta2": ("divergence ζ₂ (ζ₁ = 1)", "{:.3g}", 1),
    "gradient2": ("squared gradient norm, mean", "{:.3g}", 1),
    "bound": ("bound (a) + (b) + (c) + (d)", "{:.3g}", 1),
    "a": ("(a) progress of the loss", "{:.3g}", 1),
    "b": ("(b) gradient noise", "{:.3g}", 1),
    "c": ("(c) gradient noise in client drift", "{:.3g}", 1),
    "d": ("(d) divergence of the devices", "{:.3g}", 1),
    "lr": ("learning rate, mean", "{:.3g}", 1),
    "lr_limit_steps": ("limit on the learning rate, (65)", "{:.3g}", 1),
    "lr_limit_drift": ("limit on the learning rate, (14) with Λ = 1", "{:.3g}", 1),
    "rounds": ("rounds measured", "{:.0f}", 1),
    "without_bound": ("rounds without a bound: learning rate 0, or above (14)", "{:.0f}", 1),
}
EXPLANATIONS = (
    "Theorem 1 of J is about plain SGD (momentum 0) and FedAvg: `learning.theory` refuses anything else.",
    "β is the largest change of a device's gradient in a round, divided by the distance by which the round moves the"
    " global model: a lower bound on the constant. ζ₂ is the largest difference seen between the devices' mean"
    " squared gradient norm and the squared norm of the global gradient. The noise is the variance of the gradients"
    " of 32 individual samples per device (for one device, with a relative error of about a quarter).",
    (
        "(b) and (c) use the measured variance, not its bound by the data's spread, so they never exceed J's terms."
    ),
    "The figure shows means over seeds; ticks mark rounds whose learning rate exceeds (14) for at least one seed.",
    "The limit in (65) is negative for four or more local steps: J's condition then admits no learning rate.",
)


MOST_PANELS = 4  # number of variants drawn below one another
MOST_MARKS = 10  # marks on a line
NAMED = {"a": "(a) progress", "b": "(b) steps", "c": "(c) drift", "d": "(d) divergence"}


def theory_figure(by_round: pd.DataFrame, lengths: pd.Series) -> Figure:
    """Draw, over rounds, the terms in the table of `_along`, their sum and the gradient that it bounds, by variant.

    Lines are means over seeds and cells. The axis is logarithmic: a term that is zero or negative in a round has a
    gap there. A round has no bound if the learning rate of one of the seeds is too large for (14). `lengths` has the
    number of training rounds of each session.
    """
    names = list(dict.fromkeys(by_round["variant"]))[:MOST_PANELS]
    starts = lengths.cumsum() - lengths
    figure, axes = panels(len(names), 0.9 + (2.3 if len(names) == 1 else 1.5 * len(names)), sharex=True)
    for ax, name in zip(axes, names, strict=True):
        own = by_round[by_round["variant"] == name]
        means = _means(own, starts)
        every = max(1, len(means) // MOST_MARKS)
        ax.plot(means["bound"], color=INK, linewidth=1.6, label="bound (sum)", zorder=5)
        ax.plot(means["gradient2"], color=SOFT, linewidth=2.6, alpha=0.55, label="‖∇F‖² seen", zorder=3)
        for number, (term, words) in enumerate(NAMED.items()):
            look = {"color": PALETTE[number], "linestyle": DASHES[1 + number], "marker": MARKS[number]}
            shown = means[term].where(means[term] > 0)
            if shown.notna().any():
                ax.plot(shown, linewidth=1.0, markersize=2.8, markevery=every, label=words, zorder=4, **look)
        without = means.index[means["bound"].isna() & means["gradient2"].notna()]
        if len(without):
            low = ax.get_xaxis_transform()
            ax.plot(
                without,
                [0.02] * len(without),
                "|",
                color=INK,
                markersize=5,
                transform=low,
                label="no bound (14)",
            )
        for start in starts.iloc[1:]:
            ax.axvline(start, color=EDGE, linewidth=0.6, zorder=1)
        ax.set_yscale("log")
        ax.minorticks_off()
        ax.set_xlim(0, 1.015 * lengths.sum())
        ax.set_ylabel("bound on ‖∇F‖²")
        if len(names) > 1:
            ax.set_title(name, fontsize=SMALL + 0.5, color=INK, loc="left", pad=3)
    axes[-1].locator_params("x", integer=True)
    axes[-1].set_xlabel("training round" + ("; lines mark where sessions begin" if len(starts) > 1 else ""))
    legend(figure, *axes)
    return figure


def _means(own: pd.DataFrame, starts: pd.Series) -> pd.DataFrame:
    """Average each round's terms over seeds and cells, NaN if a value is missing; an empty row separates sessions."""
    rounds = own.groupby(["session", "round"])[[*NAMED, "bound", "gradient2"]]
    means = rounds.mean().where(rounds.count().eq(rounds.size(), axis=0))
    places = means.index.get_level_values("session").map(starts) + means.index.get_level_values("round")
    empty = pd.DataFrame(float("nan"), starts.to_numpy() + 0.5, means.columns)
    return pd.concat([means.set_axis(places), empty]).sort_index()


def lemma1(
    *,
    strong_convexity: float,
    gradient_bound: float,
    types: Sequence[np.ndarray],
    types_after: Sequence[np.ndarray],
    samples: int,
    samples_after: int,
) -> float:
    """Bound the expected distance of the minimisers before and after clients change: the early version's Lemma 1.

    The constants belong to a problem, not a run: smallest curvature, largest gradient, and each client's samples.

    Args:
        strong_convexity: mu of all local losses.
        gradient_bound: the bound C on the norm of a sample's gradient.
        types: each client's distribution q over the samples of the universal data set, before the change.
        types_after: each client's distribution after the change.
        samples, samples_after: D, the number of samples of all clients before and after the change.

    Returns:
        The right side of (3). psi and the sum can be negative: the paper takes the sum's absolute value.

    Source: I, Lemma 1, (3) and (4).
    """
    before, after = np.asarray(types, float), np.asarray(types_after, float)

    def psi(one: np.ndarray, d_one: int, other: np.ndarray, d_other: int) -> np.ndarray:
        total = other.sum(axis=0)
        products = total**2 - (other**2).sum(axis=0)  # sum over ordered pairs i != j
        result: np.ndarray = one.sum(axis=0) / d_one - (products + total) / d_other
        return result

    least = np.minimum(psi(before, samples, after, samples_after), psi(after, samples_after, before, samples))
    noise = sum(math.sqrt(gradient_bound * math.pi / (12 * d)) for d in (samples, samples_after))
    return (noise + gradient_bound * abs(float(least.sum()))) / strong_convexity
