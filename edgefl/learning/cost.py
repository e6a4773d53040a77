"""FLOPs of a model, counted by running it."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode


def flops_per_sample(module: nn.Module, input_shape: tuple[int, ...]) -> int:
    """FLOPs of one sample's forward and backward pass (one multiply-add is two).

    Counted by PyTorch's FLOP counter: matrix products, convolutions and attention. Left out:
    element-wise work (biases, activations, normalisation, the softmax) and looking up embeddings, as is
    usual.
    """
    x = torch.zeros(1, *input_shape)
    training = module.training
    module.eval()  # batch norm refuses to train on a single sample; the products are the same
    with FlopCounterMode(display=False) as counter:
        logits = module(x)
        functional.cross_entropy(logits, torch.zeros(1, dtype=torch.long)).backward()
    module.train(training)
    module.zero_grad(set_to_none=True)
    return int(counter.get_total_flops())
