"""Training samples that no device holds: settings are chosen on them, and reported on data that chose nothing."""

from dataclasses import replace

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.rng import Streams


def split_off(data: Data, share: float | None, kinds: np.ndarray | None = None) -> tuple[Data, Split | None]:
    """Return the data with fewer training samples, and those taken from them; None: none are.

    Of each group of the data set (a writer, a role), or without groups of each label, the share is taken, rounded, in
    the order of the data. Which samples is a function of the data alone: all runs of a study, whatever their seeds,
    choose and are tested on the same ones.

    Args:
        kinds: [n] what stands for the training samples' labels; None: these are it.

    Raises:
        EdgeflError: the share is so small, or so large, that nothing is left on one side.
    """
    if share is None:
        return data, None
    train = data.train
    labels = train.y if kinds is None else kinds
    of = labels if train.groups is None else train.groups
    taken = np.zeros(len(train.y), dtype=bool)
    for each in np.unique(of).tolist():
        places = np.flatnonzero(of == each)
        order = Streams(0)("validation split", int(each)).permutation(len(places))
        taken[places[order[: round(share * len(places))]]] = True
    if taken.all() or not taken.any():
        raise EdgeflError(
            f"a share of {share:g} of each {'label' if train.groups is None else 'group'} is"
            f" {'all' if taken.all() else 'none'} of the {len(taken)} training samples",
            ("learning", "evaluation", "validation"),
        )
    return replace(data, train=train.part(~taken)), train.part(taken)
