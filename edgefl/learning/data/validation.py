"""Hold out training samples from all devices for choosing settings, so that test data are used for results only."""

import math
from dataclasses import replace

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.rng import Streams

ROUNDING = 1e-6  # tolerance in samples; 0.1 + 0.1 + 0.1 of ten samples are three samples


def split_off(data: Data, share: float | None, kinds: np.ndarray | None = None) -> tuple[Data, Split | None]:
    """Split validation samples off the training data; return the rest, and the validation samples or None.

    The share is taken from each group of the data set (a writer, a role), or from each label if there are no groups,
    and rounded up or down such that the share of all samples is exact: of groups of five samples, 0.1 takes
    a sample from every other group. A group with a single sample keeps this sample. The samples depend on the data
    only: all runs of a study, with any seed, have the same validation samples.

    Args:
        kinds: [n] values that replace the training samples' labels here; None: the labels are used.

    Raises:
        EdgeflError: the share is so small, or so large, that no training or no validation sample is left.
    """
    if share is None:
        return data, None
    train = data.train
    labels = train.y if kinds is None else kinds
    of = labels if train.groups is None else train.groups
    taken = np.zeros(len(train.y), dtype=bool)
    wanted, before = 0.0, 0
    for each in np.unique(of).tolist():
        places = np.flatnonzero(of == each)
        if len(places) == 1:
            continue
        order = Streams(0)("validation split", int(each)).permutation(len(places))
        wanted += share * len(places)
        upto = math.floor(wanted + 0.5 + ROUNDING)
        taken[places[order[: upto - before]]] = True
        before = upto
    if taken.all() or not taken.any():
        raise EdgeflError(
            f"a share of {share:g} of each {'label' if train.groups is None else 'group'} takes "
            f"{'all' if taken.all() else 'none'} of the {len(taken)} training samples: choose another share",
            ("learning", "evaluation", "validation"),
        )
    return replace(data, train=train.part(~taken)), train.part(taken)
