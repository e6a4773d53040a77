"""Run directories as tidy tables: one row per run, round, participation, event, session or device."""

import json
import os
import shlex
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.formatting import natural

SCHEMA_VERSION = 1
INFO_COLUMNS = [
    *("path", "setting", "variant", "seed", "status", "wall_s", "simulated_s", "reference", "name", "notes"),
    "devices_recorded",
]
# what the metrics and figures rely on; further columns are kept as they are
REQUIRED_COLUMNS = {
    "rounds": [
        *("session", "round", "phase", "start_s", "end_s", "latency_s", "latency_mean_s"),
        *("energy_j", "energy_rx_j", "energy_tx_j", "energy_compute_j", "accuracy"),
    ],
    "devices": [
        *("session", "round", "phase", "device", "energy_j", "outcome"),
        *("downlink_bits", "uplink_bits"),
    ],
    "events": ["time_s", "event", "device", "session", "detail"],
    "sessions": ["session", "start_s", "labels", "accuracy_start"],
    "ledger": ["device", "receive_j", "transmit_j", "compute_j", "idle_j", "total_j", "wasted_j"],
    "positions": ["time_s", "device", "x_m", "y_m", "cell", "gain_db"],
}
# columns of words or of lists: "3" in them is a list of one, not a number
TEXT_COLUMNS = {
    "rounds": {"phase"},
    "devices": {"phase", "outcome", "class"},
    "events": {"event", "detail"},
    "sessions": {"reason", "devices", "labels", "warm_start", "weights"},
    "ledger": {"class"},
    "positions": set(),
}
# empty throughout in runs without training: a number all the same
FLOAT_COLUMNS = {"accuracy", "loss", "accuracy_start", "loss_start", "gain_db", "sinr_db"}

MOST_OF_AN_ERROR = 160  # characters; run.json has all of it

Setting = tuple[tuple[str, str], ...]  # (axis, label) of a study's grid; () without one


@dataclass(frozen=True)
class Runs:
    """The completed runs below a folder. Every table but `info` leads with the columns variant, seed.

    Attributes:
        path: the folder that was searched.
        info: one row per run: path, setting, variant, seed, status, wall_s, simulated_s, reference, name,
            notes (what the run had to say of itself), devices_recorded (rows of devices.csv: of all rounds, of
            none, or of every n-th).
        rounds: rounds.csv of all runs. Accuracy (0..1) is NaN on probe rounds and in runs without training.
        events: events.csv of all runs.
        sessions: sessions.csv of all runs.
        left_out: one sentence for each run directory that was not read, and why.
    """

    path: Path
    info: pd.DataFrame
    rounds: pd.DataFrame = field(repr=False)
    events: pd.DataFrame = field(repr=False)
    sessions: pd.DataFrame = field(repr=False)
    left_out: tuple[str, ...] = ()

    @cached_property
    def devices(self) -> pd.DataFrame:
        """Read the table devices of all runs, one row per device and round. Large: only when first asked for.

        Not all rounds have rows where a run was told not to record them: see `notes`.
        """
        return _read_all(self.info, "devices")

    @cached_property
    def positions(self) -> pd.DataFrame:
        """Read the table positions of the runs that have one: where each device was at an interval.

        Raises:
            ValueError: none has.
        """
        some = [any(_forms(Path(path), "positions")) for path in self.info["path"]]
        if not any(some):
            raise ValueError(f"the runs in {self.path} have no positions: run them with record.positions_s")
        return _read_all(self.info[some], "positions")

    @property
    def notes(self) -> list[str]:
        """What the runs did not record, one sentence each."""
        found = []
        for recorded, runs in self.info.groupby("devices_recorded", sort=False):
            if recorded != "all":
                rows = "of no round" if recorded == "none" else f"of one round in {recorded}"
                found.append(
                    f"{len(runs)} of {len(self.info)} runs have rows of devices {rows} (record.devices): what is"
                    " made of the rows of all rounds is left out for them, and means are over those that are there"
                )
        return found

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """Read ledger.csv of all runs, one row per device: its joules by what it was doing, and those wasted."""
        return _read_all(self.info, "ledger")


def load_runs(path: str | Path) -> Runs:
    """Read every completed run directory below a folder, or the folder itself if it is one.

    A run outside a study takes its own name as its variant. A run that is not completed is left out,
    with a warning that names it.

    Raises:
        ValueError: no such folder, no completed run below it, runs of several settings of a grid, two runs of
            one variant and seed, or a run directory whose tables are missing or lack a column.
    """
    by_setting = load_settings(path)
    if len(by_setting) > 1:
        first = next(iter(by_setting.values())).path
        raise ValueError(
            f"{path} holds {len(by_setting)} settings of a grid: give the folder of one, such as {first}, or "
            "compare them all with `python -m analysis settings`"
        )
    return next(iter(by_setting.values()))


def load_settings(path: str | Path) -> dict[Setting, Runs]:
    """Read the runs of each setting of a study's grid as `load_runs` does, in order of their folders."""
    root = Path(path)
    if not root.is_dir():
        raise ValueError(f"no folder {root}: give the folder of a run or of a study")
    directories = _run_directories(root)
    if not directories:
        raise ValueError(
            f"no run directory (a folder with run.json) in or below {root}: run a scenario first"
        )
    rows, left_out = [], []
    for directory in directories:
        try:
            rows.append(_info(directory))
        except _NotUsableError as reason:
            left_out.append(f"left out {directory}: {reason}")
    if not rows:
        raise ValueError(
            f"no completed run in or below {root}: {'; '.join(left_out)}; let one run to its end"
        )
    for sentence in left_out:
        warnings.warn(sentence, stacklevel=3)
    info = pd.DataFrame(rows, columns=INFO_COLUMNS)
    by_setting = {}
    for setting, group in info.groupby("setting", sort=False):
        runs = group.sort_values(["variant", "seed"], ignore_index=True)
        _check_distinct(runs)
        tables = {name: _read_all(runs, name) for name in ("rounds", "events", "sessions")}
        folder = root if len(runs) == len(info) else Path(os.path.commonpath(list(runs["path"])))
        by_setting[setting] = Runs(path=folder, info=runs, left_out=tuple(left_out), **tables)
    return by_setting


class _NotUsableError(Exception):
    """Why one run directory is left out."""


def _run_directories(root: Path) -> list[Path]:
    directories = []
    for folder, subfolders, files in os.walk(root):
        subfolders.sort(key=natural)
        if "run.json" in files:
            directories.append(Path(folder))
            subfolders.clear()  # a run directory holds checkpoints, not further runs
    return directories


def _info(directory: Path) -> dict[str, Any]:
    try:
        run = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _NotUsableError(f"run.json cannot be read ({error})") from error
    if not isinstance(run, dict):
        raise _NotUsableError("run.json holds no description of a run")
    if run.get("schema_version") != SCHEMA_VERSION:
        raise _NotUsableError(
            f"schema version {run.get('schema_version')}, this release reads {SCHEMA_VERSION}: run it again"
        )
    if run.get("status") != "completed":
        raise _NotUsableError(_what_is_missing(run, directory))
    name = run.get("name") or directory.name
    return {
        **{column: run.get(column) for column in ("seed", "status", "wall_s", "simulated_s", "reference")},
        "path": directory,
        "setting": tuple((run.get("setting") or {}).items()),
        "variant": run.get("variant") or name,
        "name": name,
        "notes": tuple(run.get("notes") or ()),
        "devices_recorded": str(run.get("devices_recorded", "all")),
    }


def _what_is_missing(run: dict[str, Any], directory: Path) -> str:
    """Say what a run without result is in, and how to bring it to its end."""
    status = run.get("status")
    sentence = f"its status is '{status}', not 'completed'"
    resume = f"`edgefl resume {shlex.quote(str(directory))}`"
    if status == "failed" and run.get("error"):
        error = " ".join(str(run["error"]).split())
        shown = error if len(error) <= MOST_OF_AN_ERROR else f"{error[:MOST_OF_AN_ERROR].rstrip()} …"
        return f"it failed ({shown}): once the cause is gone, continue it with {resume}"
    if status in ("failed", "interrupted"):
        return f"{sentence}: continue it with {resume}"
    if status == "running":
        signs = {"process": "pid", "on": "host", "last heard of": "heartbeat"}
        process = run.get("process") or {}
        known = " ".join(f"{word} {process[key]}" for word, key in signs.items() if key in process)
        about = f" ({known})" if known else ""
        return f"{sentence}{about}: wait for its end or, if it was killed, continue it with {resume}"
    return sentence


def _check_distinct(info: pd.DataFrame) -> None:
    twice = info[info.duplicated(["variant", "seed"], keep=False)]
    if len(twice):
        first, second = twice.iloc[0], twice.iloc[1]
        raise ValueError(
            f"two runs of variant '{first.variant}' and seed {first.seed}: {first.path} and {second.path}; "
            "give the folder of one study"
        )


def _read_all(info: pd.DataFrame, table: str) -> pd.DataFrame:
    frames = []
    for run in info.itertuples():
        frame = _read(Path(str(run.path)), table)
        frame.insert(0, "variant", run.variant)
        frame.insert(1, "seed", run.seed)
        frames.append(frame)
    # an empty table has no dtypes that another one should take over
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def _forms(directory: Path, table: str) -> list[Path]:
    """List the forms in which a run has a table: CSV, or a folder of Parquet files."""
    return [path for path in (directory / f"{table}.csv", directory / f"{table}.parquet") if path.exists()]


def _read(directory: Path, table: str) -> pd.DataFrame:
    path = next(iter(_forms(directory, table)), directory / f"{table}.csv")
    try:
        if path.suffix == ".parquet":
            frame = _parquet(path)
            columns = list(frame.columns)
            texts = [column for column in columns if column in TEXT_COLUMNS[table]]
        else:
            columns = list(pd.read_csv(path, nrows=0).columns)
            texts = [column for column in columns if column in TEXT_COLUMNS[table]]
            numbers = [column for column in columns if column in FLOAT_COLUMNS]
            frame = pd.read_csv(path, dtype=dict.fromkeys(texts, str) | dict.fromkeys(numbers, float))
    except ImportError as error:
        raise ValueError(f"{path} needs the package pyarrow: pip install 'edgefl-cosim[parquet]'") from error
    except pd.errors.EmptyDataError as error:
        raise ValueError(
            f"{path} is empty, without even a header: remove the run directory or run it again"
        ) from error
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path} ({error}): remove the run directory or run it again") from error
    missing = [column for column in REQUIRED_COLUMNS[table] if column not in columns]
    if missing:
        raise ValueError(f"{path} lacks the column {', '.join(missing)}: run it again with this release")
    if "cell" not in columns and table != "ledger":  # a device's joules belong to no cell
        frame["cell"] = 0
    frame[texts] = frame[texts].fillna("")
    # without a row pandas knows no type: sums and means of nothing are numbers all the same
    return frame if len(frame) else frame.astype({c: float for c in frame.columns if c not in texts})


def _parquet(path: Path) -> pd.DataFrame:
    """Read a folder of Parquet files, text as a CSV file's is read."""
    frame = pd.read_parquet(path)
    return frame.astype({name: str for name in frame.columns if frame[name].dtype == "category"})
