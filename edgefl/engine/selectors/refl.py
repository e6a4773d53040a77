"""Choose the devices that are seldom present."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class Refl(CountedDecider):
    """Choose the devices that are present least often; break ties at random.

    After Abdelmoniem et al., REFL, EuroSys 2023: the least available devices come first, so that rarely present
    devices contribute. In the paper devices forecast their availability; here availability is the share of past
    rounds in which a device was present, with a half-life of 100 rounds. REFL's other part, the aggregation of stale
    updates, is `rounds.server: semi_synchronous`.
    """

    half_life: ClassVar[float] = 100.0  # half-life of a device's availability, in rounds

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        keep = 0.5 ** (1.0 / self.half_life)
        there: dict[int, float] = {id_: keep * seen for id_, seen in memory.get("there", {}).items()}
        for id_ in (*candidates.ids, *candidates.busy):
            there[id_] = there.get(id_, 0.0) + 1.0 - keep
        seen = np.array([there[id_] for id_ in candidates.ids])
        order = np.lexsort((rng.random(len(seen)), np.round(seen, 12)))
        return Decision(candidates.ids_at(order[:number]), memory={"there": there})
