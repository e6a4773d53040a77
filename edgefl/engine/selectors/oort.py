"""Choose the most useful devices that are not too slow."""

import math
from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory
from edgefl.engine.selectors._oort_scores import at_quantile, granted_utility, news, paced, scores


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
        arrived, failed = news(candidates, memory)
        granted = granted_utility(candidates, utility, arrived, failed, memory)
        fails = np.isfinite(granted)
        known, utility = known | fails, np.where(fails, granted, utility)
        unknown = fails | np.isnan(candidates.duration_s)
        duration = np.where(unknown, candidates.total_s, candidates.duration_s)
        told = paced(
            candidates,
            utility,
            arrived,
            memory,
            begin=self.pace,
            step=self.pacer_step,
            delta=self.pacer_delta,
        )
        told["granted"] = dict(memory.get("granted", {})) | dict(
            zip(candidates.ids, granted.tolist(), strict=True)
        )
        now = candidates.turn + 1
        prefer_s = math.inf if told["pace"] >= 100 else at_quantile(duration, told["pace"] / 100)
        slow = np.where(duration > prefer_s, (prefer_s / np.maximum(duration, 1e-4)) ** self.penalty, 1.0)
        least = memory.get("least", self.exploration_min)
        explore = max(memory.get("explore", self.exploration) * self.exploration_decay, least)

        played, new = np.flatnonzero(known), np.flatnonzero(~known)
        age = np.where(known, candidates.age, 0.0)
        score = (scores(utility, now - age, now, self.clip) * slow)[played]
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
