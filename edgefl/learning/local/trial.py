"""Try a training step of a model before a run, to refuse models that cannot be trained."""

import torch
from torch import Tensor, nn

from edgefl.errors import EdgeflError, clipped
from edgefl.learning.data.data_in_memory import SampleReader, SplitInMemory
from edgefl.learning.local.gradients import Batch, Kernel
from edgefl.learning.modules.module_facts import EXAMPLES
from edgefl.learning.modules.randomness import watched

_PLACE = ("learning", "model")


def trained_once(kernel: Kernel, module: nn.Module, train: SplitInMemory) -> bool:
    """Compute one device's gradients in a trial step; return whether the model draws from PyTorch's generators.

    Args:
        kernel: a kernel for devices one by one, which is not used afterwards.
        module: the module of which the kernel has a copy.

    Raises:
        EdgeflError: the model cannot be trained, or two runs of the same scenario would differ.
    """
    try:
        with watched(train.x.device) as drawn:
            try_step(kernel, module, train, devices=1)
    except EdgeflError:
        raise
    except Exception as error:  # a foreign module may raise anything
        raise EdgeflError(
            f"the model fails in a training step: {type(error).__name__}: {clipped(str(error), 200)}; let the model"
            " compute its outputs by differentiable operations of torch",
            _PLACE,
        ) from error
    refuse_other_draws(drawn)
    _refuse_changed_buffers(kernel, module)
    return "torch" in drawn


def refuse_other_draws(drawn: set[str]) -> None:
    """Raise an error if a model draws from Python's or NumPy's generator, which edgefl does not seed."""
    if drawn & {"random", "numpy"}:
        raise EdgeflError(
            "the model draws random numbers from Python or NumPy, so two runs of the same scenario would differ: draw"
            " from torch in forward(), for instance with torch.rand",
            _PLACE,
        )


@torch.no_grad()
def try_step(
    kernel: Kernel, module: nn.Module, train: SplitInMemory, *, devices: int, terms: bool = False
) -> Tensor:
    """Compute gradients [devices, M] of some devices with the module's parameters, for batches of the first sample.

    Args:
        terms: whether to compute outputs of reference models, too, as for extra terms of the local loss.
    """
    reader = SampleReader(train)
    samples = torch.zeros(1, devices, EXAMPLES, dtype=torch.int64, device=train.x.device)
    weight = torch.full(samples.shape, 1 / EXAMPLES, device=train.x.device)
    sizes, generators = [[EXAMPLES] * devices], [torch.Generator() for _ in range(devices)]
    batches = Batch(reader, samples, reader.labels(samples), weight, sizes, generators)
    rows = kernel.layout.flatten(module).repeat(devices, 1)
    gradients = kernel.start(rows, batches, ())(0, devices).clone()
    if terms:
        kernel.outputs(rows, batches.at(0, devices))
    return gradients


def _refuse_changed_buffers(kernel: Kernel, module: nn.Module) -> None:
    """Raise an error if a training step changes tensors that do not belong to a device's model."""
    before: dict[str, Tensor] = dict(module.named_buffers())
    for name, buffer in kernel.module.named_buffers():
        if name in kernel.layout.statistics.names or name not in before:
            continue
        owner, _, last = name.rpartition(".")
        counts = last == "num_batches_tracked"
        if counts and getattr(kernel.module.get_submodule(owner), "momentum", None) is not None:
            continue  # only batch norm without momentum reads this counter
        if not torch.equal(buffer, before[name]):
            remedy = "set a momentum" if counts else "register it as a persistent buffer of float32"
            raise EdgeflError(
                f"the model changes {name} in training, which devices do not exchange with the server: {remedy}",
                _PLACE,
            )
