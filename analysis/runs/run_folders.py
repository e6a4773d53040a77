"""Find run directories below folders, describe them by their run.json, and give them distinct names."""

import difflib
import json
import math
import os
import platform
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from edgefl.analysis.page.formatting import natural
from edgefl.analysis.runs.reading import has_whole_session
from edgefl.analysis.runs.scenario_keys import differing, keys_of

SCHEMA_VERSION = 1
SPENT = "epsilon"  # key of run.json, the largest of any device
INFO_COLUMNS = [
    *("path", "setting", "variant", "seed", "status", "wall_s", "simulated_s", "reference", "name"),
    *("federation", "notes", "devices_recorded", "payload_bits", "place", "score", "stopped", "learner"),
    *("own_seed", "rows", SPENT),
]
UNKNOWN = -1  # index of a variant that is not listed in run.json
SEVERAL = "comparison"  # folder for reports on several folders, created beside them
MOST_OF_AN_ERROR = 160  # maximum length of an error as shown; run.json has the whole text

# types of the values in run.json, if present
KINDS = {
    **dict.fromkeys(("study", "variant", "name", "reference", "federation", "stopped"), str),
    **dict.fromkeys(
        ("setting", "settings", "model", "process", "federations", "learner", "identity", "versions", "rows"),
        dict,
    ),
    **dict.fromkeys(("notes", "variants"), list),
    **dict.fromkeys(("seed", "wall_s", "simulated_s", SPENT), int | float),
}
Paths = str | Path | Sequence[str | Path | Sequence[str | Path]]


@dataclass
class Remarks:
    """Notes for readers of the runs found, as in `Runs`."""

    home: Path | None
    left_out: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def find_runs(path: Paths, names: Sequence[str], partial: bool | None) -> tuple[pd.DataFrame, Path, Remarks]:
    """Find the runs below one folder or several.

    Args:
        partial: whether to include incomplete runs; None for a command that has no option to do so.

    Returns:
        The table `Runs.info`, the folder that contains all runs, and facts that a reader has to know.

    Raises:
        ValueError: a folder does not exist or has no readable run, or a run is given twice.
    """
    given = [path] if isinstance(path, str | Path) else path
    lists = ([one] if isinstance(one, str | Path) else one for one in given)
    roots = [Path(one) for several in lists for one in several]
    # a pattern such as runs/* also names the folder of earlier reports
    roots = [root for root in roots if not _of_reports(root)] or roots
    if not roots:
        raise ValueError("no folder: give the folder of a run or of a study")
    if names and len(names) != len(roots):
        raise ValueError(f"{len(names)} names for {len(roots)} folders: give one name per folder")
    remarks = Remarks(home=_beside(roots) if len(roots) > 1 else roots[0])
    rows, left_out, within = [], dict[str, list[Path]](), dict[Path, Path]()
    for number, root in enumerate(roots):
        for row in _rows(root, partial, left_out):
            if (other := within.setdefault(row["path"].resolve(), root)) != root:
                raise ValueError(
                    f"the run {row['path']} is given twice, by {other} and by {root}: give different folders"
                )
            rows.append({"folder": number, **row, "place": (0, number, *row["place"])})
    for reason, paths in left_out.items():
        several = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        remarks.left_out.append(f"left out {paths[0]}{several}: {reason}")
    if not rows:
        remedy = ", or read incomplete runs with --partial" if partial is False else ""
        raise ValueError(
            f"no {'run with a finished session' if partial else 'completed run'} in or below"
            f" {', '.join(map(str, roots))}: {'; '.join(remarks.left_out)}; let one run finish{remedy}"
        )
    for sentence in remarks.left_out:
        warnings.warn(sentence, stacklevel=4)
    info = pd.DataFrame(rows, columns=["folder", "study", *INFO_COLUMNS])
    if len(roots) > 1:
        info = _told_apart(info, roots, names, remarks)
        return info[INFO_COLUMNS], Path(os.path.commonpath([root.resolve() for root in roots])), remarks
    if names:
        info["variant"] = _called(info, list(names))
    elif info["study"].isna().all() and info.duplicated(["setting", "variant", "seed"]).any():
        info = _told_apart(info.assign(folder=range(len(info))), list(info["path"]), names, remarks)
    return info[INFO_COLUMNS], roots[0], remarks


def _of_reports(root: Path) -> bool:
    """Return whether a folder is one that edgefl wrote for reports on several folders, without runs of its own."""
    return root.name == SEVERAL and os.path.isdir(root) and not run_directories(root)


def _beside(roots: Sequence[Path]) -> Path | None:
    """Return the folder for reports on several folders of runs, which is beside or above these folders."""
    parent = Path(os.path.commonpath([os.path.abspath(root.parent) for root in roots]))
    if parent == parent.parent:
        return None
    return (parent if any(root.is_absolute() for root in roots) else Path(os.path.relpath(parent))) / SEVERAL


def _near(missing: Path) -> str:
    """Return a hint that names the folder most similar to a missing one; '' if no folder beside it is similar."""
    known = [each.name for each in sorted(missing.parent.glob("*/"))] if os.path.isdir(missing.parent) else []
    near = [name for name in known if name.startswith(f"{missing.name}-")]  # such as runs/quickstart-seed100
    near = near or difflib.get_close_matches(missing.name, known, n=1, cutoff=0.75)
    return f"; did you mean {missing.parent / near[0]}?" if near else ""


def directories_in(root: Path) -> list[Path]:
    """Return the run directories in or below a folder, as `run_directories` does.

    Raises:
        ValueError: the folder does not exist, or has no run directory.
    """
    if not os.path.isdir(root):  # False for a name that is too long, where Path.is_dir raises
        wrong = f"{root} is a file" if os.path.exists(root) else f"no folder {root}"
        raise ValueError(f"{wrong}: give the folder of a run or of a study{_near(root)}")
    directories = run_directories(root)
    if not directories:
        raise ValueError(
            f"no run directory (a folder with run.json) in or below {root}: run a scenario first"
        )
    return directories


def _rows(root: Path, partial: bool | None, left_out: dict[str, list[Path]]) -> list[dict[str, Any]]:
    rows = []
    for directory in directories_in(root):
        try:
            rows.append(_info(directory, partial, part=directory != root))
        except _NotUsableError as reason:
            left_out.setdefault(str(reason), []).append(directory)
    return _in_order(rows)


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort the runs of each study by their settings, in the order of the study's file; others keep their order."""
    listed = dict[Any, dict[str, Any]]()  # of each study, as known to the run with most settings
    for row in rows:
        known = row.pop("settings")
        if sum(map(len, known.values())) > sum(map(len, listed.setdefault(row["study"], {}).values())):
            listed[row["study"]] = known

    def place(row: dict[str, Any]) -> list[int]:
        labels = [(listed[row["study"]].get(axis, []), label) for axis, label in row["setting"]]
        return [known.index(label) if label in known else len(known) for known, label in labels]

    studies = list(listed)
    return sorted(rows, key=lambda row: (studies.index(row["study"]), place(row)))


def _told_apart(
    info: pd.DataFrame, roots: Sequence[Path], names: Sequence[str], remarks: Remarks
) -> pd.DataFrame:
    """Name the variants of several folders, adding the folder where names clash; give single runs a common seed."""
    if names or info.duplicated(["setting", "variant", "seed"]).any() or _of_different_settings(info):
        info = info.assign(variant=_called(info, list(names) or _apart(roots)), reference=None)
    seeds = [set(group["seed"]) for _, group in info.groupby("variant")]
    if not set.intersection(*seeds) and all(len(own) == 1 for own in seeds):
        listed = "; ".join(f"{run.variant} {run.seed}" for run in info.itertuples())
        remarks.sentences.append(
            f"the runs have different seeds ({listed}): their worlds differ, so this is not a paired comparison"
        )
        info = info.assign(seed=min(map(min, seeds)))
    return info


def _of_different_settings(info: pd.DataFrame) -> bool:
    """Return whether runs outside studies share a name although their scenarios differ in more than the seed."""
    loose = info[info["study"].isna()]
    for _, runs in loose.groupby("variant"):
        if len(runs) > 1 and differing([keys_of(path) for path in runs["path"]]):
            return True
    return False


def _called(info: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Name each run by its folder, and also by its variant if the folder holds several variants."""
    variants = info.groupby("folder")["variant"].nunique()
    return [
        names[run.folder] if variants[run.folder] == 1 else f"{names[run.folder]} {run.variant}"
        for run in info.itertuples()
    ]


def _apart(roots: Sequence[Path]) -> list[str]:
    """Name each folder by the end of its path, just long enough that all names differ."""
    parts = [root.resolve().parts for root in roots]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(own[-length:]) for own in parts]
        if len(set(names)) == len(names):
            return names
    raise ValueError(f"the folder {roots[0]} is given twice: give different folders")


class _NotUsableError(Exception):
    """The reason why a run directory is left out."""


def run_directories(root: Path) -> list[Path]:
    """Return the run directories in or below a folder, in natural order of their names.

    A run with several federations is represented by its federations' directories.
    """
    directories: list[Path] = []
    for folder, subfolders, files in os.walk(root):
        subfolders.sort(key=natural)
        if "run.json" in files:
            parts = [name for name in subfolders if Path(folder, name, "run.json").exists()]
            directories += [Path(folder, name) for name in parts] or [Path(folder)]
            subfolders.clear()  # a run directory contains no other runs
    return directories


def _info(directory: Path, partial: bool | None, *, part: bool) -> dict[str, Any]:
    try:
        run = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _NotUsableError(f"run.json cannot be read ({error})") from error
    if not isinstance(run, dict):
        raise _NotUsableError("run.json does not describe a run")
    if run.get("schema_version") != SCHEMA_VERSION:
        raise _NotUsableError(
            f"its schema version is {run.get('schema_version')}, but this release reads {SCHEMA_VERSION}: "
            "run it again"
        )
    _check_kinds(run)
    score = str(run.get("score") or "accuracy")
    if run.get("status") != "completed":
        if not partial or not (directory / "rounds.csv").exists():
            raise _NotUsableError(_what_is_missing(run, directory))
        if not has_whole_session(directory, score):
            raise _NotUsableError(f"no session has ended; {_what_is_missing(run, directory)}")
    needed = ("seed", "simulated_s") if run.get("status") == "completed" else ("seed",)
    for key in needed:
        if run.get(key) is None:
            raise _NotUsableError(f"run.json is damaged: it has no {key}")
    name, variant, listed = run.get("name") or directory.name, run.get("variant"), run.get("variants") or []
    settings = (run.get("settings") or {}).items()
    # a federation is a setting only if it was found inside its run, not if it was given by its path
    setting = {"federation": run["federation"]} if part and run.get("federation") else {}
    return {
        "study": run.get("study"),
        **{column: run.get(column) for column in ("seed", "status", "wall_s", "simulated_s", "reference")},
        "path": directory,
        "settings": {axis: known for axis, known in settings if isinstance(known, list)},
        "setting": tuple({**(run.get("setting") or {}), **setting}.items()),
        "variant": variant or name,
        "name": name,
        "federation": run.get("federation") or "",
        "notes": tuple(run.get("notes") or ()),
        "devices_recorded": str(run.get("devices_recorded", "all")),
        "payload_bits": (run.get("model") or {}).get("payload_bits", math.nan),
        # rank of the variant in the study's file
        "place": (listed.index(variant) if variant in listed else UNKNOWN, natural(variant or name)),
        "score": score,
        "stopped": run.get("stopped") or "",
        "learner": str((run.get("learner") or {}).get("name") or ""),
        "own_seed": run["seed"],
        "rows": run.get("rows") or {},
        SPENT: run.get(SPENT, math.nan),
    }


def _check_kinds(run: dict[str, Any]) -> None:
    """Refuse a run.json in which a value, or a part of a list or mapping, has another type than runs write."""
    model = run.get("model")
    values: list[tuple[str, Any, Any, str]] = [(key, run.get(key), kind, "is") for key, kind in KINDS.items()]
    for key, kind in {"setting": str, "notes": str, "variants": str, "rows": int}.items():
        within = run.get(key) or []
        parts = within.values() if isinstance(within, dict) else within if isinstance(within, list) else []
        values += [(key, part, kind, "has") for part in parts]
    values += [("model", model.get("payload_bits"), int | float, "has")] if isinstance(model, dict) else []
    for key, value, kind, verb in values:
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise _NotUsableError(f"run.json is damaged: its {key} {verb} {str(value)[:80]!r}")


def _what_is_missing(run: dict[str, Any], directory: Path) -> str:
    """Return why a run has no result, and how to finish the run."""
    status = run.get("status")
    sentence = f"its status is '{status}', not 'completed'"
    own_code = (run.get("identity") or {}).get("code")
    resume = f"`edgefl resume {shlex.quote(str(directory))}{' --allow-code' if own_code else ''}`"
    if learner := (run.get("learner") or {}).get("name"):  # an object in Python, which no command can make
        resume = f"`edgefl.resume({str(directory)!r}, learner=...)` in Python, with {learner}"
    if status == "failed" and run.get("error"):
        error = " ".join(str(run["error"]).split())
        shown = error if len(error) <= MOST_OF_AN_ERROR else f"{error[:MOST_OF_AN_ERROR].rstrip()} …"
        if run.get("study"):
            return f"it failed ({shown}): once the cause is gone, repeat it with `edgefl study ... --retry`"
        return (
            f"it failed ({shown}): run a changed scenario in a new directory, or, if the cause was outside it,"
            f" continue the run with {resume}"
        )
    if status in ("failed", "interrupted"):
        return f"{sentence}: continue it with {resume}"
    if status == "running":
        signs = {"process": "pid", "on": "host", "last seen": "heartbeat"}
        process = run.get("process") or {}
        known = " ".join(f"{word} {process[key]}" for word, key in signs.items() if key in process)
        about = f" ({known})" if known else ""
        if _is_gone(process):
            return f"{sentence}{about}, but its process is gone: continue it with {resume}"
        return f"{sentence}{about}: wait until it finishes or, if it was killed, continue it with {resume}"
    return sentence


def _is_gone(process: dict[str, Any]) -> bool:
    """Return whether a run's process ran on this machine and has ended; False if this is not certain."""
    if os.name != "posix" or process.get("host") != platform.node():
        return False
    try:
        os.kill(process["pid"], 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, TypeError, OverflowError):  # another user's process, or a damaged entry
        pass
    return False
