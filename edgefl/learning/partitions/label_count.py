"""Label count: all devices have the same number of labels."""

import numpy as np
from pydantic import Field

from edgefl.learning.partitions._by_weight import ByWeight


class LabelCount(ByWeight):
    """Give each device a fixed number of labels; devices with the same label share its samples equally.

    Labels with the same number of samples have the same number of devices, give or take one. `two_shard` also gives a
    device two of ten labels, but the device keeps its samples through all sessions; `log_normal` and `power_law`
    combine the number of labels with uneven sizes.

    Source: Li, Diao, Chen and He, Federated Learning on Non-IID Data Silos, ICDE 2022, section IV-A, #C = k. The
    paper draws labels independently, so that some labels have more devices than others.
    """

    labels_per_device: int = Field(2, ge=1, le=1_000_000, description="how many labels each device has")

    def weights(self, devices: int, rng: np.random.Generator) -> np.ndarray:
        return np.ones(devices)
