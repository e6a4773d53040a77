"""Choose whether devices are trained stacked or one by one, and the memory for a stacked chunk."""

from typing import Literal

import torch
from torch import nn

from edgefl.learning.modules.layers import Recurrent

Batching = Literal["auto", "stacked", "sequential"]

# Memory of a chunk of stacked devices: the same on every machine, since matrix products of different shapes round
# differently. On a CPU the batch and the models should stay in the cache, and every thread should get a chunk: 5 MB
# hold ten devices of logistic regression on 28x28 images. A GPU needs much work per launch, and has 8 GB or more.
CHUNK_BYTES = {"cpu": 5_500_000, "cuda": 4_000_000_000, "mps": 1_000_000_000}
STACKED_FROM = 10  # smallest number of devices for which stacking is faster on a CPU

RECURRENT = (nn.RNNBase, Recurrent)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
SHIPPED = ("torch.nn.", "edgefl.learning.models.")


def choose(module: nn.Module, together: int, torch_device: torch.device) -> Literal["stacked", "sequential"]:
    """Choose by fixed rules how `learning.local.batching: auto` trains a round's devices: stacked or one by one.

    Devices are trained one by one, on any processor:
        - if the model has layers that neither PyTorch nor edgefl ships, because vmap may not support them;
        - if the model has recurrent layers or embedding bags, which vmap itself runs one by one, with overhead;
        - if a trial step fails under vmap, or draws random numbers (see `LocalTraining`);
    and on a CPU:
        - if the model has convolutions;
        - if fewer than 10 devices would be stacked, because fewer take part in the round or fit into a chunk (each
          with its batch and with the tensors that autograd keeps).
    Otherwise devices are stacked.

    Measured (PyTorch CPU build, one thread of a shared two-core machine, so +-20 %): the time of a step with devices
    one by one, divided by its time with stacked devices, for rounds of 10 and of 100 devices; if this ratio is above
    1, stacking is faster. The mlp2 rows are for autograd, which mlp2 uses for losses other than cross-entropy and in
    bfloat16.

    ====================================  =====  ============  ====  ====
    model                                 batch  fit a chunk     10   100
    ====================================  =====  ============  ====  ====
    mlp2, 64-32-10                           16            91   1.7   7.5
    mlp2, 60-128-10                          10            31   1.8   3.1
    mlp2, 60-128-10                         128            10   1.4   1.6
    mlp2, 128-256-10                         16             8   0.8   1.5
    mlp2, 128-256-10                        128             4   0.9   1.0
    mlp2, 784-128-10                         16             3   0.7   0.8
    mlp2, 784-512-10                         16             1   0.5   0.5
    text_bag with MOON, 2,000 words of 50    32             3   0.8   1.1
    text_bag with MOON, 30,522 of 300        32             1   0.6   0.5
    cnn2                                     20             1   0.9   0.6
    cnn2                                    128             1   0.9   1.6
    svhn_cnn, journal                        32             1   1.0     -
    ====================================  =====  ============  ====  ====

    In rounds of 4 devices the ratios are 0.6 to 1.0. With two threads the ratios are the same within their noise,
    except that the 1.6 of cnn2 falls to 0.8. Stacked LSTMs and GPUs were not measured.

    Args:
        module: the model.
        together: how many devices would be stacked: all devices of a round, or the number that fits a chunk.
    """
    layers = list(module.modules())
    if any(isinstance(layer, (*RECURRENT, nn.EmbeddingBag)) for layer in layers):
        return "sequential"
    if not all(f"{type(layer).__module__}.".startswith(SHIPPED) for layer in layers):
        return "sequential"
    if torch_device.type == "cpu" and (
        together < STACKED_FROM or any(isinstance(layer, CONVOLUTIONS) for layer in layers)
    ):
        return "sequential"
    return "stacked"
