"""The type of tensors, for modules that avoid importing PyTorch, which takes longer than reading a scenario."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

WITHOUT_DOUBLE = "mps"  # type of the torch devices that have no float64: Apple's GPUs


def in_double(tensor: Tensor) -> Tensor:
    """Convert a tensor to float64, on the CPU if the tensor's device has no float64."""
    return (tensor.cpu() if tensor.device.type == WITHOUT_DOUBLE else tensor).double()
