"""Round each number of a change at random to a few levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from edgefl.learning.codecs import Chance, FeedbackCodec, Sizes

if TYPE_CHECKING:
    from torch import Tensor


class Qsgd(FeedbackCodec):
    """Send the norm of a change, and of each number its sign and one of s levels, rounded at random without bias.

    A number v_i becomes |v| sign(v_i) l / s, with l one of the two integers around s |v_i| / |v|: the upper one with
    probability p, what that is above the lower one. Alistarh et al., QSGD, NeurIPS 2017, with codes of fixed length:
    ceil(log2(2 s + 1)) bits for a number, and the norm whole. The variance is (|v| / s)^2 times the sum of p (1 - p),
    at most min(M / s^2, sqrt(M) / s) |v|^2; where each bucket has a norm, M is the bucket's size. Left out: Elias'
    codes, whose length depends on the change.
    """

    error_feedback: bool = Field(
        False, description="add what earlier messages have left out to the next change; QSGD does not"
    )
    levels: int = Field(
        7, ge=1, le=2**20, description="s: levels above 0; 7 are numbers of 4 bits, 127 of 8, 1 of 2"
    )
    bucket: int | None = Field(
        512,
        ge=1,
        le=10**12,
        description="numbers that have a norm of their own; none: one for the whole change",
    )
    norm: Literal["two", "max"] = Field(
        "two", description="two: the Euclidean norm (the paper's theory); max: the largest magnitude"
    )

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        many, count = wanted.shape
        size = min(self.bucket or count, count)
        buckets = -(-count // size)
        padded = wanted.new_zeros(many, buckets * size)
        padded[:, :count] = wanted
        cut = padded.view(many, buckets, size)
        magnitudes = cut.abs()
        norm = magnitudes.amax(2, keepdim=True) if self.norm == "max" else cut.norm(dim=2, keepdim=True)
        scaled = magnitudes * self.levels / norm.where(norm > 0, 1.0)
        drawn = scaled.new_zeros(many, buckets * size)
        drawn[:, :count] = rng.uniform(count)
        level = (scaled + drawn.view_as(scaled)).floor().clamp_max(self.levels)
        rows = (norm * cut.sign() * level / self.levels).view(many, -1)[:, :count]
        bits = count * math.ceil(math.log2(2 * self.levels + 1)) + buckets * sizes.bits
        return rows, wanted.new_full((many,), bits).long()
