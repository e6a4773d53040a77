"""Send the sign of each number of a change."""

from edgefl.learning.codecs import Chance, Contraction, FeedbackCodec, Sizes
from edgefl.learning.tensors import Tensor


class SignSgd(FeedbackCodec):
    """Send the sign of each value as one bit, and the mean magnitude of all values as a common scale.

    Karimireddy et al., Error Feedback Fixes SignSGD, ICML 2019: the sign of 0 is +1, and the error of a change v is
    |v|^2 - |v|_1^2 / M, at most (1 - 1 / M) |v|^2, which a single value among zeros attains. Without error feedback
    the codec is the signSGD of Bernstein et al., ICML 2018, with the common scale added; Bernstein et al. take the
    majority of the signs, whereas edgefl averages the decoded changes by data size.
    """

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        scale = wanted.abs().mean(1, keepdim=True)
        rows = scale.where(wanted >= 0, -scale)
        return rows, wanted.new_full((len(wanted),), wanted.shape[1] + sizes.bits).long()

    def distortion(self, sizes: Sizes) -> Contraction:
        return Contraction(1 / sizes.count)
