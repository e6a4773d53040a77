"""Distinct: no two devices have a label in common."""

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import PartitionInputs, Staying
from edgefl.rng import Streams


class Distinct(Staying):
    """Give each device all samples of a random set of labels that no other device has.

    The sets cover all labels and differ in size by at most one: each of 10 devices has one label out of 10, or
    ten out of 100. Source: the journal paper, appendix E; the early version, section 6.
    """

    def owners(
        self, labels: np.ndarray, devices: int, streams: Streams, inputs: PartitionInputs
    ) -> np.ndarray:
        classes = int(labels.max()) + 1
        if devices > classes:
            raise EdgeflError(
                f"{classes} labels are too few for {devices} devices with different labels: choose at most {classes}"
                " devices or a data set with more labels"
            )
        owner_of_label = np.empty(classes, np.int64)
        owner_of_label[streams("label_sets").permutation(classes)] = np.arange(classes) % devices
        return owner_of_label[labels]
