"""Send the largest changes alone."""

from pydantic import Field

from edgefl.learning.codecs import Chance, Contraction, FeedbackCodec, Sizes, index_bits
from edgefl.learning.tensors import Tensor


class TopK(FeedbackCodec):
    """Send the share of a change that is largest in magnitude, each number whole and with its place.

    The largest of all tensors together (grace chooses within each tensor); of equal ones those that come first. Stich
    et al., Sparsified SGD with Memory, NeurIPS 2018; without error feedback the error is the sum of the smallest
    squares, at most (1 - share) of the change's. share = 1 is no codec at all, to the last bit.
    """

    share: float = Field(0.1, gt=0, le=1, description="share of the numbers that are sent; at least one is")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        chosen = largest(wanted.abs(), kept(self.share, sizes))
        bits = chosen.sum(1) * sizes.bits + index_bits(chosen, sizes)
        return wanted * chosen, bits

    def distortion(self, sizes: Sizes) -> Contraction:
        return Contraction(kept(self.share, sizes) / sizes.count)


def kept(share: float, sizes: Sizes) -> int:
    """Return how many numbers of a change a share is; at least one."""
    return max(1, round(share * sizes.count))


def largest(magnitudes: Tensor, count: int) -> Tensor:
    """Return [k, M] bool, which are the `count` largest numbers of each row; of equal ones those that come first."""
    least = magnitudes.topk(count, dim=1, sorted=False).values.amin(1, keepdim=True)
    above, tied = magnitudes > least, magnitudes == least
    room = count - above.sum(1, keepdim=True)
    return above | (tied & (tied.cumsum(1) <= room))
