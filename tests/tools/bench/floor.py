"""The lowest possible time of a training round on this machine, from what it has to compute, read and draw."""

from dataclasses import dataclass

import numpy as np
import torch

from tests.tools.bench import median_s

PRODUCT, MEMORY_BYTES, NUMBERS = 1024, 256 << 20, 1_000_000
IMAGES, CHANNELS, SIDE, KERNEL = 64, 64, 16, 3
REPEATS = 5


@dataclass(frozen=True)
class Work:
    """The work that a round cannot avoid.

    Attributes:
        flops: of the models' forward and backward passes, FLOPs.
        bytes: samples read once as they lie in memory, and each device's model written, read and summed once.
        numbers: random numbers that deal the batches.
    """

    flops: float
    bytes: float
    numbers: int


@dataclass(frozen=True)
class Speeds:
    """The highest speeds of this machine.

    Attributes:
        flops_per_s: of float32 products of large square matrices, or of convolutions, where these are faster: the
            libraries behind the two do not use the same instructions on every processor.
        bytes_per_s: copied from one place in memory to another, read and written both counted.
        numbers_per_s: random numbers by NumPy, one thread.
    """

    flops_per_s: float
    bytes_per_s: float
    numbers_per_s: float

    @classmethod
    def measured(cls, threads: int) -> "Speeds":
        """Measure with that many threads: medians of a few repeats."""
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            matrix = torch.randn(PRODUCT, PRODUCT)
            product = torch.empty_like(matrix)
            here = torch.zeros(MEMORY_BYTES, dtype=torch.uint8)
            there = torch.zeros_like(here)
            rng = np.random.default_rng(0)
            x = torch.randn(IMAGES, CHANNELS, SIDE, SIDE).contiguous(memory_format=torch.channels_last)
            kernel = torch.randn(CHANNELS, CHANNELS, KERNEL, KERNEL).contiguous(
                memory_format=torch.channels_last
            )
            convolved = 2 * IMAGES * (SIDE * KERNEL * CHANNELS) ** 2
            return cls(
                max(
                    2 * PRODUCT**3 / median_s(lambda: torch.mm(matrix, matrix, out=product), REPEATS),
                    convolved / median_s(lambda: torch.conv2d(x, kernel, padding="same"), REPEATS),
                ),
                2 * MEMORY_BYTES / median_s(lambda: there.copy_(here), REPEATS),
                NUMBERS / median_s(lambda: rng.permutation(NUMBERS), REPEATS),
            )
        finally:
            torch.set_num_threads(before)

    def seconds(self, work: Work) -> float:
        """Return the least time of this work, one after the other."""
        return (
            work.flops / self.flops_per_s + work.bytes / self.bytes_per_s + work.numbers / self.numbers_per_s
        )
