"""Round each number of a change at random to evenly spaced values."""

from pydantic import Field

from edgefl.learning.codecs import Chance, FeedbackCodec, Sizes, Unbiased, damping_of
from edgefl.learning.tensors import Tensor


class FedPaq(FeedbackCodec):
    """Send each number as one of 2^bits values, evenly from the least to the greatest, rounded without bias.

    Uniform quantisation; the two ends travel whole. Reisizadeh et al., FedPAQ, AISTATS 2020, take any unbiased
    quantiser, and in their experiments that of QSGD (see qsgd). The variance is step^2 times the sum of p (1 - p), p
    what a number is above the value below it, in steps. The two ends are exact, p (1 - p) is at most 1/4, and the
    square of the range (greatest - least)^2 at most 2 |v|^2: so omega = (M - 2) / (2 (2^bits - 1)^2), which
    a change of one number, its negative, and zeros reaches.

    Other changes are far below it: of a million numbers in 8 bits omega is 7.7, and the variance of normal ones
    0.0003 of their square. So where errors are fed back, the two ends are sent multiplied by the damping of the
    change at hand.
    """

    error_feedback: bool = Field(
        False, description="add what earlier messages have left out to the next change; FedPAQ does not"
    )
    bits: int = Field(8, ge=1, le=20, description="of each number")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        least, step, scaled = self._scaled(wanted)
        steps = 2**self.bits - 1
        rows = least + (scaled + rng.uniform(wanted.shape[1])).floor().clamp_max(steps) * step
        bits = wanted.shape[1] * self.bits + 2 * sizes.bits
        return rows, wanted.new_full((len(wanted),), bits).long()

    def _scaled(self, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return each row's least number and step, [k, 1], and how many steps each number is above it, [k, M]."""
        least, greatest = wanted.amin(1, keepdim=True), wanted.amax(1, keepdim=True)
        step = (greatest - least) / (2**self.bits - 1)
        return least, step, (wanted - least) / step.where(step > 0, 1.0)

    def damping(self, change: Tensor, sizes: Sizes) -> Tensor:
        _, step, scaled = self._scaled(change)
        above = scaled.frac()
        variance = step.square() * (above - above.square()).sum(1, keepdim=True)
        return damping_of(change, variance)

    def distortion(self, sizes: Sizes) -> Unbiased:
        return Unbiased(max(0, sizes.count - 2) / (2 * (2**self.bits - 1) ** 2))
