"""Count the FLOPs of a model by running it, and its size without allocating it."""

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
    """Return the number M + Q of a model's parameters and statistics without allocating them; 0 if this fails."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"), _WithoutNormals():
            layout = ModelLayout.of(model.build(input_shape, classes))
    except Exception:  # a foreign model may compute with initial values, which do not exist here
        return 0
    return layout.size


def tried(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return a module's output for one sample, or raise if the module fails.

    Raises:
        EdgeflError: the module fails on a sample of this data set.
    """
    try:
        logits: torch.Tensor = module(x)
    except EdgeflError:
        raise
    except Exception as error:  # a foreign module may raise anything
        raise EdgeflError(
            f"the model fails on a sample of this data set, of shape {list(x.shape[1:])}: {type(error).__name__}:"
            f" {clipped(str(error), 200)}; choose data of the shape that the model needs, or another model",
            ("learning", "model"),
        ) from error
    return logits


class _WithoutNormals(TorchFunctionMode):
    """A mode that skips draws of normal numbers, which would import PyTorch's compiler for tensors without memory."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if getattr(func, "__name__", "").endswith("normal_"):  # `normal_` of tensors and of torch.nn.init
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def _without_compiler(counter: FlopCounterMode) -> None:
    """Keep PyTorch from importing its compiler (1.3 s) only in order to hide a FLOP counter from the compiler."""
    mode: Any = getattr(counter, "mode", None)
    if mode is None:  # other versions of PyTorch import the compiler, which is slower but changes no count
        return
    plain: Any = type("CountingFlops", (type(mode),), {})
    # set after the class body, in which PyTorch would wrap the method
    plain.__torch_dispatch__ = inspect.unwrap(type(mode).__torch_dispatch__)
    mode.__class__ = plain


def flops_per_sample(module: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Count the FLOPs of one sample's forward and backward pass (one multiply-add counts as two).

    PyTorch's FLOP counter counts matrix products, convolutions and attention. Left out, as usual: element-wise work
    (biases, activations, normalisation, the softmax) and look-ups of embeddings.
    """
    where = next(module.parameters()).device  # the model's torch device: a CPU, a GPU, or `meta`
    x = torch.zeros(1, *input_shape, device=where)
    training = module.training
    module.eval()  # in training mode batch norm refuses a single sample; evaluation mode has the same products
    with warnings.catch_warnings(), FlopCounterMode(display=False) as counter:
        _without_compiler(counter)
        warnings.filterwarnings("ignore", "TF32 acceleration")  # a warning on Intel GPUs
        # without oneDNN an LSTM runs as matrix products; with it, as one operation that the counter does not know
        with torch.backends.mkldnn.flags(enabled=False):
            logits = tried(module, x)
            each = logits.flatten(0, -2)  # one row per position, if each position has a target
            CLASSIFICATION.loss(
                each, torch.zeros(len(each), dtype=torch.long, device=where), "mean"
            ).backward()
    module.train(training)
    module.zero_grad(set_to_none=True)
    return int(counter.get_total_flops())
