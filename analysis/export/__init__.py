"""A study's runs, tables and figures for MLflow, Weights & Biases and TensorBoard, without a network."""

from importlib import import_module
from pathlib import Path

from edgefl.analysis.export.records import Exported, study_of

TO = ("mlflow", "wandb", "tensorboard")


def export(path: str | Path, to: str, out: str | Path | None = None) -> Exported:
    """Write a study, or a run, into a tool's own files; runs that were exported before are left out.

    Args:
        path: a study's directory, or a run's.
        to: mlflow, wandb or tensorboard, to which curves and totals go.
        out: folder of the tool's files, mlflow.db and mlartifacts, wandb, or tensorboard; None: the study's.

    Raises:
        ValueError: no completed run, no such tool, its package is missing, or the folder cannot be written.
    """
    if to not in TO:
        raise ValueError(f"no export to '{to}': choose {', '.join(TO[:-1])} or {TO[-1]}")
    study = study_of(path)
    out = path if out is None else out
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        # here, since each needs a package of its own
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
