"""Dirichlet: spread each label unevenly over the devices."""

import numpy as np
from pydantic import Field

from edgefl.learning.partitions import by_device
from edgefl.learning.partitions._label_sets import RecurringLabels, require_samples


class Dirichlet(RecurringLabels):
    """Draw the N devices' shares of each label from Dir(alpha, ..., alpha).

    A device's share of a label is Beta(alpha, (N-1) alpha) with mean 1/N; small alpha puts a label on a few devices,
    large alpha approaches equal shares. Labels are drawn independently, so device sizes differ too. Every sample of
    the session's labels goes to exactly one device. Counts are shares x samples, rounded up or down at random such
    that their mean is exact.

    A device with fewer than `min_samples` then gets random samples one by one, each from the device with the most
    samples at that moment.

    Source: the journal paper, section VI ("they are distributed among the active devices"); Yurochkin et al., ICML
    2019; `DirichletPartitioner(self_balancing=False)` of flwr-datasets. flwr-datasets differs in two points: it
    rounds cumulative counts down, which gives the last device up to half an extra sample of every label, and it
    repeats the draw until every device has enough samples, which favours even draws and often fails for small alpha
    (alpha 0.1, 100 devices, 5 labels of 6,000 samples: a draw leaves 3 devices empty on average). For Hsu et al.,
    2019, who draw a label mix for each device, with devices of equal size, see `dirichlet_mix`.
    """

    alpha: float = Field(0.3, gt=0, le=1e9, description="concentration; the smaller, the more uneven")
    min_samples: int = Field(1, ge=1, le=1_000_000_000, description="minimum number of samples per device")

    def deal(
        self, labels: np.ndarray, pool: np.ndarray, devices: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        require_samples(len(pool), devices, self.min_samples)
        owner = np.empty(len(pool), np.int64)
        for label in np.unique(labels[pool]):
            samples = rng.permutation(np.flatnonzero(labels[pool] == label))
            owner[samples] = self._owners(len(samples), devices, rng)
        self._top_up(owner, devices, rng)
        return by_device(pool, owner, devices)

    def _owners(self, samples: int, devices: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the devices that own the samples of one label, in ascending order, [samples]."""
        upto = np.cumsum(rng.dirichlet(np.full(devices, self.alpha)))[:-1] * samples
        # one offset for all cuts, so that the count between two cuts is their distance rounded without bias
        cuts = np.floor(upto + rng.random())
        return np.searchsorted(cuts, np.arange(samples), side="right")

    def _top_up(self, owner: np.ndarray, devices: int, rng: np.random.Generator) -> None:
        """Move samples between owners, in place, until each device has `min_samples`.

        The loop ends, because as long as a device has less than the minimum, the largest device has more.
        """
        counts = np.bincount(owner, minlength=devices)
        for device in np.flatnonzero(counts < self.min_samples):
            while counts[device] < self.min_samples:
                giver = counts.argmax()
                owner[rng.choice(np.flatnonzero(owner == giver))] = device
                counts[giver] -= 1
                counts[device] += 1
