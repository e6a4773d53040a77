"""IID: every device holds the same mix of labels."""

import numpy as np

from edgefl.learning.partitions import by_device
from edgefl.learning.partitions._label_sets import RecurringLabels, require_samples


class Iid(RecurringLabels):
    """Deal all devices equal random shares; every sample of the session's labels goes to exactly one device.

    Device sizes differ by at most one sample; a device's label counts are hypergeometric, not equal.
    Source: McMahan et al., AISTATS 2017, section 3.
    """

    def deal(
        self, labels: np.ndarray, pool: np.ndarray, devices: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        require_samples(len(pool), devices)
        owner = rng.permutation(len(pool)) % devices
        return by_device(pool, owner, devices)
