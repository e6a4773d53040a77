"""Dirichlet label mix: each device draws its own mix of labels; all have the same number of samples."""

import numpy as np
from pydantic import Field

from edgefl.learning.partitions._label_sets import RecurringLabels, require_samples


class DirichletMix(RecurringLabels):
    """Draw each device's mix of labels from Dir(alpha, ..., alpha), and its samples by this mix.

    All devices have the same number of samples, unlike with `dirichlet`, which spreads each label. Devices draw in
    random order without replacement; if a label is used up, the rest is drawn from the device's other labels, in
    proportion to the labels' shares in the mix. If nearly all samples are dealt, the last devices get any remaining
    samples. If labels are not equally frequent, their alphas are proportional to their frequencies, with mean alpha.

    Source: Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual
    Classification, 2019, who write Dir(alpha p) with p summing to 1: their alpha is the alpha here times the number
    of labels. For CIFAR, FLASH uses alpha 0.1 and 0.6 and 500 devices with 100 samples each, after Reddi et al., ICLR
    2021, whose alpha is per label.
    """

    alpha: float = Field(0.3, gt=0, le=1e9, description="concentration; the smaller, the more uneven")
    samples: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="number of samples of each device; if left out, all samples are divided equally",
    )

    def deal(
        self, labels: np.ndarray, pool: np.ndarray, devices: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        require_samples(len(pool), devices, self.samples or 1)
        count = self.samples or len(pool) // devices
        # the samples of each label in random order; each device takes the next samples
        piles = [rng.permutation(pool[labels[pool] == label]) for label in np.unique(labels[pool])]
        sizes = np.array([len(pile) for pile in piles])
        mixes = rng.dirichlet(self.alpha * len(sizes) * sizes / sizes.sum(), devices)
        dealt: list[np.ndarray] = [pool[:0]] * devices
        used = np.zeros(len(piles), np.int64)
        for device in rng.permutation(devices):
            taken = _drawn(mixes[device], count, sizes - used, rng)
            parts = [pile[u : u + t] for pile, u, t in zip(piles, used, taken, strict=True)]
            dealt[device] = np.sort(np.concatenate(parts))
            used += taken
        return dealt


def _drawn(mix: np.ndarray, count: int, left: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw how many samples of each label [C] a device gets: `count` in all, in shares `mix`, at most `left` each."""
    taken = np.zeros_like(left)
    while (missing := count - int(taken.sum())) > 0:
        rest = left - taken
        shares = np.where(rest > 0, mix, 0.0)
        if not shares.sum() > 0:  # if the labels of the device's mix are used up, take any other labels
            shares = rest.astype(float)
        taken += np.minimum(rng.multinomial(missing, shares / shares.sum()), rest)
    return taken
