"""Send half of the tensors' numbers as 16-bit floats."""

import torch
from pydantic import Field
from torch import Tensor

from edgefl.learning.codecs import Chance, FeedbackCodec, Sizes


class Halves(FeedbackCodec):
    """Send a share of a change, chosen anew by each device in each round, in half precision.

    Both ends draw the same places from a seed, which travels too. What is not sent, or rounded off, waits.
    """

    share: float = Field(0.5, gt=0, le=1, description="share of the numbers that are sent")

    def compress(self, wanted: Tensor, rng: Chance, sizes: Sizes) -> tuple[Tensor, Tensor]:
        count = max(1, round(self.share * sizes.count))
        places = rng.subset(count, sizes.count)
        sent = wanted.gather(1, places).to(torch.float16).to(wanted.dtype)
        bits = torch.full((len(wanted),), 16 * count + 64, device=wanted.device)
        return torch.zeros_like(wanted).scatter(1, places, sent), bits
