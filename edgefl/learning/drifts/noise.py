"""Add noise to the inputs."""

from typing import ClassVar

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Split
from edgefl.learning.datasets._tables import scaling
from edgefl.learning.drifts import Drift
from edgefl.rng import Streams

AT_ONCE = 4096  # number of samples that get noise at a time


class Noise(Drift):
    """Add Gaussian noise to the inputs, the same in every round; labels do not change.

    The noise has half the standard deviation of the inputs: of each column of a table, of each channel of colour
    images, and of all values of other samples. Columns that never change get no noise. Images are rounded and clipped
    to 0 to 255. Tokens raise an error, because they are not quantities.
    """

    std: ClassVar[float] = 0.5  # standard deviation of the noise, relative to that of the inputs
    data_seed: ClassVar[int] = 0  # seed of the noise

    def change(self, split: Split, classes: int) -> Split:
        if split.x.dtype != np.uint8 and not np.issubdtype(split.x.dtype, np.floating):
            raise EdgeflError(f"noise is for images and features, not for {split.x.dtype}: use label_swap")
        if split.x.ndim == 2 and split.x.dtype == np.uint8:
            raise EdgeflError("noise is for images and features, not for tokens: use label_swap")
        rng = Streams(self.data_seed)("noise", len(split.y))
        scale = self.std * scaling(split.x, "columns")[1]
        if split.x.ndim == 2:
            scale = scale * (split.x != split.x[:1]).any(0)
        x = np.empty_like(split.x)
        for begin in range(0, len(x), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            noisy = split.x[part] + scale * rng.standard_normal(split.x[part].shape)
            x[part] = np.clip(np.rint(noisy), 0, 255) if x.dtype == np.uint8 else noisy
        return Split(x, split.y, split.groups)
