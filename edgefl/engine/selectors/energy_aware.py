"""Choose the devices that can best afford a round."""

from typing import ClassVar

import numpy as np

from edgefl.engine.selectors import Candidates, CountedDecider, Decision, Memory


class EnergyAware(CountedDecider):
    """Choose the devices that would spend the smallest share of their charge or, on mains, the fewest joules.

    A device whose charge would fall below the reserve takes part only if there are too few other devices. Joules are
    the expected joules of the round: download, computing, upload, and the tails after the transfers. Devices on
    mains, which spend no charge, come before devices on a battery, in ascending order of their joules.
    """

    reserve: ClassVar[float] = 1.0  # minimum charge after the round, in multiples of the round's joules

    def decide(
        self, candidates: Candidates, number: int, rng: np.random.Generator, memory: Memory
    ) -> Decision:
        need_j, charge_j = candidates.total_j, candidates.charge_j
        short = charge_j < (1.0 + self.reserve) * need_j
        # a device on mains has share 0, even if its link carries no data and the round would never end
        share = np.where(np.isinf(charge_j), 0.0, need_j / np.clip(charge_j, 1e-30, 1e300))
        order = np.lexsort((rng.random(len(need_j)), need_j, share, short))
        return Decision(candidates.ids_at(order[:number]))
