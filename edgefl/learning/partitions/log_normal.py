"""Log-normal: the logarithms of devices' numbers of samples are normally distributed."""

import numpy as np
from pydantic import Field

from edgefl.learning.partitions._by_weight import ByWeight


class LogNormal(ByWeight):
    """Draw log-normally distributed sizes of devices: a size's logarithm is normal with standard deviation sigma.

    The mean follows from the session's number of samples, which is the sum of all sizes. With sigma = 0.3 sizes
    differ by about a third; with sigma = 2 one device in six has less than a seventh of the median.

    Source: the code of FedProx (Li et al., MLSys 2020), which divides the samples of each digit of MNIST among the
    devices that have the digit by log-normal shares of sigma 2, two digits per device (`labels_per_device: 2`):
    https://github.com/litian96/FedProx/blob/master/data/mnist/generate_niid.py. That code draws a share for each
    digit of a device; here, one weight per device applies to all its labels. FedLab's `lognormal_unbalance_split`
    draws such sizes, but ignores labels.
    """

    sigma: float = Field(
        2.0, gt=0, le=10, description="standard deviation of the logarithm; the larger, the more uneven"
    )

    def weights(self, devices: int, rng: np.random.Generator) -> np.ndarray:
        return rng.lognormal(0.0, self.sigma, devices)
