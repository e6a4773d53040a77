"""Draw how many epochs or steps each device does, fewer for stragglers."""

import math
from collections.abc import Sequence

import numpy as np

ROUNDING = 1e-9  # tolerance in devices; a share of 0.29 of 100 devices is 29 devices


def lengths(
    share: float, asked: Sequence[int], who: np.random.Generator, each: Sequence[np.random.Generator]
) -> list[int]:
    """Draw each device's number of epochs, or steps: all n asked for, or, for a straggler, uniform from 1 to n - 1.

    Stragglers are drawn in each round, and their updates count like all other updates. Their number is rounded up or
    down at random, so that its mean is exact even if devices are dispatched one by one. To drop stragglers instead,
    let fewer devices take part: `rounds.selector: {name: uniform, count: 5}` is like dropping five of ten devices.

    Source: Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020, section 5.2 (0, 50 or 90 % of ten
    devices are stragglers), as in the paper's public code.

    Args:
        share: share of stragglers, `learning.local.partial_work`.
        asked: epochs or steps of each device without stragglers; a single one cannot be shortened.
        who: generator that draws the stragglers.
        each: generators, one per device, that draw the numbers of epochs or steps of stragglers.
    """
    order, wanted = who.permutation(len(each)).tolist(), share * len(each)
    few = set(order[: math.floor(wanted + ROUNDING + who.random() * (1 - 2 * ROUNDING))])
    return [
        int(rng.integers(1, most)) if k in few and most > 1 else most
        for k, (most, rng) in enumerate(zip(asked, each, strict=True))
    ]
