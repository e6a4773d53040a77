"""Half: two populations with different labels."""

from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import PartitionInputs, Staying
from edgefl.learning.partitions._label_sets import deal_evenly
from edgefl.rng import Streams


class Half(Staying):
    """Give half of the labels to the first half of the devices, and the other labels to the second half.

    The devices that have a label share its samples; counts differ by at most one. With an odd number of devices the
    first half is larger; with an odd number of labels the first half of the devices has one label fewer. Every sample
    goes to exactly one device. If devices 0 to 4 and 5 to 9 take turns (the early version's pattern), sessions
    alternate between the two halves of the labels.

    Source: the journal paper, appendix E; the early version, section 6.
    """

    label_order: Literal["random", "ascending"] = Field(
        "random",
        description="ascending: the first devices have the smallest labels, as in the session papers' public files",
    )

    def owners(
        self, labels: np.ndarray, devices: int, streams: Streams, inputs: PartitionInputs
    ) -> np.ndarray:
        if devices < 2:
            raise EdgeflError("two halves need at least 2 devices")
        classes = int(labels.max()) + 1
        shuffled = np.arange(classes)
        if self.label_order == "random":
            shuffled = streams("label_sets").permutation(classes)
        common = self._common(classes)
        size = (classes + common) // 2
        first, second = shuffled[:size], shuffled[size - common :]
        halves = np.array_split(np.arange(devices), 2)
        rng = streams("partition", 0)
        owner = np.full(len(labels), -1)
        for label in range(classes):
            samples = rng.permutation(np.flatnonzero(labels == label))
            have = [half for half, known in zip(halves, (first, second), strict=True) if label in known]
            # a label in both sets is first divided in half, regardless of the sizes of the populations
            for half, part in zip(have, np.array_split(samples, len(have)), strict=True):
                deal_evenly(owner, part, half, rng)
        return owner

    def _common(self, classes: int) -> int:
        """Return the number of labels that the two halves share."""
        return 0
