"""Hold out training samples from all devices for choosing settings, so that test data are used for results only."""

from dataclasses import replace

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.rng import Streams


def split_off(data: Data, share: float | None, kinds: np.ndarray | None = None) -> tuple[Data, Split | None]:
    """Split validation samples off the training data; return the rest, and the validation samples or None.

    The share, rounded, is taken from each group of the data set (a writer, a role), or from each label if there are
    no groups, in the order of the data. The samples depend on the data only: all runs of a study, with any seed, have
    the same validation samples.

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
    for each in np.unique(of).tolist():
        places = np.flatnonzero(of == each)
        order = Streams(0)("validation split", int(each)).permutation(len(places))
        taken[places[order[: round(share * len(places))]]] = True
    if taken.all() or not taken.any():
        raise EdgeflError(
            f"a share of {share:g} of each {'label' if train.groups is None else 'group'} takes "
            f"{'all' if taken.all() else 'none'} of the {len(taken)} training samples: choose another share",
            ("learning", "evaluation", "validation"),
        )
    return replace(data, train=train.part(~taken)), train.part(taken)
