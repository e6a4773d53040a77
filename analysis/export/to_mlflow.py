"""Write runs to an MLflow store in one SQLite file; view: `mlflow ui --backend-store-uri sqlite:///mlflow.db`."""

import logging
import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from edgefl.analysis.export.records import Exported, RunRecord, StudyRecord

KEY = "edgefl.key"
REMEDY = "move the file away, or choose another --out"
# MLflow's limits per request, and for the length of a value
MOST_METRICS, MOST_PARAMS, LONGEST = 1000, 100, 6000


def write(study: StudyRecord, out: Path) -> Exported:
    """Write each run to the study's experiment, and the study's files to a parent run.

    Curves are plotted over simulated time.
    """
    for name in ("MLFLOW_DISABLE_TELEMETRY", "DO_NOT_TRACK"):  # mlflow reads these variables on import
        os.environ.setdefault(name, "true")
    from mlflow import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.WARNING)  # suppress messages about the new database
    database = out / "mlflow.db"
    _require_store(database)
    client = MlflowClient(tracking_uri=f"sqlite:///{database}")
    known = client.get_experiment_by_name(study.name)
    if known is None:
        place = (out / "mlartifacts" / study.name).as_uri()
        experiment = client.create_experiment(study.name, artifact_location=place)
    else:
        experiment = known.experiment_id
    there = _there(client, experiment)
    whole = f"study {study.name}"
    parent = there.get(whole)
    if parent is None:
        parent = client.create_run(experiment, run_name=whole, tags={KEY: whole}).info.run_id
        client.set_terminated(parent)
    for file in study.files:
        inside = Path(study.name_of(file)).parent.name  # files of two federations have the same names
        client.log_artifact(parent, str(file), inside or None)
    new = [record for record in study.runs if record.key not in there]
    for record in new:
        _write_run(client, experiment, parent, record)
    # the extra installs MLflow without its web page, which needs Flask
    first = "" if find_spec("flask") else "pip install mlflow && "
    look = f"{first}mlflow ui --backend-store-uri {shlex.quote(f'sqlite:///{database}')}"
    return Exported(study, database, len(new), len(study.files), look)


def _require_store(database: Path) -> None:
    """Refuse a file that is not an MLflow store, since MLflow would fail with a long traceback.

    Raises:
        ValueError: the file exists, but is not an SQLite database, or has tables and none of MLflow's.
    """
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as opened:
            tables = {
                name for (name,) in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
    except sqlite3.Error as error:
        raise ValueError(f"{database}: cannot be read as an MLflow store ({error}): {REMEDY}") from error
    if tables and "experiments" not in tables:
        raise ValueError(f"{database}: is a database, but not an MLflow store: {REMEDY}")


def _there(client: Any, experiment: str) -> dict[str, str]:
    """Return key -> id of the complete runs in an MLflow store; delete incomplete runs."""
    there, token = {}, None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        for run in page:
            if run.info.status == "FINISHED":
                there[run.data.tags.get(KEY, "")] = run.info.run_id
            elif KEY in run.data.tags:
                client.delete_run(run.info.run_id)
        token = page.token
        if not token:
            return there


def _write_run(client: Any, experiment: str, parent: str, record: RunRecord) -> None:
    from mlflow.entities import Metric, Param

    tags = {KEY: record.key, "mlflow.parentRunId": parent, "edgefl.group": record.group}
    tags |= {f"edgefl.{name}": value for name, value in record.about.items()}
    run = client.create_run(experiment, run_name=record.name, tags=tags).info.run_id
    params = [Param(key, str(value)[:LONGEST]) for key, value in record.settings.items()]
    metrics = [
        Metric(name, value, round(1000 * end_s), step)
        for step, (end_s, values) in enumerate(record.rounds)
        for name, value in values.items()
    ]
    last_ms = round(1000 * record.rounds[-1][0]) if record.rounds else 0
    metrics += [Metric(name, value, last_ms, 0) for name, value in record.summary.items()]
    for some in _parts(params, MOST_PARAMS):
        client.log_batch(run, params=some)
    for some in _parts(metrics, MOST_METRICS):
        client.log_batch(run, metrics=some)
    client.log_artifact(run, str(record.path / "scenario.yaml"))
    client.set_terminated(run)


def _parts(values: list[Any], most: int) -> Iterator[list[Any]]:
    for first in range(0, len(values), most):
        yield values[first : first + most]
