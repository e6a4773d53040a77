"""The bound along runs in words and rounded numbers."""

import pandas as pd

from edgefl.analysis.tables.runs import named_runs

ROWS = {
    "beta": "smoothness β, largest secant",
    "beta_median": "smoothness, median",
    "zeta2": "divergence ζ₂ (ζ₁ = 1)",
    "gradient2": "squared gradient norm, mean",
    "bound": "bound (a) + (b) + (c) + (d)",
    "a": "(a) progress of the loss",
    "b": "(b) noise of the steps",
    "c": "(c) noise of the drift",
    "d": "(d) divergence of the devices",
    "lr": "learning rate, mean",
    "lr_limit_steps": "its limit by (65)",
    "lr_limit_drift": "its limit by (14), Λ = 1",
    "rounds": "rounds measured",
    "without_bound": "of them beyond (14), or rate 0: no bound",
}
EXPLANATIONS = (
    "Theorem 1 of J is about plain SGD (momentum 0) and FedAvg: `learning.theory` is refused elsewhere.",
    "β: the largest change of a device's gradient between the models before and after a round, over their distance: a"
    " lower bound of the constant. ζ₂: the largest difference seen. Noise: variance of single gradients, from"
    " 32 samples of each device (relative error about a quarter for one device).",
    "(b) and (c) with the measured variance in place of its bound by the data's spread; they are at most J's.",
    "Figure: means over seeds; ticks mark rounds whose learning rate is beyond (14) with one of them.",
    "The limit by (65) is negative from four local steps on: J's condition then admits no learning rate.",
)


def headline(by_run: pd.DataFrame) -> pd.DataFrame:
    """Write the constants, the terms and the limits, [quantities x runs]; of many runs, [quantities x variants]."""
    named = named_runs(by_run)
    return pd.DataFrame(
        {str(name): [_text(key, row[key]) for key in ROWS] for name, row in named.iterrows()},
        index=list(ROWS.values()),
    )


def _text(key: str, value: float) -> str:
    return f"{value:.0f}" if key in ("rounds", "without_bound") else "—" if pd.isna(value) else f"{value:.3g}"
