"""Images become their negatives."""

from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Drift


class Negative(Drift):
    """Each input becomes the data's brightest minus itself; labels stay.

    When, where and for how many devices is said by the parameters that all drifts have.
    """

    def change(self, split: Split, classes: int) -> Split:
        return Split(split.x.max() - split.x, split.y, split.groups)
