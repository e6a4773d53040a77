"""Models as files: a module's tensors by name, in safetensors, with what is needed to use them.

A file is the whole `state_dict` of the module, what is frozen included, and its header holds one text, JSON under
`edgefl`: inputs and their scaling, names of the labels, and where in the run the model was.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from edgefl.config.scenario_files import WHERE
from edgefl.errors import EdgeflError, quoted
from edgefl.learning.modules.parameters import ModelLayout

HEADER = "edgefl"
SHOWN = 3  # names in an error
INITIAL = ("learning", "initial")


@dataclass(frozen=True)
class Inputs:
    """What a model takes, and what its outputs mean.

    shape: of a sample. mean, std: a model sees (x - mean) / std; float32, nested lists as of an array.
    labels: names, in the order of the outputs.
    target_mean, target_std: outputs stand for (target - mean) / std, where targets are numbers.
    """

    shape: tuple[int, ...]
    mean: Any
    std: Any
    labels: tuple[str, ...]
    target_mean: float = 0.0
    target_std: float = 1.0

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Self:
        """Return what a file's header says."""
        known = {name: about[name] for name in ("target_mean", "target_std") if name in about}
        return cls(tuple(about["shape"]), about["mean"], about["std"], tuple(about["labels"]), **known)


def whole_state(module: nn.Module, layout: ModelLayout, model: Tensor) -> dict[str, Tensor]:
    """Return the module's `state_dict` with a model [M + Q] in it, on the CPU, each tensor with memory of its own."""
    views = layout.views(model)
    # a tensor may have several names, of which the layout knows one
    name_of = {id(tensor): name for name, tensor in [*module.named_parameters(), *module.named_buffers()]}
    kept = module.state_dict(keep_vars=True)
    return {
        name: views.get(name_of.get(id(tensor), name), tensor.detach()).detach().cpu().clone().contiguous()
        for name, tensor in kept.items()
    }


def stacked_state(layout: ModelLayout, rows: Tensor) -> dict[str, Tensor]:
    """Return what is trained or kept of several models [k, M + Q], on the CPU: name -> [k, *shape]."""
    return {
        name: view.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, view in layout.views(rows).items()
    }


def write(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], inputs: Inputs) -> None:
    """Write a file of tensors; equal content gives equal bytes.

    Raises:
        OSError: it cannot be written.
    """
    # one entry: the order of several would be drawn anew by each process
    taken = asdict(inputs)
    if (inputs.target_mean, inputs.target_std) == (0.0, 1.0):
        taken = {name: value for name, value in taken.items() if not name.startswith("target_")}
    header = {HEADER: json.dumps({**about, "inputs": taken})}
    path.touch()
    mode = path.stat().st_mode  # safetensors' own is for nobody else to read
    try:
        save_file(dict(tensors), path, metadata=header)
        path.chmod(mode)
    except SafetensorError as error:
        raise OSError(None, str(error)) from error


def read_about(path: Path) -> dict[str, Any]:
    """Return what a file's header says; empty: it is not one of edgefl's.

    Raises:
        EdgeflError: it is no whole safetensors file.
    """
    try:
        with safe_open(path, framework="pt") as file:
            found: dict[str, Any] = json.loads((file.metadata() or {}).get(HEADER, "{}"))
    except (OSError, SafetensorError) as error:
        raise EdgeflError(f"{path}: cannot be read as safetensors ({error})") from error
    return found


def read(path: Path) -> dict[str, Tensor]:
    """Return a file's tensors by name, on the CPU.

    Raises:
        EdgeflError: it is no whole safetensors file.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise EdgeflError(
            f"{path}: cannot be read as safetensors ({error}); a PyTorch file becomes one by"
            " safetensors.torch.save_file(module.state_dict(), path)"
        ) from error


def begin_with(module: nn.Module, path: Path, *, partial: bool) -> None:
    """Put a file's tensors into a module.

    Args:
        partial: tensors that the file lacks, or has in another shape, stay as they are, and those that the module
            lacks are left out; else either is an error.

    Raises:
        EdgeflError: the file does not fit.
    """
    if not path.is_file():
        raise EdgeflError(f"{path}: no such file in {Path.cwd()}; {WHERE}", (*INITIAL, "path"))
    given, own = read(path), module.state_dict()
    lacking = [name for name in own if name not in given]
    strange = [name for name in given if name not in own]
    unlike = [name for name in own if name in given and own[name].shape != given[name].shape]
    fitting = {name: given[name] for name in own if name in given and name not in unlike}
    if not fitting:
        raise EdgeflError(
            f"{path}: no tensor of it fits the model, whose first ones are {_shaped(own)}; the file's are"
            f" {_shaped(given)}: take the model that it is of, or leave initial out",
            (*INITIAL, "path"),
        )
    if (lacking or strange or unlike) and not partial:
        what = [
            f"lacks {_some(lacking)}" if lacking else "",
            f"has {_some(strange)}, which the model has not" if strange else "",
            *(f"has {name} {list(given[name].shape)} for {list(own[name].shape)}" for name in unlike[:SHOWN]),
        ]
        raise EdgeflError(
            f"{path}: does not fit the model: {'; '.join(filter(None, what))}; take the model that it is of, or"
            " partial: true, which begins with what fits",
            (*INITIAL, "path"),
        )
    for name, tensor in fitting.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise EdgeflError(f"{path}: {name} is not finite", (*INITIAL, "path"))
    module.load_state_dict(fitting, strict=False)


def _shaped(tensors: Mapping[str, Tensor]) -> str:
    """Return names and shapes: those of another data set's model have the names and not the shapes."""
    more = f" and {len(tensors) - SHOWN} more" if len(tensors) > SHOWN else ""
    return ", ".join(f"{quoted(name)} {list(tensors[name].shape)}" for name in [*tensors][:SHOWN]) + more


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(quoted, names[:SHOWN])) + more
