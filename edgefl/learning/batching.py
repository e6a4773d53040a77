"""Whether the devices of a chunk are trained together or one by one, and how many fit a chunk."""

from typing import Literal

import torch
from torch import nn

from edgefl.learning.models import Recurrent

Batching = Literal["auto", "stacked", "sequential"]

# What a chunk of stacked devices may occupy. On a CPU the batch and the models should stay in the cache: 5 MB
# are ten devices of logistic regression on 28x28 images, and 100 at once are slower than one by one. A GPU
# wants much work per launch.
CPU_CHUNK_BYTES = 5_500_000
CUDA_CHUNK_SHARE = 0.125
STACKED_FROM = 10  # devices that must be together on a CPU before stacking them pays

RECURRENT = (nn.RNNBase, Recurrent)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
SHIPPED = ("torch.nn.", "edgefl.learning.models.")


def choose(
    module: nn.Module, together: int, torch_device: torch.device, channels_last: bool = False
) -> Literal["stacked", "sequential"]:
    """How `learning.batching: auto` trains the devices of a round; no clock is asked.

    One by one go, everywhere:
        - models with layers that neither PyTorch nor edgefl ships: vmap may not follow what they do;
        - recurrent layers and embedding bags, which vmap runs one by one itself, with detours;
        - where `learning.channels_last` is set, for only this way knows it;
    and on a CPU:
        - convolutions;
        - models of which fewer than 10 would be stacked: so many take part in the round, or fit the cache with
          a batch each and what autograd keeps of it.
    All others are stacked.

    @TABLE@

    Args:
        module: the model.
        together: devices that would be stacked: a round's, or those that fit `learning.memory_gb` or the cache.
    """
    layers = list(module.modules())
    if channels_last or any(isinstance(layer, (*RECURRENT, nn.EmbeddingBag)) for layer in layers):
        return "sequential"
    if not all(f"{type(layer).__module__}.".startswith(SHIPPED) for layer in layers):
        return "sequential"
    if torch_device.type == "cpu" and (
        together < STACKED_FROM or any(isinstance(layer, CONVOLUTIONS) for layer in layers)
    ):
        return "sequential"
    return "stacked"


def chunk_bytes(torch_device: torch.device) -> int:
    """Room for a chunk of stacked devices."""
    if torch_device.type == "cuda":
        return int(CUDA_CHUNK_SHARE * torch.cuda.get_device_properties(torch_device).total_memory)
    return CPU_CHUNK_BYTES
