"""The type of a tensor, for modules that do not import PyTorch, which takes longer to load than a scenario."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any
