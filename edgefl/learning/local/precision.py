"""The number format and memory layout in which models are trained."""

from dataclasses import dataclass, replace
from typing import Self

import torch

from edgefl.learning.models import Model
from edgefl.learning.modules.convolutions import wants_channels_last


@dataclass(frozen=True)
class Precision:
    """The number format and memory layout in which models are trained.

    channels_last: order of images where devices are trained one by one; None: the faster one.
    """

    bf16: bool = False
    channels_last: bool | None = None

    def settled(self, model: Model, torch_device: torch.device) -> Self:
        """Return the precision with the order of images chosen."""
        chosen = wants_channels_last(self.channels_last, model.channels_last_gain, torch_device, "all")
        return replace(self, channels_last=chosen)
