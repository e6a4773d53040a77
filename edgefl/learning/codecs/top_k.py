"""Send only the numbers of largest magnitude in a change."""

from pydantic import Field

from edgefl.learning.codecs import Chance, Contraction, FeedbackCodec, Sizes, index_bits
from edgefl.learning.tensors import Tensor


class TopK(FeedbackCodec):
    """Send the share of a change's values with the largest magnitudes, uncompressed and with their indices.

    Values are chosen from all tensors together (the library grace chooses within each tensor); of equal values, the
    first are chosen. Stich et al., Sparsified SGD with Memory, NeurIPS 2018. Without error feedback the squared error
    is the sum of the squares of the values not sent, at most (1 - share) of the sum of all squares. With share 1, all
    values are sent.
    """

    share: float = Field(0.1, gt=0, le=1, description="share of the values to send; at least one is sent")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        chosen = largest(wanted.abs(), kept(self.share, sizes))
        bits = chosen.sum(1) * sizes.bits + index_bits(chosen, sizes)
        return wanted * chosen, bits

    def distortion(self, sizes: Sizes) -> Contraction:
        return Contraction(kept(self.share, sizes) / sizes.count)


def kept(share: float, sizes: Sizes) -> int:
    """Return the number of a change's values that corresponds to a share, at least one."""
    return max(1, round(share * sizes.count))


def largest(magnitudes: Tensor, count: int) -> Tensor:
    """Return a mask [k, M] of the `count` largest values in each row; among equal values, the first are taken."""
    least = magnitudes.topk(count, dim=1, sorted=False).values.amin(1, keepdim=True)
    above, tied = magnitudes > least, magnitudes == least
    room = count - above.sum(1, keepdim=True)
    return above | (tied & (tied.cumsum(1) <= room))
