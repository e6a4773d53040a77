"""Power law: a few devices hold most samples."""

import numpy as np
from pydantic import Field

from edgefl.learning.partitions._by_weight import ByWeight


class PowerLaw(ByWeight):
    """Draw the devices' sizes from a power law: the density at n samples is proportional to n^-exponent.

    Sizes are Pareto distributed above a minimum, which follows from the session's number of samples, that is, the sum
    of all sizes. With an exponent of 2 or less the largest device holds a large part of all samples.

    Source: FedProx (Li et al., MLSys 2020), which describes the sizes in its MNIST task this way, with two digits per
    device (`labels_per_device: 2`). The paper states no exponent, and its code uses a log-normal distribution
    (`log_normal`). The default is Zipf's law; see Clauset, Shalizi and Newman, SIAM Review 2009, on the exponent.
    """

    exponent: float = Field(
        2.0, ge=1.1, le=100, description="exponent of the density; the smaller, the more uneven"
    )

    def weights(self, devices: int, rng: np.random.Generator) -> np.ndarray:
        return 1.0 + rng.pareto(self.exponent - 1.0, devices)
