"""Draw how many epochs or steps each device does, fewer for stragglers."""

from collections.abc import Sequence

import numpy as np


def lengths(
    share: float, asked: int, who: np.random.Generator, each: Sequence[np.random.Generator]
) -> list[int]:
    """Draw each device's number of epochs, or steps: `asked`, or, for a straggler, uniform from 1 to `asked` - 1.

    Stragglers are drawn in each round, and their updates count like all other updates. To drop stragglers instead,
    let fewer devices take part: `rounds.selector: {name: uniform, count: 5}` is like dropping five of ten devices.

    Source: Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020, section 5.2 (0, 50 or 90 % of ten
    devices are stragglers), as in the paper's public code.

    Args:
        share: share of stragglers, `learning.local.partial_work`.
        who: generator that draws the stragglers.
        each: generators, one per device, that draw the numbers of epochs or steps of stragglers.
    """
    few = set(who.permutation(len(each))[: round(share * len(each))].tolist())
    return [int(rng.integers(1, asked)) if k in few else asked for k, rng in enumerate(each)]
