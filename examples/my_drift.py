"""Turn images into their negatives."""

from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Drift


class Negative(Drift):
    """Replace each input by the data's brightest value minus itself; labels stay.

    The parameters common to all drifts say when, where and for how many devices.
    """

    def change(self, split: Split, classes: int) -> Split:
        return Split(split.x.max() - split.x, split.y, split.groups)
