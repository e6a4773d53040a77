"""FLOPs of a model, counted by running it."""

import warnings

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from edgefl.learning import task


def flops_per_sample(module: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Count the FLOPs of one sample's forward and backward pass (one multiply-add is two).

    Counted by PyTorch's FLOP counter: matrix products, convolutions and attention. Left out:
    element-wise work (biases, activations, normalisation, the softmax) and looking up embeddings, as is
    usual.
    """
    x = torch.zeros(1, *input_shape)
    training = module.training
    module.eval()  # batch norm refuses to train on a single sample; the products are the same
    with warnings.catch_warnings(), FlopCounterMode(display=False) as counter:
        warnings.filterwarnings("ignore", "TF32 acceleration")  # of Intel GPUs, which these flags touch too
        # oneDNN would run an LSTM as one operation that the counter does not know; without it, it is products
        with torch.backends.mkldnn.flags(enabled=False):
            logits = module(x)
            task.loss(logits, torch.zeros(1, dtype=torch.long), "mean").backward()
    module.train(training)
    module.zero_grad(set_to_none=True)
    return int(counter.get_total_flops())
