"""The type of a tensor, for what is read without PyTorch: to load that takes longer than all else of a scenario."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any
