"""Load the models that a run has trained, as PyTorch modules with the scaling of their inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError, quoted
from edgefl.learners.keeping import FOLDER
from edgefl.run_directory.reading import about_of
from edgefl.scenario.scenario import load

if TYPE_CHECKING:
    from torch import Tensor, nn

    from edgefl.learning.modules.model_files import Inputs


@dataclass(frozen=True)
class TrainedModule:
    """A trained model: its module, in evaluation mode on the CPU, and a description of its inputs and outputs.

    Args:
        module: PyTorch module for inputs [n, *input_shape] that `normalised` returned.
        inputs: shape and scaling of the inputs, and names of the labels.
        about: cell, session, phase and round that made the model.

    Example:
        model = edgefl.load_model("runs/first")
        labels = model.module(model.normalised(images)).argmax(1)
    """

    module: "nn.Module"
    inputs: "Inputs"
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the model's outputs."""
        return self.inputs.labels

    def normalised(self, x: Any) -> "Tensor":
        """Normalise raw inputs [n, *input_shape], an array or tensor, for the model: (x - mean) / std."""
        import torch

        x, shape = torch.as_tensor(x), tuple(self.inputs.shape)
        if tuple(x.shape[1:]) != shape:
            raise EdgeflError(f"inputs have shape {list(x.shape)}: this model needs {['n', *shape]}")
        mean, std = (torch.tensor(one, dtype=torch.float32) for one in (self.inputs.mean, self.inputs.std))
        return x.to(torch.float32).sub(mean).mul(1.0 / std)

    def numbers(self, outputs: "Tensor") -> "Tensor":
        """Convert a regression model's outputs [n, 1] to values [n] in the units of the targets."""
        return self.inputs.target_mean + self.inputs.target_std * outputs[..., 0]


def load_model(
    run: str | Path,
    *,
    cell: int | None = None,
    kept: str | int = "last",
    device: int | None = None,
    served: int | None = None,
) -> TrainedModule:
    """Load a model from the directory of the run that trained it.

    Args:
        run: the run directory, or a federation's directory in it; the key `record.models` of the run's scenario
            determines which models were kept.
        cell: the model's cell, by default the only cell that has a server.
        kept: which model to load: `last`, `best`, or a round's number, if `record.models` kept that model.
        device: id of a device, to load its own model or its cluster's model, or None for the global model.
        served: index of a model, if the cell keeps several models for its devices, or None for the global model.

    Returns:
        The module, with its inputs' scaling and the names of the labels.

    Raises:
        EdgeflError: the run has not kept this model; the message names the models that exist.
    """
    import torch

    from edgefl.learning.modules import model_files

    run = Path(run)
    folder = run / FOLDER
    files = sorted(folder.glob("cell*.safetensors"))
    if not files:
        if parts := about_of(run).get("federations"):
            raise EdgeflError(
                f"{run}: its models are in its federations' folders: give {run / next(iter(parts))}"
            )
        raise EdgeflError(f"{run}: has no models; a run saves them at its end, unless record.models is none")
    cells = sorted({_cell_of(path) for path in files})
    if cell is None:
        if len(cells) > 1:
            raise EdgeflError(f"{run}: has models of cells {', '.join(map(str, cells))}: set cell=")
        cell = cells[0]
    suffix = {"last": "", "best": "-best"}.get(str(kept), f"-round{kept}")
    path = folder / f"cell{cell}{suffix}.safetensors"
    if path not in files:
        there = ", ".join(file.stem for file in files)
        raise EdgeflError(f"{run}: has no model {path.stem}; it has {there}")
    about = model_files.read_about(path)
    inputs = model_files.Inputs.of(path, about)
    del about["inputs"]
    scenario = load(run / "scenario.yaml")
    assert scenario.learning is not None
    with torch.random.fork_rng(devices=[]):
        try:
            module = scenario.learning.model.build(inputs.shape, len(inputs.labels)).eval()
        except (RuntimeError, ValueError, OverflowError, MemoryError) as error:
            raise EdgeflError(
                f"{path}: its header has inputs {list(inputs.shape)} and {len(inputs.labels)} labels, but the "
                f"scenario's model cannot be built with them ({quoted(str(error))}): use a file that a run saved"
            ) from error
    model_files.put_into(module, model_files.read(path), path)
    if device is not None or served is not None:
        model_files.put_into(module, _beside(path, device, served), path, partial=True)
    return TrainedModule(module, inputs, about)


def _beside(path: Path, device: int | None, served: int | None) -> "dict[str, Tensor]":
    """Return the parameters of a device's own model, or of one of a cell's several models."""
    from edgefl.learning.federation import kept_models

    rows = _rows(path, kept_models.PERSONAL) if device is not None else {}
    which = _position(rows[kept_models.DEVICES], device) if rows else None
    if which is None:
        rows, which = _rows(path, kept_models.SERVED), served
        if rows and device is not None:
            position = _position(rows[kept_models.DEVICES], device)
            which = None if position is None else int(rows[kept_models.MODEL_OF][position])
    about = (kept_models.DEVICES, kept_models.MODEL_OF)
    own = {name: tensor for name, tensor in rows.items() if name not in about}
    count = min((tensor.shape[0] if tensor.dim() else 0 for tensor in own.values()), default=0)
    if which is None or not 0 <= which < count:
        wanted = f"device {device}" if device is not None else f"served={served} (the cell has {count})"
        raise EdgeflError(
            f"{path}: there is no model besides the global model for {wanted}: a run saves other models only if its "
            "algorithm makes them, and devices' own models only with record.models: personal"
        )
    return {name: tensor[which] for name, tensor in own.items()}


def _cell_of(path: Path) -> int:
    return int(path.stem.removeprefix("cell").partition("-")[0])


def _rows(path: Path, kind: str) -> "dict[str, Tensor]":
    """Return the tensors of models saved in a file beside the global model; empty if there is no such file."""
    from edgefl.learning.federation import kept_models
    from edgefl.learning.modules import model_files

    beside = path.with_name(f"{path.stem}-{kind}.safetensors")
    rows = model_files.read(beside) if beside.exists() else {}
    needed = {kept_models.PERSONAL: [kept_models.DEVICES]}.get(kind, [])
    if rows.get(kept_models.MODEL_OF) is not None or kept_models.DEVICES in rows:
        needed = [kept_models.DEVICES] + [kept_models.MODEL_OF] * (kind == kept_models.SERVED)
    if rows and any(name not in rows or rows[name].dim() != 1 for name in needed):
        raise EdgeflError(f"{beside}: lacks the devices of its models ({', '.join(needed)}): repeat the run")
    return rows


def _position(ids: "Tensor", device: int | None) -> int | None:
    found: list[int] = ids.tolist()
    return found.index(device) if device in found else None
