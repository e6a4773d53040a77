"""IID: every device holds the same mix of labels."""

import numpy as np

from edgefl.learning.partitions import NO_INPUTS, PartitionInputs, by_device
from edgefl.learning.partitions._label_sets import RecurringLabels, require_samples
from edgefl.rng import Streams


class Iid(RecurringLabels):
    """Equal random shares: every sample of the session's labels goes to exactly one device.

    Device sizes differ by at most one sample; the label counts of a device are hypergeometric, not equal.
    Source: McMahan et al., AISTATS 2017, section 3.
    """

    def assign(
        self,
        labels: np.ndarray,
        devices: int,
        session: int,
        streams: Streams,
        inputs: PartitionInputs = NO_INPUTS,
    ) -> list[np.ndarray]:
        pool = self._pool(labels, session, streams)
        require_samples(len(pool), devices)
        owner = streams("partition", self.key(session)).permutation(len(pool)) % devices
        return by_device(pool, owner, devices)
