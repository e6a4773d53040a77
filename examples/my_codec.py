"""Send half of the tensors' numbers as 16-bit floats."""

import torch
from pydantic import Field
from torch import Tensor

from edgefl.learning.codecs import Chance, Contraction, FeedbackCodec, Sizes


class Halves(FeedbackCodec):
    """Send a share of a change in half precision, drawn by each device in each round.

    Device and server draw the positions from the same seed, which is sent too. Values not sent are added to later
    changes.
    """

    share: float = Field(0.5, gt=0, le=1, description="share of the values to send")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        count = max(1, round(self.share * sizes.count))
        places = rng.subset(count, sizes.count)
        sent = wanted.gather(1, places).to(torch.float16).to(wanted.dtype)
        bits = torch.full((len(wanted),), 16 * count + 64, device=wanted.device)
        return torch.zeros_like(wanted).scatter(1, places, sent), bits

    def distortion(self, sizes: Sizes) -> Contraction:
        """Return the bound: on average, 1 - share of the squared norm is not sent, and 2^-22 of the rest is lost."""
        share = max(1, round(self.share * sizes.count)) / sizes.count
        return Contraction(share * (1 - 2**-22))
