"""Send a random part of a change."""

from pydantic import Field

from edgefl.learning.codecs import (
    Chance,
    Contraction,
    FeedbackCodec,
    Sizes,
    Unbiased,
    index_bits,
)
from edgefl.learning.codecs.top_k import kept
from edgefl.learning.tensors import Tensor

SEED_BITS = 64


class RandK(FeedbackCodec):
    """Send a share of the values of a change, drawn for each device and round.

    Stich et al., Sparsified SGD with Memory, NeurIPS 2018; Konecny et al., 2016. The values are sent uncompressed;
    both ends derive the indices from a 64-bit seed. With error feedback the codec is a contraction with a mean
    squared error of (1 - share) times the change's squared norm. Without feedback, values are divided by the
    share, which is unbiased with omega = 1 / share - 1. With share 1, results are as without a codec, bit for bit.
    """

    share: float = Field(0.1, gt=0, le=1, description="share of the values to send; at least one is sent")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        count = kept(self.share, sizes)
        chosen = wanted.new_ones(wanted.shape).bool()
        if count < sizes.count:
            chosen = (~chosen).scatter(1, rng.subset(count, sizes.count), True)
        places = index_bits(chosen, sizes).clamp_max(SEED_BITS)
        scale = 1.0 if self.error_feedback else sizes.count / count
        return wanted * chosen * scale, count * sizes.bits + places

    def distortion(self, sizes: Sizes) -> Unbiased | Contraction:
        share = kept(self.share, sizes) / sizes.count
        return Contraction(share) if self.error_feedback else Unbiased(1 / share - 1)
