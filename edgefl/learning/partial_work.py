"""Devices that do less than was asked for: stragglers whose unfinished work is taken."""

from collections.abc import Sequence

import numpy as np


def lengths(
    share: float, asked: int, who: np.random.Generator, each: Sequence[np.random.Generator]
) -> list[int]:
    """Return how many of `asked` epochs, or steps, each device does; a share of them 1 to E-1, as likely each.

    Which ones is drawn anew in each round. Their updates count like all others; to drop stragglers, let fewer devices
    take part: of ten of which five are dropped, `rounds.selector: {name: uniform, count: 5}` leaves as many.

    Source: Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020, section 5.2 (0, 0.5 and 0.9 of
    ten devices), as its public code does it.

    Args:
        share: `learning.local.partial_work`.
        who: draws the stragglers.
        each: of each device, draws what it does as one.
    """
    few = set(who.permutation(len(each))[: round(share * len(each))].tolist())
    return [int(rng.integers(1, asked)) if k in few else asked for k, rng in enumerate(each)]
