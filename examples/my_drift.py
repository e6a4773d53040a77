"""Turn images into their negatives."""

from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Drift


class Negative(Drift):
    """Replace each input x by the data's maximum minus x; labels do not change.

    The parameters that all drifts have determine when, where and on how many devices this happens.
    """

    def change(self, split: Split, classes: int) -> Split:
        return Split(split.x.max() - split.x, split.y, split.groups)
