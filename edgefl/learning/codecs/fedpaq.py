"""Round each number of a change stochastically to evenly spaced values."""

from pydantic import Field

from edgefl.learning.codecs import Chance, FeedbackCodec, Sizes, Unbiased, damping_of
from edgefl.learning.tensors import Tensor


class FedPaq(FeedbackCodec):
    """Round numbers stochastically, without bias, to 2^bits values evenly spaced from the smallest to the largest.

    Uniform quantisation; the smallest and the largest number are sent uncompressed. Reisizadeh et al., FedPAQ,
    AISTATS 2020, allow any unbiased quantiser, and use the quantiser of `qsgd` in their experiments. The variance is
    step^2 times the sum of p (1 - p), where p is the distance of a number from the value below it, in steps. The two
    extremes are exact, p (1 - p) is at most 1/4, and the range squared, (largest - smallest)^2, at most 2 |v|^2.
    Hence omega = (M - 2) / (2 (2^bits - 1)^2), attained by a change that consists of one number, its negative, and
    zeros.

    For other changes the variance is far below this bound: for a million numbers in 8 bits omega is 7.7, but the
    variance for normally distributed numbers is 0.0003 |v|^2. Error feedback therefore multiplies the two extremes by
    a damping factor computed for each change.
    """

    error_feedback: bool = Field(
        False, description="add the errors of earlier messages to the next change; the FedPAQ paper does not"
    )
    bits: int = Field(8, ge=1, le=20, description="number of bits per number sent")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        least, step, scaled = self._scaled(wanted)
        steps = 2**self.bits - 1
        rows = least + (scaled + rng.uniform(wanted.shape[1])).floor().clamp_max(steps) * step
        bits = wanted.shape[1] * self.bits + 2 * sizes.bits
        return rows, wanted.new_full((len(wanted),), bits).long()

    def _scaled(self, wanted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return each row's smallest value and step, [k, 1], and (values - smallest) / step, [k, M]."""
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
