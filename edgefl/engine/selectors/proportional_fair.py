"""The devices whose channel is good for them."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class ProportionalFair(CountedDecider):
    """Take the devices of the highest SNR now over their mean SNR.

    Yang, Liu, Quek and Poor, IEEE Trans. Commun. 2020, policy PF: now is the uplink's SNR in the slot that comes,
    with its fading; the mean is that of the rounds so far in which the device was there, which forgets. Where gains
    stay it is the fading alone that decides, and all take part alike.
    """

    sees_fading: ClassVar[bool] = True
    past: ClassVar[float] = 0.9  # weight of the past in the mean SNR

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        means: dict[int, float] = dict(memory.get("snr", {}))
        # of a link that does not fade, snr_up has its constant fading already
        now = candidates.snr_up * np.where(candidates.static, 1.0, candidates.fading)
        for id_, snr in zip(candidates.ids, candidates.snr_up.tolist(), strict=True):
            means[id_] = self.past * means.get(id_, snr) + (1.0 - self.past) * snr
        fair = now / np.array([means[id_] for id_ in candidates.ids])
        order = np.lexsort((rng.random(len(fair)), -fair))
        return Decision(candidates.ids_at(order[:number]), memory={"snr": means})
