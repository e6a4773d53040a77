"""Round each number of a change at random to evenly spaced values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from edgefl.learning.codecs import Chance, FeedbackCodec, Sizes, Unbiased

if TYPE_CHECKING:
    from torch import Tensor


class FedPaq(FeedbackCodec):
    """Send each number as one of 2^bits values, evenly from the least to the greatest, rounded without bias.

    Uniform quantisation; the two ends travel whole. Reisizadeh et al., FedPAQ, AISTATS 2020, take any unbiased
    quantiser, and in their experiments that of QSGD (see qsgd). The variance is step^2 times the sum of p (1 - p), p
    what a number is above the value below it, in steps. The two ends are exact, p (1 - p) is at most 1/4, and the
    square of the range (greatest - least)^2 at most 2 |v|^2: so omega = (M - 2) / (2 (2^bits - 1)^2), which
    a change of one number, its negative, and zeros reaches.
    """

    error_feedback: bool = Field(
        False, description="add what earlier messages have left out to the next change; FedPAQ does not"
    )
    bits: int = Field(8, ge=1, le=20, description="of each number")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        least, greatest = wanted.amin(1, keepdim=True), wanted.amax(1, keepdim=True)
        steps = 2**self.bits - 1
        step = (greatest - least) / steps
        scaled = (wanted - least) / step.where(step > 0, 1.0)
        rows = least + (scaled + rng.uniform(wanted.shape[1])).floor().clamp_max(steps) * step
        bits = wanted.shape[1] * self.bits + 2 * sizes.bits
        return rows, wanted.new_full((len(wanted),), bits).long()

    def distortion(self, sizes: Sizes) -> Unbiased:
        return Unbiased(max(0, sizes.count - 2) / (2 * (2**self.bits - 1) ** 2))
