"""Round each number of a change stochastically to a few levels."""

import math
from typing import Literal

from pydantic import Field

from edgefl.learning.codecs import Chance, FeedbackCodec, Sizes, Unbiased, damping_of
from edgefl.learning.tensors import Tensor


class Qsgd(FeedbackCodec):
    """Send a change's norm, and for each number its sign and its level, 0 to s, rounded at random without bias.

    A number v_i becomes |v| sign(v_i) l / s, where l is one of the two integers around s |v_i| / |v|: the upper one
    with probability p, where p is the distance from the lower one. Alistarh et al., QSGD, NeurIPS 2017, with codes of
    fixed length: ceil(log2(2 s + 1)) bits for a number, and the norm uncompressed. The variance is (|v| / s)^2 times
    the sum of p (1 - p). Left out: Elias codes, whose length depends on the change.

    Derivation of omega, where M is the bucket's size if each bucket has a norm: p (1 - p) is at most x - x^2 up to x
    = s |v_i| / |v| = 1/2, and 1/4 beyond. With the Euclidean norm the squares of x sum to s^2, and equal numbers are
    the worst case: omega = sqrt(M) / s - 1, or M / (4 s^2) if s is above sqrt(M) / 2 (the paper's looser bound: min(M
    / s^2, sqrt(M) / s)). With the largest magnitude as norm, one x is s, and in the worst case the M - 1 others are
    all 1 / (u + 1), with u = sqrt(1 + (M - 1) / s^2): omega = (u - 1) / 2. Error feedback multiplies the norms by a
    damping factor computed for each change.
    """

    error_feedback: bool = Field(
        False, description="add the errors of earlier messages to the next change; the QSGD paper does not"
    )
    levels: int = Field(
        7, ge=1, le=2**20, description="s: levels above 0; bits per number: 2 if s is 1, 4 if 7, 8 if 127"
    )
    bucket: int | None = Field(
        512,
        ge=1,
        le=10**12,
        description="how many numbers share a norm; null: one norm for the whole change",
    )
    norm: Literal["two", "max"] = Field(
        "two", description="two: the Euclidean norm, as in the paper's theory; max: the largest magnitude"
    )

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        many, count = wanted.shape
        cut, norm, scaled = self._scaled(wanted)
        _, buckets, size = cut.shape
        drawn = scaled.new_zeros(many, buckets * size)
        drawn[:, :count] = rng.uniform(count)
        level = (scaled + drawn.view_as(scaled)).floor().clamp_max(self.levels)
        rows = (norm * cut.sign() * level / self.levels).view(many, -1)[:, :count]
        bits = count * math.ceil(math.log2(2 * self.levels + 1)) + buckets * sizes.bits
        return rows, wanted.new_full((many,), bits).long()

    def _scaled(self, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return values v_i by bucket [k, buckets, size], the buckets' norms, and scaled values s |v_i| / norm."""
        many, count = wanted.shape
        size = min(self.bucket or count, count)
        buckets = -(-count // size)
        padded = wanted.new_zeros(many, buckets * size)
        padded[:, :count] = wanted
        cut = padded.view(many, buckets, size)
        magnitudes = cut.abs()
        norm = magnitudes.amax(2, keepdim=True) if self.norm == "max" else cut.norm(dim=2, keepdim=True)
        return cut, norm, magnitudes * self.levels / norm.where(norm > 0, 1.0)

    def damping(self, change: Tensor, sizes: Sizes) -> Tensor:
        _, norm, scaled = self._scaled(change)
        above = scaled.frac()
        variance = (norm / self.levels).square().squeeze(2) * (above - above.square()).sum(2)
        return damping_of(change, variance.sum(1, keepdim=True))

    def distortion(self, sizes: Sizes) -> Unbiased:
        size, levels = min(self.bucket or sizes.count, sizes.count), self.levels
        if self.norm == "max":
            return Unbiased((math.sqrt(1 + (size - 1) / levels**2) - 1) / 2)
        few = 2 * levels <= math.sqrt(size)
        return Unbiased(math.sqrt(size) / levels - 1 if few else size / (4 * levels**2))
