"""Models as files: a module's tensors by name, in safetensors, with what is needed to use them.

A file is the whole `state_dict` of the module, what is frozen included, and its header holds one text, JSON under
`edgefl`: inputs and their scaling, names of the labels, and where in the run the model was.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
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
from edgefl.errors import EdgeflError, about, quoted
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

    @classmethod
    def checked(cls, path: Path, about: Any) -> Self:
        """Return what the header of a file says that may be a stranger's.

        Raises:
            EdgeflError: it is not what `write` writes.
        """
        try:
            found = cls.of(about)
            whole = all(type(size) is int and size > 0 for size in found.shape)
            named = all(isinstance(label, str) for label in found.labels) and found.labels
            scales = [np.asarray(value, np.float32) for value in (found.mean, found.std)]
            for scale in scales:
                np.broadcast_to(scale, found.shape)
            targets = [np.float64(found.target_mean), np.float64(found.target_std)]
            finite = all(np.isfinite(value).all() for value in scales) and bool(np.isfinite(targets).all())
            fits = whole and named and finite and (scales[1] > 0).all() and targets[1] > 0
        except (KeyError, TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise EdgeflError(
                f"{path}: its header does not say how inputs are scaled and what outputs mean (inputs: shape, mean,"
                " std and labels): take a file that a run has kept"
            )
        return found


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
    with _reading(path), safe_open(path, framework="pt") as file:
        header = (file.metadata() or {}).get(HEADER, "{}")
    try:
        found = json.loads(header)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EdgeflError(f"{path}: its header is damaged: take a file that a run has kept")
    return found


def read(path: Path) -> dict[str, Tensor]:
    """Return a file's tensors by name, on the CPU.

    Raises:
        EdgeflError: it is no whole safetensors file.
    """
    with _reading(path):
        tensors: dict[str, Tensor] = load_file(path)
        return tensors


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Refuse what is no file, such as a pipe, which would be waited for, and say why a file cannot be read."""
    if path.exists() and not path.is_file():
        raise EdgeflError(f"{path}: is no file: give one of safetensors")
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise EdgeflError(
            f"{path}: cannot be read as safetensors ({error}); a PyTorch file becomes one by"
            " safetensors.torch.save_file(module.state_dict(), path)"
        ) from error


def load_whole(module: nn.Module, path: Path) -> None:
    """Put a file's tensors, which are the whole of a module's, into it.

    Raises:
        EdgeflError: the file does not fit.
    """
    given, own = read(path), module.state_dict()
    if wrong := misfits(given, own):
        raise EdgeflError(
            f"{path}: does not fit the model of its run: {wrong}; take the file and the scenario of one run"
        )
    _check_numbers(path, given, own)
    module.load_state_dict(given)


def load_row(module: nn.Module, path: Path, rows: Mapping[str, Tensor], which: int) -> None:
    """Put one of several models, which a file has as the rows of its tensors, into a module.

    Raises:
        EdgeflError: they are of another module.
    """
    own = {name: tensor for name, tensor in module.state_dict().items() if name in rows}
    some = {name: tensor[which] for name, tensor in rows.items()}
    if wrong := misfits(some, own):
        raise EdgeflError(f"{path}: does not fit the model beside it: {wrong}; take the files of one run")
    _check_numbers(path, some, own)
    module.load_state_dict(some, strict=False)


def misfits(given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> str:
    """Return which of a module's tensors others lack, have beside them, or have in other shapes; empty: none."""
    lacking = [name for name in own if name not in given]
    strange = [name for name in given if name not in own]
    unlike = [name for name in own if name in given and own[name].shape != given[name].shape]
    what = [
        f"lacks {_some(lacking)}" if lacking else "",
        f"has {_some(strange)}, which the model has not" if strange else "",
        *(f"has {name} {list(given[name].shape)} for {list(own[name].shape)}" for name in unlike[:SHOWN]),
    ]
    return "; ".join(filter(None, what))


def _check_numbers(path: Path, given: Mapping[str, Tensor], own: Mapping[str, Tensor], *place: str) -> None:
    """Refuse tensors whose numbers a module would not have as they are: of another kind, or not finite in it."""
    for name, tensor in given.items():
        wanted = own[name].dtype
        if tensor.is_floating_point() != wanted.is_floating_point or tensor.is_complex() != wanted.is_complex:
            raise EdgeflError(
                f"{path}: {name} is of {_kind(tensor.dtype)}, the model's of {_kind(wanted)}: save numbers of that"
                " kind",
                place,
            )
        if tensor.is_floating_point() and not torch.isfinite(tensor.to(wanted)).all():
            raise EdgeflError(
                f"{path}: {name} is not finite: take a model that training has not spoilt", place
            )


def _kind(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


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
    with about(*INITIAL, "path"):
        given = read(path)
    own = module.state_dict()
    fitting = {name: given[name] for name in own if name in given and own[name].shape == given[name].shape}
    if not fitting:
        raise EdgeflError(
            f"{path}: no tensor of it fits the model, whose first ones are {_some(list(own))}; the file's are"
            f" {_some(list(given))}",
            (*INITIAL, "path"),
        )
    if (wrong := misfits(given, own)) and not partial:
        raise EdgeflError(
            f"{path}: does not fit the model: {wrong}; take the model that it is of, or partial: true, which begins"
            " with what fits",
            (*INITIAL, "path"),
        )
    _check_numbers(path, fitting, own, *INITIAL, "path")
    module.load_state_dict(fitting, strict=False)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(quoted, names[:SHOWN])) + more
