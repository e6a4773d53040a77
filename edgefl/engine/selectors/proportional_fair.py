"""Choose the devices with the best channel relative to their own mean channel."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class ProportionalFair(CountedDecider):
    """Choose the devices with the highest current SNR relative to their mean SNR.

    Yang, Liu, Quek and Poor, IEEE Trans. Commun. 2020, policy PF: the current SNR is that of the uplink in the next
    slot, with fading; the mean is an exponential moving average over the rounds in which the device was present. If
    gains do not change, fading alone decides, and all devices take part equally often; ties are broken at random.
    """

    sees_fading: ClassVar[bool] = True
    past: ClassVar[float] = 0.9  # weight of the past in the moving average

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        means: dict[int, float] = dict(memory.get("snr", {}))
        # the snr_up of a static link already includes its constant fading
        now = candidates.snr_up * np.where(candidates.static, 1.0, candidates.fading)
        for id_, snr in zip(candidates.ids, candidates.snr_up.tolist(), strict=True):
            means[id_] = self.past * means.get(id_, snr) + (1.0 - self.past) * snr
        # without fading all ratios are 1 up to rounding, which must not decide
        fair = np.round(now / np.array([means[id_] for id_ in candidates.ids]), 12)
        order = np.lexsort((rng.random(len(fair)), -fair))
        return Decision(candidates.ids_at(order[:number]), memory={"snr": means})
