"""Deal samples in unequal amounts, but with equal label mixes."""

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.learning.partitions import NO_INPUTS, PartitionInputs, Staying
from edgefl.rng import Streams


class QuantitySkew(Staying):
    """Give devices shares of the data from Dir(alpha, ..., alpha), all with the same mix of labels.

    Every device first gets one sample; the rest is dealt at random in proportion to the shares. Devices keep their
    data in all sessions. Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, section IV.
    """

    alpha: float = Field(0.5, gt=0, le=1e9, description="concentration; smaller is more unequal")

    def assign(
        self,
        labels: np.ndarray,
        devices: int,
        session: int,
        streams: Streams,
        inputs: PartitionInputs = NO_INPUTS,
    ) -> list[np.ndarray]:
        if len(labels) < devices:
            raise EdgeflError(f"{len(labels)} samples are too few for {devices} devices: use fewer devices")
        rng = streams("partition", self.key(session))
        sizes = 1 + rng.multinomial(len(labels) - devices, rng.dirichlet(np.full(devices, self.alpha)))
        return [np.sort(own) for own in np.split(rng.permutation(len(labels)), np.cumsum(sizes)[:-1])]
