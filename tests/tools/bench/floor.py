"""Compute the least possible time of a training round on this machine, from its FLOPs, bytes and random numbers."""

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
        flops: FLOPs of the models' forward and backward passes.
        bytes: bytes to read each sample once, and to write, read and sum each device's model once.
        numbers: random numbers to draw the batches.
    """

    flops: float
    bytes: float
    numbers: int


@dataclass(frozen=True)
class Speeds:
    """The highest speeds of this machine.

    Attributes:
        flops_per_s: of float32 products of large square matrices or of convolutions, whichever is faster (on some
            processors, their libraries use different instructions).
        bytes_per_s: of a copy within memory, with reading and writing counted separately.
        numbers_per_s: random numbers drawn by NumPy in one thread.
    """

    flops_per_s: float
    bytes_per_s: float
    numbers_per_s: float

    @classmethod
    def measured(cls, threads: int) -> "Speeds":
        """Measure the speeds with this number of threads, as medians over a few repeats."""
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
        """Return the least time of this work in s, if computing, memory access and drawing do not overlap."""
        return (
            work.flops / self.flops_per_s + work.bytes / self.bytes_per_s + work.numbers / self.numbers_per_s
        )
