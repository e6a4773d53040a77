"""FLOPs of a model, counted by running it, and its size, without making it."""

import inspect
import warnings
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from edgefl.errors import EdgeflError, clipped
from edgefl.learning.models import Model
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.objective import CLASSIFICATION


def size(model: Model, input_shape: tuple[int, ...], classes: int) -> int:
    """Return the numbers M + Q of a model, without making them; 0 for one that cannot be built so."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"), _WithoutNormals():
            layout = ModelLayout.of(model.build(input_shape, classes))
    except Exception:  # a model from outside may compute with its initial values, which are not there
        return 0
    return layout.size


def tried(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return what a module makes of one sample.

    Raises:
        EdgeflError: it fails: it is for other data.
    """
    try:
        logits: torch.Tensor = module(x)
    except EdgeflError:
        raise
    except Exception as error:  # whatever a module from outside does
        raise EdgeflError(
            f"the model fails on a sample of this data set, of shape {list(x.shape[1:])}: {type(error).__name__}:"
            f" {clipped(str(error), 200)}; take data of the shape that it wants, or another model",
            ("learning", "model"),
        ) from error
    return logits


class _WithoutNormals(TorchFunctionMode):
    """Leaves out filling with normal numbers: for tensors without memory it would import PyTorch's compiler."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if getattr(func, "__name__", "").endswith("normal_"):  # of tensors, and of torch.nn.init
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def _without_compiler(counter: FlopCounterMode) -> None:
    """Let a counter see operations directly: PyTorch imports its compiler to hide it from that (1.3 s)."""
    mode: Any = getattr(counter, "mode", None)
    if mode is None:  # made otherwise by another version of PyTorch: it costs the time, and counts the same
        return
    plain: Any = type("CountingFlops", (type(mode),), {})
    # set later: PyTorch wraps what a class of this kind brings along
    plain.__torch_dispatch__ = inspect.unwrap(type(mode).__torch_dispatch__)
    mode.__class__ = plain


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
        _without_compiler(counter)
        warnings.filterwarnings("ignore", "TF32 acceleration")  # of Intel GPUs, which these flags touch too
        # oneDNN would run an LSTM as one operation that the counter does not know; without it, it is products
        with torch.backends.mkldnn.flags(enabled=False):
            logits = tried(module, x)
            each = logits.flatten(0, -2)  # of every position, where there is a target at each
            CLASSIFICATION.loss(each, torch.zeros(len(each), dtype=torch.long), "mean").backward()
    module.train(training)
    module.zero_grad(set_to_none=True)
    return int(counter.get_total_flops())
