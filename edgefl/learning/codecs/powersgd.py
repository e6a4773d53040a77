"""Send a low-rank approximation of a change."""

import math
from collections.abc import Mapping

from pydantic import Field

from edgefl.learning.codecs import RESIDUAL, Chance, Codec, Coded, Contraction, Sizes
from edgefl.learning.tensors import Tensor

FACTOR = "factor"


class PowerSgd(Codec):
    """Send each tensor of a change as the product of two thin matrices, found by one step of the power method.

    A tensor becomes a matrix A with its first dimension as rows and all others as columns: P = orthonormal(A Q), Q =
    A' P, decoded as P Q'. Q is random at first; later rounds start from the last Q. Tensors of one dimension, and
    tensors no larger than their factors, are sent uncompressed. Vogels et al., PowerSGD, NeurIPS 2019, whose workers
    average P before they compute Q; here each device encodes its change independently.

    With a random orthonormal Q of m rows and r columns, the mean error is at most (1 - r / m) |A|^2: the squared
    norm of the sent matrix is |P' A|^2 >= |P' A Q|^2 = |A Q|^2, on average r / m |A|^2.
    """

    rank: int = Field(2, ge=1, le=10_000, description="number of columns of each factor")
    error_feedback: bool = Field(True, description="add the errors of earlier messages to the next change")

    def memory(self, sizes: Sizes) -> Mapping[str, int]:
        factors = sum(self.rank * width for _, _, width in self._matrices(sizes))
        return ({RESIDUAL: sizes.count} if self.error_feedback else {}) | (
            {FACTOR: factors} if factors else {}
        )

    def encode(self, change: Tensor, memory: Mapping[str, Tensor], rng: Chance, sizes: Sizes) -> Coded:
        wanted = change + memory[RESIDUAL] if self.error_feedback else change
        rows, many, matrices = wanted.clone(), len(wanted), self._matrices(sizes)
        numbers, kept = sizes.count, memory.get(FACTOR)
        if matrices and kept is not None:
            drawn = rng.normal(kept.shape[1])
            # a factor of zeros would stay zero, so it is drawn again
            starts, nexts, place = drawn, kept.clone(), 0
            for begin, height, width in matrices:
                some = slice(place, place + self.rank * width)
                last = kept[:, some]
                q = last.where((last != 0).any(1, keepdim=True), starts[:, some])
                a = wanted[:, begin : begin + height * width].reshape(many, height, width)
                p, q = _step(a, q.reshape(many, width, self.rank))
                rows[:, begin : begin + height * width] = _product(p, q).reshape(many, -1)
                nexts[:, some] = q.reshape(many, -1)
                numbers += self.rank * (height + width) - height * width
                place = some.stop
        left = {RESIDUAL: wanted - rows} if self.error_feedback else {}
        if kept is not None:
            left[FACTOR] = nexts
        return Coded(rows, wanted.new_full((many,), numbers * sizes.bits).long(), left)

    def distortion(self, sizes: Sizes) -> Contraction:
        return Contraction(min((self.rank / width for _, _, width in self._matrices(sizes)), default=1.0))

    def _matrices(self, sizes: Sizes) -> list[tuple[int, int, int]]:
        """Return (start, height, width) of each tensor that is sent as a product of factors."""
        found, begin = [], 0
        for shape in sizes.shapes:
            height, width = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (1, 1)
            if self.rank * (height + width) < height * width:
                found.append((begin, height, width))
            begin += math.prod(shape)
        return found


def _step(a: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Return the factors P and Q of matrices a [k, n, m] after one step of the power method from q [k, m, r]."""
    import torch

    # one device at a time, since a batched product may round differently
    factors = []
    for one, start in zip(a, q, strict=True):
        p = torch.linalg.qr(one @ torch.linalg.qr(start).Q).Q
        factors.append((p, one.T @ p))
    return torch.stack([p for p, _ in factors]), torch.stack([q for _, q in factors])


def _product(p: Tensor, q: Tensor) -> Tensor:
    import torch

    return torch.stack([one @ other.T for one, other in zip(p, q, strict=True)])
