"""Partial overlap: two populations that have some labels in common."""

from pydantic import Field

from edgefl.learning.partitions._label_sets import shared_labels
from edgefl.learning.partitions.half import Half


class PartialOverlap(Half):
    """Divide the labels like `half`, but into overlapping sets: with overlap 0.2, each set has 60 % of all labels.

    Samples of a common label are split equally between the two halves of the devices. With overlap 0 this is `half`.
    Source: the journal paper, appendix E; the early version, section 6.
    """

    overlap: float = Field(0.2, ge=0, lt=1, description="share of all labels that are in both sets")

    def _common(self, classes: int) -> int:
        what = f"{classes} labels into two sets"
        return shared_labels(self.overlap, classes, range(classes), what)
