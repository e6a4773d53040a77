"""Choose the most useful devices that are not too slow."""

import math
from typing import Any, ClassVar

import numpy as np

from edgefl.channel.schedulers import BoolArray
from edgefl.channel.units import FloatArray
from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class Oort(CountedDecider):
    """Choose devices of high utility, with a penalty for slow devices, and some new devices, fast ones first.

    Lai et al., Oort, OSDI 2021, following the authors' code (SymbioticLab/Oort, oort/oort.py) with the constants of
    its argParser.py, except for `pace`, whose value 101 there leaves slow devices unpenalised; the copies of the code
    in FedScale and Plato differ from it. Left out: the list of devices that have taken part too often, which the
    authors' code disables. Utility is the number of samples times the loss of the received model on the device's
    first mini-batch; the authors use the root mean square of its samples' losses, which is never lower. New devices
    are ranked by the number of samples that they process and their expected duration on an equal share. A device with
    a lost update is no longer new: as in FedScale, it has the mean utility of the updates that arrived at that time,
    and its expected duration.
    """

    asks_loss: ClassVar[bool] = True
    exploration: ClassVar[float] = 0.9  # initial share of new devices, before the first decay
    exploration_decay: ClassVar[float] = 0.98  # factor on this share per round
    exploration_min: ClassVar[float] = 0.2  # lowest share of new devices
    penalty: ClassVar[float] = 2.0  # alpha: exponent of the penalty for slow devices
    clip: ClassVar[float] = 0.95  # quantile at which utilities are clipped
    cut_off: ClassVar[float] = 0.7  # share of the lowest chosen score that a device needs to be drawn
    window: ClassVar[float] = 5.0  # pool from which new devices are drawn, as a multiple of their number
    pace: ClassVar[float] = 30.0  # initial percentile of durations without penalty
    pacer_step: ClassVar[int] = 20  # rounds between changes of the percentile
    pacer_delta: ClassVar[float] = 10.0  # size of a change of the percentile

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        known = np.isfinite(candidates.loss) & (candidates.completed > 0)
        utility = np.where(known, candidates.samples * candidates.loss, candidates.samples)
        arrived, failed = _news(candidates, memory)
        granted = _granted_utility(candidates, utility, arrived, failed, memory)
        fails = np.isfinite(granted)
        known, utility = known | fails, np.where(fails, granted, utility)
        unknown = fails | np.isnan(candidates.duration_s)
        duration = np.where(unknown, candidates.total_s, candidates.duration_s)
        told = self._paced(candidates, utility, arrived, memory)
        told["granted"] = dict(memory.get("granted", {})) | dict(
            zip(candidates.ids, granted.tolist(), strict=True)
        )
        now = candidates.turn + 1
        prefer_s = math.inf if told["pace"] >= 100 else _at_quantile(duration, told["pace"] / 100)
        slow = np.where(duration > prefer_s, (prefer_s / np.maximum(duration, 1e-4)) ** self.penalty, 1.0)
        least = memory.get("least", self.exploration_min)
        explore = max(memory.get("explore", self.exploration) * self.exploration_decay, least)

        played, new = np.flatnonzero(known), np.flatnonzero(~known)
        age = np.where(known, candidates.age, 0.0)
        score = (_scores(utility, now - age, now, self.clip) * slow)[played]
        exploited = _drawn(played, score, min(int(number * (1 - explore)), len(played)), self.cut_off, rng)
        many, worth = min(len(new), number - len(exploited)), (utility * slow)[new]
        best = np.argsort(-worth, kind="stable")[: int(self.window * many)]
        explored = _by_weight(new[best], worth[best], many, rng)
        picked = np.concatenate([exploited, explored])
        rest = np.setdiff1d(np.arange(len(candidates)), picked)
        others = rng.permutation(rest)[: number - len(picked)]
        if not len(new):
            explore = least = 0.0
        told |= {"explore": explore, "least": least, "exploited": candidates.ids_at(exploited)}
        return Decision(candidates.ids_at(np.concatenate([picked, others])), memory=told)

    def _paced(
        self, candidates: Candidates, utility: FloatArray, arrived: BoolArray, memory: Memory
    ) -> dict[str, Any]:
        """Return the pacer's state after the last round: the exploited devices' mean utilities, and the percentile.

        Every `step` rounds, the sum of the means of the last `step` rounds is compared with the sum of the `step`
        means before: a change within 10 % raises the percentile by `delta`, and one of at least 500 % lowers it.
        """
        history, pace = list(memory.get("history", [])), float(memory.get("pace", self.pace))
        mine = np.isin(candidates.ids, memory.get("exploited", [])) & arrived
        history.append(float(utility[mine].sum() / (mine.sum() + 1e-4)))
        now, step, delta = candidates.turn + 1, self.pacer_step, self.pacer_delta
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


def _at_quantile(values: FloatArray, share: float) -> float:
    """Return the value at index int(n x share) of n sorted values, or the last value if that index is n."""
    return float(np.sort(values)[min(int(len(values) * share), len(values) - 1)])


def _scores(utility: FloatArray, last_round: FloatArray, now: int, clip: float) -> FloatArray:
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
    scaled: FloatArray = (np.minimum(utility, _at_quantile(positive, clip)) - least) / span
    return scaled + np.sqrt(0.1 * math.log(max(now, 1)) / np.maximum(last_round, 1.0))


def _news(candidates: Candidates, memory: Memory) -> tuple[BoolArray, BoolArray]:
    """Return [ids] whether an update has arrived since the last decision, and whether all parts since then failed."""
    taken, arrived = (
        getattr(candidates, name) > [memory.get(name, {}).get(id_, 0) for id_ in candidates.ids]
        for name in ("taken", "completed")
    )
    return arrived, taken & ~arrived


def _granted_utility(
    candidates: Candidates,
    utility: FloatArray,
    arrived: BoolArray,
    failed: BoolArray,
    memory: Memory,
) -> FloatArray:
    """Return [ids] the utility of devices with a lost last update, nan for other devices.

    It is the mean utility of the updates that arrived in the meantime, 0 if there is none.

    Args:
        utility: [ids] utility of devices with an update. arrived, failed: see `_news`.
    """
    before = memory.get("granted", {})
    granted = np.array([before.get(id_, math.nan) for id_ in candidates.ids])
    mean = float(utility[arrived].sum()) / max(1, int(arrived.sum()))
    return np.where(failed, mean, np.where(arrived, math.nan, granted))


def _drawn(
    places: np.ndarray, score: np.ndarray, many: int, cut_off: float, rng: np.random.Generator
) -> np.ndarray:
    """Draw devices with probabilities proportional to their scores, among those with high enough scores."""
    if not many:
        return places[:0]
    order = np.argsort(-score, kind="stable")
    least = score[order[min(many, len(order) - 1)]] * cut_off
    near = order[score[order] >= least]
    return _by_weight(places[near], score[near], many, rng)


def _by_weight(places: np.ndarray, weight: np.ndarray, many: int, rng: np.random.Generator) -> np.ndarray:
    """Draw devices without replacement in proportion to their weights."""
    shares = np.maximum(weight, 1e-12)
    return rng.choice(places, many, replace=False, p=shares / shares.sum()) if many else places[:0]
