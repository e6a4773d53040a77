"""Read and write models as safetensors files, with everything needed to use the models.

A file has the whole `state_dict` of the module, including frozen parts. The header has one entry, JSON under
`edgefl`: inputs and their scaling, names of the labels, and the session and round that made the model.
"""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from edgefl.config.scenario_files import WHERE
from edgefl.errors import EdgeflError, quoted
from edgefl.errors import about as about_keys
from edgefl.learning.modules.parameters import ModelLayout

HEADER = "edgefl"
SHOWN = 3  # maximum number of names in an error message
MOST_INPUTS = 10**9  # maximum number of values in a sample
INITIAL = ("learning", "initial")


@dataclass(frozen=True)
class Inputs:
    """A model's inputs and their scaling, and the meaning of the model's outputs.

    shape: shape of a sample. mean, std: a model sees (x - mean) / std; float32, as nested lists.
    labels: names in the order of the outputs.
    target_mean, target_std: if targets are numbers, outputs stand for (target - target_mean) / target_std.
    """

    shape: tuple[int, ...]
    mean: Any
    std: Any
    labels: tuple[str, ...]
    target_mean: float = 0.0
    target_std: float = 1.0

    @classmethod
    def of(cls, path: Path, about: Mapping[str, Any]) -> Self:
        """Parse and validate `inputs` in the header of a model file, which any program may have written.

        Raises:
            EdgeflError: `inputs` is missing or invalid, or has more outputs than a model file can contain.
        """
        try:
            told = about["inputs"]
            shape = tuple(int(size) for size in told["shape"] if size == int(size) and 0 < size < MOST_INPUTS)
            if len(shape) != len(told["shape"]) or math.prod(shape) > MOST_INPUTS:
                raise ValueError(f"shape {quoted(str(told['shape']))}")
            labels = tuple(told["labels"])
            # a model has at least one number of four bytes for each output
            if not all(isinstance(name, str) for name in labels) or len(labels) > path.stat().st_size / 4:
                raise ValueError(f"{len(labels)} labels")
            scales = {
                name: told[name] for name in ("mean", "std", "target_mean", "target_std") if name in told
            }
            for name, value in scales.items():
                array = np.asarray(value, dtype=np.float32)
                np.broadcast_to(array, () if name.startswith("target") else shape)
                if not np.isfinite(array).all() or (name.endswith("std") and (array <= 0).any()):
                    raise ValueError(name)
            return cls(shape, labels=labels, **scales)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise EdgeflError(
                f"{path}: its header does not describe the model's inputs ({why}); use a file written by a run"
            ) from error


def whole_state(module: nn.Module, layout: ModelLayout, model: Tensor) -> dict[str, Tensor]:
    """Return a copy of a module's `state_dict` on the CPU, filled with the values of a model [M + Q]."""
    views = layout.views(model)
    # a tensor may have several names; the layout has only one of them
    name_of = {id(tensor): name for name, tensor in [*module.named_parameters(), *module.named_buffers()]}
    kept = module.state_dict(keep_vars=True)
    return {
        name: views.get(name_of.get(id(tensor), name), tensor.detach()).detach().cpu().clone().contiguous()
        for name, tensor in kept.items()
    }


def stacked_state(layout: ModelLayout, rows: Tensor) -> dict[str, Tensor]:
    """Return the tensors of several models [k, M + Q] on the CPU: name -> [k, *shape]."""
    return {
        name: view.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, view in layout.views(rows).items()
    }


def write(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], inputs: Inputs) -> None:
    """Write a safetensors file with edgefl's header; equal content gives equal bytes.

    Raises:
        OSError: the file cannot be written.
    """
    # a single entry, because the order of several entries would differ from process to process
    taken = asdict(inputs)
    if (inputs.target_mean, inputs.target_std) == (0.0, 1.0):
        taken = {name: value for name, value in taken.items() if not name.startswith("target_")}
    header = {HEADER: json.dumps({**about, "inputs": taken})}
    path.touch()
    mode = path.stat().st_mode  # safetensors makes files that only the owner can read
    try:
        save_file(dict(tensors), path, metadata=header)
        path.chmod(mode)
    except SafetensorError as error:
        raise OSError(None, str(error)) from error


def read_about(path: Path) -> dict[str, Any]:
    """Return edgefl's entry in the header of a safetensors file; {} if there is no such entry.

    Raises:
        EdgeflError: the file is not a complete safetensors file, or its header is damaged.
    """
    with _reading(path), safe_open(path, framework="pt") as file:
        text = (file.metadata() or {}).get(HEADER, "{}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EdgeflError(
            f"{path}: {HEADER!r} in its header is not a JSON object; use a file written by a run"
        )
    return found


def read(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file by name, on the CPU.

    Raises:
        EdgeflError: the file is not a complete safetensors file.
    """
    with _reading(path):
        tensors: dict[str, Tensor] = load_file(path)
    return tensors


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Check that a path is a plain file, and turn errors in reading the file as safetensors into EdgeflErrors."""
    if not path.is_file():
        raise EdgeflError(f"{path}: this is not a file; name a safetensors file")
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise EdgeflError(
            f"{path}: the file cannot be read as safetensors ({error}); convert a PyTorch file with "
            "safetensors.torch.save_file(module.state_dict(), path)"
        ) from error


def begin_with(module: nn.Module, path: Path, *, partial: bool) -> None:
    """Load the tensors of a model file into a module before training.

    Args:
        partial: whether a module's tensors that the file lacks, or has in another shape, stay unchanged, and tensors
            that the module lacks are ignored; otherwise each such tensor is an error.

    Raises:
        EdgeflError: the file does not fit the module, or has numbers that are not finite.
    """
    if not path.exists():
        raise EdgeflError(f"{path}: no such file in {Path.cwd()}; {WHERE}", (*INITIAL, "path"))
    with about_keys(*INITIAL, "path"):
        given = read(path)
        fitting = _fitting(module, given, path, partial=partial)
        own = module.state_dict()
        for name in fitting:  # convert to the module's type, in which a large double may be infinite
            if own[name].is_floating_point() and not torch.isfinite(given[name].to(own[name].dtype)).all():
                raise EdgeflError(f"{path}: {name} is not finite")
        module.load_state_dict({name: given[name] for name in fitting}, strict=False)


def put_into(module: nn.Module, given: Mapping[str, Tensor], path: Path, *, partial: bool = False) -> None:
    """Load a trained model's tensors into a module, finite or not; with `partial`, other tensors stay unchanged.

    Raises:
        EdgeflError: the tensors do not fit the model in the run's scenario.
    """
    if partial:
        given = {**module.state_dict(), **given}
    _fitting(module, given, path, partial=False)
    module.load_state_dict(given)


def _fitting(module: nn.Module, given: Mapping[str, Tensor], path: Path, *, partial: bool) -> list[str]:
    """Return the names of the tensors that have the same shape and number type in a model file and a module.

    Raises:
        EdgeflError: no tensor fits, or without `partial` not all tensors fit.
    """
    own = module.state_dict()
    fitting = [name for name in own if name in given and _like(own[name]) == _like(given[name])]
    if not fitting:
        raise EdgeflError(
            f"{path}: none of its tensors fits the model. The model has: {_some(own, own)}. The file has:"
            f" {_some(given, given)}. Choose the model that the file belongs to"
        )
    lacking = [name for name in own if name not in given]
    strange = [name for name in given if name not in fitting]
    if (lacking or strange) and not partial:
        raise EdgeflError(
            f"{path}: the file does not fit the model. Missing from the file: {_some(lacking, own)}. Missing"
            f" from the model, or different there: {_some(strange, given)}. Different in the file:"
            f" {_some([name for name in strange if name in own], own)}. Choose the model that the file belongs to, or"
            " set partial: true to load only the tensors that fit"
        )
    return fitting


def _like(tensor: Tensor) -> tuple[torch.Size, bool, bool]:
    """Return a tensor's shape and number type, which must agree in file and module; precisions may differ."""
    return tensor.shape, tensor.is_floating_point(), tensor.is_complex()


def _some(names: Collection[str], of: Mapping[str, Tensor]) -> str:
    """Format some tensors' names and shapes; models for different data sets may differ only in shapes."""
    shown = [f"{quoted(name)} {list(of[name].shape)}{_kind(of[name])}" for name in [*names][:SHOWN]]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(shown) + more or "nothing"


def _kind(tensor: Tensor) -> str:
    return "" if tensor.is_floating_point() else f" of {str(tensor.dtype).removeprefix('torch.')}"
