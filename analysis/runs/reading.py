"""Read the tables of many runs into one frame each; CSV files with equal headers are parsed together."""

import io
import math
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

# read numbers exactly to the last digit; from 3.1 on pandas does so by default, and warns if asked to
BY_ITSELF = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
EXACT = {} if BY_ITSELF else {"float_precision": "round_trip"}

# columns that reports need; other columns are kept unchanged
_CAUSES = ("energy_j", "energy_rx_j", "energy_tx_j", "energy_compute_j", "energy_tail_j")
_BITS = ("downlink_bits", "uplink_bits")
REQUIRED_COLUMNS = {
    "rounds": [
        *("session", "round", "phase", "start_s", "end_s", "latency_s", "latency_mean_s"),
        *("participants", "completed", *_BITS, *_CAUSES, "accuracy"),
    ],
    "devices": [
        *("session", "round", "phase", "device", "energy_j", "outcome", *_BITS),
    ],
    "events": ["time_s", "event", "device", "session", "stay_s", "detail"],
    "sessions": ["session", "start_s", "reason", "devices", "labels", "warm_start", "accuracy_start"],
    "ledger": [
        *("device", "receive_j", "transmit_j", "compute_j", "tail_j"),
        *("energy_j", "idle_j", "total_j", "wasted_j"),
    ],
    "positions": ["time_s", "device", "x_m", "y_m", "cell", "gain_db"],
    "evaluation": ["session", "round", "cell", "end_s", "device", "samples", "accuracy", "loss"],
}
# columns of text, including lists: "3" is a list with one entry, not a number
TEXT_COLUMNS = {
    "rounds": {"phase"},
    "devices": {"phase", "outcome", "class"},
    "events": {"event", "detail"},
    "sessions": {"reason", "devices", "labels", "warm_start", "weights"},
    "ledger": {"class"},
    "positions": set(),
    "evaluation": {"phase"},
}
# columns that are empty in runs without training, but still hold numbers
FLOAT_COLUMNS = {"accuracy", "loss", "accuracy_start", "loss_start", "gain_db", "sinr_db"}
FLOAT_COLUMNS |= {"accuracy_personal", "loss_personal"}


# endings of columns with finite numbers, beside the required columns
FINITE = (
    "_s",
    "_j",
    "_bits",
    "_m",
    "cell",
    "version",
    "iterations",
    "out_of_coverage",
    "connecting",
    "working",
)
# endings of required columns whose numbers may be infinite
UNBOUNDED = ("loss", "_db")
# columns that identify a row
NEVER_EMPTY = {
    "rounds": ["session", "round", "start_s", "end_s", "energy_j"],
    "devices": ["session", "round", "device"],
    "events": ["time_s"],
    "sessions": ["session", "start_s"],
    "ledger": ["device", "total_j"],
    "positions": ["time_s", "device"],
    "evaluation": ["session", "round", "device"],
}

ACCURACY = "accuracy"
RUN = ["variant", "seed"]  # columns that identify a run
SESSION = [*RUN, "cell", "session"]  # columns that identify a session


def read_all(info: pd.DataFrame, table: str) -> pd.DataFrame:
    """Read a table of all runs, with the columns variant and seed in front, in the order of `info`.

    Raises:
        ValueError: a file cannot be read; the error names the file and the remedy.
    """
    # all runs that are read together have the same score
    score = info["score"].iloc[0] if "score" in info and len(info) else ACCURACY
    wrote = info["rows"] if "rows" in info else [{}] * len(info)
    files = [
        _File(Path(str(path)), _text(Path(str(path), f"{table}.csv")), (variant, seed), rows.get(table))
        for path, variant, seed, rows in zip(*(info[name] for name in ("path", *RUN)), wrote, strict=True)
    ]
    frames: list[pd.DataFrame] = []
    for _, alike in groupby(files, lambda file: _header(file.text)):
        frames += _read_alike(list(alike), table, score)
    # leave out empty tables, which would change the columns' dtypes
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def whole_sessions(info: pd.DataFrame, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Of incomplete runs, keep only the sessions that ended and have rows for all rounds.

    Rows of rounds are written in order, some seconds after a round ends, so only the last rows can be missing.
    """
    keys = SESSION
    partial = info.loc[info["status"] != "completed", ["variant", "seed"]].itertuples(index=False, name=None)
    some = set(partial)
    until_s = tables["rounds"].groupby(keys[:2])["end_s"].max().to_dict()
    ends = tables["events"].loc[tables["events"]["event"] == "session_end", [*keys, "time_s"]]
    ended = {
        row[:4]
        for row in ends.itertuples(index=False, name=None)
        if row[4] <= until_s.get(row[:2], -math.inf)
    }

    def kept(frame: pd.DataFrame) -> pd.DataFrame:
        rows = frame[keys].itertuples(index=False, name=None)
        mask = [row[:2] not in some or row in ended for row in rows]
        return frame.loc[mask].reset_index(drop=True)  # `frame[[]]` has no columns

    return tables | {name: kept(tables[name]) for name in ("rounds", "sessions")}


def has_whole_session(directory: Path, score: str) -> bool:
    """Return whether an incomplete run has a session that `whole_sessions` keeps."""
    run = pd.DataFrame({"path": [directory], "variant": "", "seed": 0, "status": "", "score": score})
    tables = {name: read_all(run, name) for name in ("rounds", "events", "sessions")}
    return bool(len(whole_sessions(run, tables)["rounds"]))


def check_sessions(info: pd.DataFrame, tables: dict[str, pd.DataFrame]) -> None:
    """Raise a ValueError if a training round belongs to a session without a row in sessions.csv."""
    trained = tables["rounds"][tables["rounds"]["phase"] != "probe"]
    listed, of_rounds = (pd.MultiIndex.from_frame(of[SESSION]) for of in (tables["sessions"], trained))
    lost = trained[~of_rounds.isin(listed)]
    for row in lost.head(1).itertuples():
        run = info[(info["variant"] == row.variant) & (info["seed"] == row.seed)].iloc[0]
        raise ValueError(
            f"{Path(str(run['path'])) / 'sessions.csv'} has no row for session {row.session}, but rounds.csv has its"
            " rounds; repeat the run"
        )


def until_end(info: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Drop the rows of a table that are later than the end of the finished sessions of incomplete runs."""
    partial = info[info["status"] != "completed"]
    if not len(partial):
        return table
    ends_s = partial.set_index(["variant", "seed"])["simulated_s"].astype(float)
    runs = pd.MultiIndex.from_frame(table[["variant", "seed"]])
    later = table["time_s"].to_numpy(float) > ends_s.reindex(runs).to_numpy()
    return table[~later].reset_index(drop=True)


def forms(directory: Path, table: str) -> list[Path]:
    """List the formats in which a run holds a table: CSV, or a folder of Parquet files."""
    return [path for path in (directory / f"{table}.csv", directory / f"{table}.parquet") if path.exists()]


def _text(path: Path) -> bytes:
    """Read a file as text; empty if it does not exist."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _header(text: bytes) -> bytes:
    return text[: text.find(b"\n") + 1]


class _File(NamedTuple):
    """A run's table before it is parsed.

    directory: of the run. text: the CSV file. key: variant and seed. rows: how many the run wrote; None if unknown.
    """

    directory: Path
    text: bytes
    key: tuple[object, object]
    rows: int | None


def _read_alike(files: list[_File], table: str, score: str) -> list[pd.DataFrame]:
    """Read the tables of runs with equal headers, together if they are well-formed, otherwise one by one."""
    if len(files) > 1:
        header = _header(files[0].text)
        bodies = [file.text[len(header) :] for file in files]
        # a truncated last line would merge with the next file's first
        if all(body == b"" or body.endswith(b"\n") for body in bodies):
            counts = [body.count(b"\n") for body in bodies]
            try:
                frame = _parsed(header + b"".join(bodies), table, score)
            except ValueError:
                frame = pd.DataFrame()  # the faulty file is found below
            whole = all(file.rows in (None, count) for file, count in zip(files, counts, strict=True))
            if whole and len(frame) == sum(counts) > 0 and not _fault(frame, table):
                owners = [file.key for file, count in zip(files, counts, strict=True) for _ in range(count)]
                return [_completed(frame, table, owners)]
    frames = [_read(file.directory, table, score, file.rows) for file in files]
    both = zip(frames, files, strict=True)
    return [_completed(frame, table, [file.key] * len(frame)) for frame, file in both]


def _parsed(text: bytes, table: str, score: str) -> pd.DataFrame:
    columns = _header(text).decode("utf-8").strip().split(",")
    texts = [column for column in columns if column in TEXT_COLUMNS[table]]
    numbers = [column for column in columns if _as_accuracy(column, score) in FLOAT_COLUMNS]
    frame = pd.read_csv(
        io.BytesIO(text), dtype=dict.fromkeys(texts, str) | dict.fromkeys(numbers, float), **EXACT
    )
    return _with_accuracy(frame, score)


def _with_accuracy(frame: pd.DataFrame, score: str) -> pd.DataFrame:
    """Copy the columns of a score such as R2 to columns named after accuracy, which all later code uses."""
    named = {column: _as_accuracy(column, score) for column in frame.columns}
    return frame.assign(**{name: frame[column] for column, name in named.items() if name != column})


def _as_accuracy(column: str, score: str) -> str:
    """Return the accuracy column that stands for a score's column such as R2; return other names unchanged."""
    of_score = score != ACCURACY and (column == score or column.startswith(f"{score}_"))
    return ACCURACY + column.removeprefix(score) if of_score else column


def _fault(frame: pd.DataFrame, table: str) -> str:
    """Describe the fault of a table, such as a missing column or number; return '' for a sound table."""
    required, texts = REQUIRED_COLUMNS[table], TEXT_COLUMNS[table]
    if missing := [column for column in required if column not in frame]:
        return f"lacks the column {', '.join(missing)}: repeat the run with this release"
    numbers = [column for column in frame if column not in texts]
    if words := [column for column in numbers if len(frame) and not is_numeric_dtype(frame[column])]:
        return f"is damaged: its column {words[0]} holds words; repeat the run"
    for column in numbers:
        if column not in required and not column.endswith(FINITE):
            continue
        cells = frame[column].to_numpy(float)
        sound = np.isfinite(cells)
        if column not in NEVER_EMPTY[table]:
            sound |= np.isnan(cells) | column.endswith(UNBOUNDED)
        if not sound.all():
            return f"is damaged: its column {column} has a cell that is not a finite number; repeat the run"
    return ""


def _completed(frame: pd.DataFrame, table: str, keys: list[tuple[object, object]]) -> pd.DataFrame:
    """Fill in optional columns of a table, and add variant and seed."""
    if "cell" not in frame and table != "ledger":  # a device's joules belong to no cell
        frame["cell"] = 0
    texts = [column for column in frame if column in TEXT_COLUMNS[table]]
    for column in texts:
        frame[column] = frame[column].fillna("")
    # without a row pandas has no type, but empty sums and means are numbers
    if not len(frame):
        frame = frame.astype({column: float for column in frame if column not in texts})
    frame.insert(0, "variant", [variant for variant, _ in keys])
    frame.insert(1, "seed", [seed for _, seed in keys])
    return frame


def _read(directory: Path, table: str, score: str, rows: int | None = None) -> pd.DataFrame:
    path = next(iter(forms(directory, table)), directory / f"{table}.csv")
    try:
        whole = path.suffix == ".parquet"
        frame = _with_accuracy(_parquet(path), score) if whole else _parsed(_whole_lines(path), table, score)
    except ImportError as error:
        raise ValueError(f"{path} needs the package pyarrow: pip install 'edgefl-cosim[parquet]'") from error
    except pd.errors.EmptyDataError as error:
        raise ValueError(
            f"{path} is empty, without even a header: remove the run directory or repeat the run"
        ) from error
    except (OSError, ValueError) as error:
        raise ValueError(
            f"cannot read {path} ({error}): remove the run directory or repeat the run"
        ) from error
    if fault := _fault(frame, table):
        raise ValueError(f"{path} {fault}")
    if rows not in (None, len(frame)):
        raise ValueError(
            f"{path} has {len(frame)} rows, but its run wrote {rows}: copy the file again or repeat the run"
        )
    return frame


def _whole_lines(path: Path) -> bytes:
    """Read a file up to its last complete line, since a killed process may have left half a line."""
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1]


def _parquet(path: Path) -> pd.DataFrame:
    """Read a table from a folder of Parquet files; categories become text, as in a CSV file."""
    frame = pd.read_parquet(path)
    return frame.astype({name: str for name in frame.columns if frame[name].dtype == "category"})
