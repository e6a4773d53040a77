"""Find facts about a module by inspecting its layers, or by running an example through it."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from edgefl.errors import EdgeflError

EXAMPLES = 2  # number of samples in an example; batch norm needs more than one


def example(x: Tensor) -> Tensor:
    """Return an example of zeros [2, *shape] for samples x [n, *shape], on the same torch device."""
    return torch.zeros(EXAMPLES, *x.shape[1:], device=x.device)


def numbers_kept(module: nn.Module, x: Tensor) -> int:
    """Count the values that autograd keeps per sample: layers' outputs and gradients; x is an `example`."""
    counted: list[int] = []
    _look(module, x, lambda layer, inputs, output: counted.extend(one.numel() for one in _tensors(output)))
    return 2 * sum(counted) // EXAMPLES


def _tensors(output: Any) -> Iterator[Tensor]:
    """Yield the tensors in a layer's output; a recurrent layer returns its states, too."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, tuple | list):
        for part in output:
            yield from _tensors(part)
    elif isinstance(output, dict):
        yield from _tensors([*output.values()])


def smallest_batch(module: nn.Module) -> int:
    """Return the smallest batch on which a module can train: two samples with batch norm, otherwise one."""
    return 2 if any(isinstance(layer, _BatchNorm) for layer in module.modules()) else 1


def refuse_wrong_bf16_gradients(module: nn.Module, x: Tensor) -> None:
    """Check that a module's weight gradients in bfloat16 are correct on a CPU.

    For strided convolutions over a single pixel, oneDNN in PyTorch 2.13 reads out of bounds.

    Raises:
        EdgeflError: the module has a convolution with wrong gradients.
    """
    wrong: list[nn.Module] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if not isinstance(layer, nn.Conv2d) or inputs[0].shape[2:].numel() > 1:
            return
        if max(layer.stride) > 1 and max(layer.kernel_size) > 1:
            wrong.append(layer)

    _look(module, x, note)
    if wrong:
        raise EdgeflError(
            f"bf16 gives wrong gradients on a CPU for a convolution with strides on a single pixel ({wrong[0]}): "
            "choose float32, or larger images",
            ("learning", "local", "precision"),
        )


@torch.enable_grad()
def refuse_hidden_parameters(module: nn.Module, x: Tensor) -> None:
    """Check that stacked training updates all parameters of a module.

    Stacked training passes the devices' parameters by name, while sequential training updates the module's own
    parameters. A parameter that the module wraps again while it runs, as a slice of an nn.ParameterList does, would
    be trained in sequential training only.

    Args:
        x: inputs, as `example` returns them.

    Raises:
        EdgeflError: a parameter has a gradient in only one of the two ways of training.
    """
    training = module.training
    module.eval()
    own = {name: each for name, each in module.named_parameters() if each.requires_grad}
    handed = {name: parameter.detach().clone().requires_grad_() for name, parameter in own.items()}
    reached = []
    for parameters, logits in ((own, module(x)), (handed, functional_call(module, handed, (x,)))):
        gradients = torch.autograd.grad(logits.sum(), list(parameters.values()), allow_unused=True)
        reached.append({name for name, g in zip(parameters, gradients, strict=True) if g is not None})
    module.train(training)
    if hidden := sorted(reached[0] ^ reached[1]):
        raise EdgeflError(
            f"devices with this model cannot be trained stacked: {', '.join(hidden)} would not be trained, because"
            " the module makes new parameters from them while it runs (as a slice of an nn.ParameterList does); "
            "index these one by one, or choose batching: sequential",
            ("learning", "local", "batching"),
        )


@torch.no_grad()
def _look(
    module: nn.Module, x: Tensor, seen: Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]
) -> None:
    """Run x through a module in evaluation mode; call `seen` with each layer, the layer's inputs and its output."""
    hooks = [layer.register_forward_hook(seen) for layer in module.modules() if not list(layer.children())]
    training = module.training
    module.eval()(x)
    module.train(training)
    for hook in hooks:
        hook.remove()
