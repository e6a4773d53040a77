"""Export a study's runs, tables and figures to MLflow, Weights & Biases or TensorBoard, offline."""

from importlib import import_module
from pathlib import Path

from edgefl.analysis.export.records import Exported, study_of
from edgefl.analysis.page.formatting import joined

TO = ("mlflow", "wandb", "tensorboard")


def export(path: str | Path, to: str, out: str | Path | None = None) -> Exported:
    """Write a study or run to a tool's own files; skip runs that were exported before.

    Args:
        path: directory of the study or run.
        to: name of the tool: mlflow, wandb or tensorboard.
        out: folder in which to create mlflow.db and mlartifacts, or wandb, or tensorboard, or None for `path`.

    Raises:
        ValueError: no run is completed, the tool is unknown or not installed, or the folder cannot be written.
    """
    if to not in TO:
        raise ValueError(f"no export to '{to}': choose {joined(TO, 'or')}")
    study = study_of(path)
    out = path if out is None else out
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        # import the module only here, since each tool needs its own package
        written: Exported = import_module(f"edgefl.analysis.export.to_{to}").write(study, Path(out).resolve())
        return written
    except ImportError as error:
        raise ValueError(
            f"export to {to} needs a package ({error}): pip install 'edgefl-cosim[{to}]'"
        ) from error
    except OSError as error:
        raise ValueError(
            f"cannot write to {out} ({error.strerror or error}): choose another --out"
        ) from error
