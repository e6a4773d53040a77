"""Oort's scores and pacer, with the formulas of the authors' code."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from edgefl.channel.schedulers import BoolArray
from edgefl.channel.units import FloatArray
from edgefl.engine.selectors import Candidates


def at_quantile(values: FloatArray, share: float) -> float:
    """Return the value at index int(n x share) of n sorted values, or the last value if that index is n."""
    return float(np.sort(values)[min(int(len(values) * share), len(values) - 1)])


def scores(utility: FloatArray, last_round: FloatArray, now: int, clip: float) -> FloatArray:
    """Return [n] scaled utilities with a bonus for devices that have not taken part for a long time.

    (min(U, quantile) - 0.999 min U) / (max U - 0.999 min U) + sqrt(0.1 ln R / L), where R is the round, counted from
    1, and L the round in which the device last took part; quantile, minimum and maximum are over positive utilities.

    Args:
        utility: [n] utilities U. last_round: [n] last rounds L, at least 1. clip: quantile that clips utilities.
    """
    positive = utility[utility > 0]
    if not len(positive):
        return np.ones(len(utility))
    least = float(positive.min()) * 0.999
    span = max(float(positive.max()) - least, 1e-4)
    scaled: FloatArray = (np.minimum(utility, at_quantile(positive, clip)) - least) / span
    return scaled + np.sqrt(0.1 * math.log(max(now, 1)) / np.maximum(last_round, 1.0))


def news(candidates: Candidates, memory: Mapping[str, Any]) -> tuple[BoolArray, BoolArray]:
    """Return [ids] whether an update has arrived since the last decision, and whether all parts since then failed."""
    taken, arrived = (
        getattr(candidates, name) > [memory.get(name, {}).get(id_, 0) for id_ in candidates.ids]
        for name in ("taken", "completed")
    )
    return arrived, taken & ~arrived


def granted_utility(
    candidates: Candidates,
    utility: FloatArray,
    arrived: BoolArray,
    failed: BoolArray,
    memory: Mapping[str, Any],
) -> FloatArray:
    """Return [ids] the utility of devices with a lost last update, nan for other devices.

    It is the mean utility of the updates that arrived in the meantime, 0 if there is none.

    Args:
        utility: [ids] utility of devices with an update. arrived, failed: see `news`.
    """
    before = memory.get("granted", {})
    granted = np.array([before.get(id_, math.nan) for id_ in candidates.ids])
    mean = float(utility[arrived].sum()) / max(1, int(arrived.sum()))
    return np.where(failed, mean, np.where(arrived, math.nan, granted))


def paced(
    candidates: Candidates,
    utility: FloatArray,
    arrived: BoolArray,
    memory: Mapping[str, Any],
    *,
    begin: float,
    step: int,
    delta: float,
) -> dict[str, Any]:
    """Return the pacer's state after the last round, with the exploited devices' mean utilities and the percentile.

    Every `step` rounds, the sum of the means of the last `step` rounds is compared with the sum of the `step` means
    before: a change within 10 % raises the percentile by `delta`, and a change of at least 500 % lowers it.
    """
    history, pace = list(memory.get("history", [])), float(memory.get("pace", begin))
    mine = np.isin(candidates.ids, memory.get("exploited", [])) & arrived
    history.append(float(utility[mine].sum() / (mine.sum() + 1e-4)))
    now = candidates.turn + 1
    if now >= 2 * step and now % step == 0:
        earlier, lately = sum(history[-2 * step : -step]), sum(history[-step:])
        if abs(lately - earlier) <= 0.1 * earlier:
            pace = min(100.0, pace + delta)
        elif abs(lately - earlier) >= 5 * earlier:
            pace = max(delta, pace - delta)
    seen = {
        name: dict(memory.get(name, {}))
        | dict(zip(candidates.ids, getattr(candidates, name).tolist(), strict=True))
        for name in ("taken", "completed")
    }
    return {"history": history[-2 * step :], "pace": pace, **seen}
