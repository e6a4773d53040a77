"""Write runs as offline runs of Weights & Biases; `wandb sync` uploads them on request."""

import hashlib
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pandas as pd

from edgefl.analysis.export.records import Exported, RunRecord, StudyRecord
from edgefl.analysis.runs.reading import EXACT

WHOLE = "complete"  # a file that marks a run folder as complete; incomplete folders are written again


def write(study: StudyRecord, out: Path) -> Exported:
    """Write each run to the study's project as an offline run, and the study's tables and figures as one more run."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    new = [record for record in study.runs if not _is_there(out, record.key)]
    for record in new:
        _write_run(study, record, out)
    contents = hashlib.sha256(b"".join(file.read_bytes() for file in study.files)).hexdigest()[:12]
    key = f"study {study.name} {contents}"
    if study.files and not _is_there(out, key):
        _write_files(study, key, out)
    folder = out / "wandb"
    look = f"wandb sync {shlex.quote(str(folder))}/offline-run-*"  # the shell expands the star outside quotes
    return Exported(study, folder, len(new), len(study.files), look)


def _id(key: str) -> str:
    """Return the run's wandb id, derived from its key so that a second upload replaces the first."""
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def _is_there(out: Path, key: str) -> bool:
    return any((out / "wandb").glob(f"offline-run-*-{_id(key)}/{WHOLE}"))


def _begun(study: StudyRecord, out: Path, key: str, **about: Any) -> Any:
    import wandb

    # a simulation's results should not contain details of this machine
    settings = wandb.Settings(console="off", x_disable_stats=True, x_disable_meta=True, silent=True)
    return wandb.init(
        mode="offline", dir=str(out), project=study.name, id=_id(key), settings=settings, **about
    )


def _ended(run: Any) -> None:
    folder = Path(run.dir).parent
    run.finish()
    (folder / WHOLE).touch()


def _write_run(study: StudyRecord, record: RunRecord, out: Path) -> None:
    config = record.settings | {f"edgefl.{name}": value for name, value in record.about.items()}
    run = _begun(study, out, record.key, name=record.name, group=record.group, job_type="run", config=config)
    for step, (_, values) in enumerate(record.rounds):
        run.log(values, step=step)
    run.summary.update(record.summary)
    _ended(run)


def _write_files(study: StudyRecord, key: str, out: Path) -> None:
    """Log CSV files as tables and PNG files as images; save other files unchanged."""
    import wandb

    run = _begun(study, out, key, name=f"study {study.name}", job_type="study")
    for file in study.files:
        name = study.name_of(file)
        if file.suffix == ".csv":
            run.log({name: wandb.Table(dataframe=pd.read_csv(file, **EXACT))})
        elif file.suffix == ".png":
            run.log({name: wandb.Image(str(file))})
        else:
            # copy the file, since a link would break once the study moves
            copy = Path(run.dir, name)
            copy.parent.mkdir(exist_ok=True)
            run.save(shutil.copy(file, copy), base_path=run.dir, policy="end")
    _ended(run)
