"""Run directories as tidy tables: one row per run, round, participation, event, session or device."""

import json
import math
import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.formatting import natural
from analysis.reading import forms, read_all, whole_sessions
from analysis.scenario_keys import differing, keys_of

SCHEMA_VERSION = 1
INFO_COLUMNS = [
    *("path", "setting", "variant", "seed", "status", "wall_s", "simulated_s", "reference", "name", "notes"),
    *("devices_recorded", "payload_bits", "place"),
]
UNKNOWN = -1  # place of a variant in its study's file
SEVERAL = "comparison"  # the folder beside several ones, where reports on all of their runs go
MOST_OF_AN_ERROR = 160  # characters; run.json has all of it

# what run.json holds, where it holds it
KINDS = {
    **dict.fromkeys(("study", "variant", "name", "reference"), str),
    **dict.fromkeys(("setting", "model", "process"), dict),
    **dict.fromkeys(("notes", "variants"), list),
    **dict.fromkeys(("seed", "wall_s", "simulated_s"), int | float),
}
Paths = str | Path | Sequence[str | Path]
Setting = tuple[tuple[str, str], ...]  # (axis, label) of a study's grid; () without one


@dataclass(frozen=True)
class Runs:
    """The completed runs below a folder. Every table but `info` leads with the columns variant, seed.

    Attributes:
        path: the folder that was searched, or that holds all those that were.
        home: where reports go if nobody says where: the folder that was searched; of several `comparison` beside
            them; None: they have no folder in common.
        info: one row per run: path, setting, variant, seed, status, wall_s, simulated_s, reference, name,
            notes (what the run had to say of itself), devices_recorded (rows of devices.csv: of all rounds, of
            none, or of every n-th), payload_bits (of one model transfer; NaN: not known), place (of its variant, to
            sort by: as in the study's file, of several folders in their order).
        rounds: rounds.csv of all runs. Accuracy (0..1) is NaN on probe rounds and in runs without training.
        events: events.csv of all runs.
        sessions: sessions.csv of all runs.
        left_out: one sentence for each run directory that was not read, and why.
        remarks: what a reader has to know of those that were, one sentence each.
    """

    path: Path
    home: Path | None
    info: pd.DataFrame
    rounds: pd.DataFrame = field(repr=False)
    events: pd.DataFrame = field(repr=False)
    sessions: pd.DataFrame = field(repr=False)
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def folder(self, out: str | Path | None = None) -> Path:
        """Return where a report on these runs goes: `out`, or their home.

        Raises:
            ValueError: they have no home, or runs lie in it: say where.
        """
        if out is not None:
            return Path(out)
        if self.home is None:
            raise ValueError("the runs have no folder in common to write to: choose one with --out")
        if self.home.name == SEVERAL and self.home != self.path and _run_directories(self.home):
            raise ValueError(f"{self.home} holds runs: choose another folder with --out")
        return self.home

    @cached_property
    def devices(self) -> pd.DataFrame:
        """Read the table devices of all runs, one row per device and round. Large: only when first asked for.

        Not all rounds have rows where a run was told not to record them: see `notes`.
        """
        return read_all(self.info, "devices")

    @cached_property
    def positions(self) -> pd.DataFrame:
        """Read the table positions of the runs that have one: where each device was at an interval.

        Raises:
            ValueError: none has.
        """
        some = [any(forms(Path(path), "positions")) for path in self.info["path"]]
        if not any(some):
            raise ValueError(f"the runs in {self.path} have no positions: run them with record.positions_s")
        return read_all(self.info[some], "positions")

    @classmethod
    def of(cls, runs: "Paths | Runs") -> "Runs":
        """Read runs from one folder or several, unless they have been read."""
        return runs if isinstance(runs, Runs) else load_runs(runs)

    def said(self) -> list[str]:
        """List all that a reader has to know of the runs: those left out, remarks, and what they did not record."""
        return [*self.left_out, *self.remarks, *self.notes]

    @property
    def notes(self) -> list[str]:
        """What the runs did not record, one sentence each."""
        notes = []
        for recorded, runs in self.info.groupby("devices_recorded", sort=False):
            if recorded != "all":
                rows = "of no round" if recorded == "none" else f"of one round in {recorded}"
                notes.append(
                    f"{len(runs)} of {len(self.info)} runs have rows of devices {rows} (record.devices): what is"
                    " made of the rows of all rounds is left out for them, and means are over those that are there"
                )
        return notes

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """Read ledger.csv of all runs, one row per device: its joules by what it was doing, and those wasted."""
        return read_all(self.info, "ledger")


def load_runs(
    path: Paths, *, names: Sequence[str] = (), partial: bool = False, every_setting: bool = False
) -> Runs:
    """Read every completed run directory below a folder, or the folder itself if it is one; or below several.

    A run outside a study takes its own name as its variant.

    Args:
        path: one folder or several. Where runs of several would have one variant and seed, variants are called by
            their folder too.
        names: of the folders, in place of their own.
        partial: take runs too that are not completed, with the sessions that they have completed. Otherwise they are
            left out, with a warning that names them.
        every_setting: settings of a grid become variants, called by both.

    Raises:
        ValueError: no such folder, no completed run below it, runs of several settings of a grid, two runs of
            one variant and seed, or a run directory whose tables are missing or lack a column.
    """
    info, root, said = _found(path, names, partial)
    if every_setting:
        words = [" ".join(label for _, label in setting) for setting in info["setting"]]
        both = [" ".join(filter(None, pair)) for pair in zip(words, info["variant"], strict=True)]
        order = list(dict.fromkeys(info["setting"]))
        places = [
            (order.index(setting), *place[1:])
            for setting, place in zip(info["setting"], info["place"], strict=True)
        ]
        return _read(info.assign(variant=both, place=places), root, said)
    settings = list(dict.fromkeys(info["setting"]))
    if len(settings) > 1:
        first = _folder(info[[setting == settings[0] for setting in info["setting"]]])
        raise ValueError(
            f"{root} holds {len(settings)} settings of a grid: give the folder of one, such as {first}, or "
            "compare them all with `edgefl settings` or `edgefl sweep`"
        )
    return _read(info, root, said)


def load_settings(path: Paths, *, partial: bool = False) -> dict[Setting, Runs]:
    """Read the runs of each setting of a study's grid as `load_runs` does, in order of their folders."""
    info, root, said = _found(path, (), partial)
    by_setting = {}
    for setting, group in info.groupby("setting", sort=False):
        folder = root if len(group) == len(info) else _folder(group)
        by_setting[setting] = _read(group, folder, said)
    return by_setting


def together(by_setting: Mapping[Setting, Runs]) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of `info` of all settings, and what a reader has to know of their runs."""
    info = pd.concat([runs.info for runs in by_setting.values()], ignore_index=True)
    sentences = (note for runs in by_setting.values() for note in (*runs.left_out, *runs.remarks))
    return info, list(dict.fromkeys(sentences))


def _folder(info: pd.DataFrame) -> Path:
    return Path(os.path.commonpath(list(info["path"])))


def _read(info: pd.DataFrame, path: Path, said: "_Said") -> Runs:
    runs = info.sort_values(["place", "seed"], ignore_index=True)
    _check_distinct(runs)
    tables = {name: read_all(runs, name) for name in ("rounds", "events", "sessions")}
    remarks = list(said.remarks)
    unfinished = int((runs["status"] != "completed").sum())
    if unfinished:
        tables = whole_sessions(runs, tables)
        ends_s = tables["rounds"].groupby(["variant", "seed"])["end_s"].max()
        known = runs["simulated_s"].astype(float)
        of_run = [float(ends_s.get((run.variant, run.seed), 0.0)) for run in runs.itertuples()]
        runs["simulated_s"] = known.fillna(pd.Series(of_run, runs.index))
        remarks.append(
            f"{unfinished} of {len(runs)} runs are not completed: only their sessions that have ended count,"
            f" and their"
            " totals are of these"
        )
    left_out = tuple(said.left_out)
    return Runs(path=path, home=said.home, info=runs, left_out=left_out, remarks=tuple(remarks), **tables)


@dataclass
class _Said:
    """What is told about runs, as in `Runs`."""

    home: Path | None
    left_out: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def _found(path: Paths, names: Sequence[str], partial: bool) -> tuple[pd.DataFrame, Path, _Said]:
    """Find the runs below one folder or several; returns also the folder that holds them all."""
    roots = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    if names and len(names) != len(roots):
        raise ValueError(f"{len(names)} names for {len(roots)} folders: give one for each")
    said = _Said(home=_beside(roots) if len(roots) > 1 else roots[0])
    rows = []
    for number, root in enumerate(roots):
        for row in _rows(root, partial, said.left_out):
            rows.append({"folder": number, **row, "place": (0, number, *row["place"])})
    if not rows:
        raise ValueError(
            f"no completed run in or below {', '.join(map(str, roots))}: {'; '.join(said.left_out)}; let one"
            f" run to its end" + ("" if partial else ", or read what there is with --partial")
        )
    for sentence in said.left_out:
        warnings.warn(sentence, stacklevel=4)
    info = pd.DataFrame(rows, columns=["folder", "study", *INFO_COLUMNS])
    if len(roots) > 1:
        info = _told_apart(info, roots, names, said)
        return info[INFO_COLUMNS], Path(os.path.commonpath([root.resolve() for root in roots])), said
    if names:
        info["variant"] = _called(info, list(names))
    return info[INFO_COLUMNS], roots[0], said


def _beside(roots: Sequence[Path]) -> Path | None:
    """Return the folder for reports on several folders: beside them, or above, never in one of them."""
    parent = Path(os.path.commonpath([os.path.abspath(root.parent) for root in roots]))
    if parent == parent.parent:
        return None
    return (parent if any(root.is_absolute() for root in roots) else Path(os.path.relpath(parent))) / SEVERAL


def _rows(root: Path, partial: bool, left_out: list[str]) -> list[dict[str, Any]]:
    if not root.is_dir():
        raise ValueError(f"no folder {root}: give the folder of a run or of a study")
    directories = _run_directories(root)
    if not directories:
        raise ValueError(
            f"no run directory (a folder with run.json) in or below {root}: run a scenario first"
        )
    rows = []
    for directory in directories:
        try:
            rows.append(_info(directory, partial))
        except _NotUsableError as reason:
            left_out.append(f"left out {directory}: {reason}")
    return rows


def _told_apart(info: pd.DataFrame, roots: Sequence[Path], names: Sequence[str], said: _Said) -> pd.DataFrame:
    """Name the variants of several folders, by their folder where it takes that; each run alone is one seed."""
    if names or info.duplicated(["setting", "variant", "seed"]).any() or _of_different_settings(info):
        info = info.assign(variant=_called(info, list(names) or _apart(roots)), reference=None)
    seeds = [set(group["seed"]) for _, group in info.groupby("variant")]
    if not set.intersection(*seeds) and all(len(own) == 1 for own in seeds):
        listed = "; ".join(f"{run.variant} {run.seed}" for run in info.itertuples())
        said.remarks.append(
            f"the runs have different seeds ({listed}): different worlds, not a paired comparison"
        )
        info = info.assign(seed=min(map(min, seeds)))
    return info


def _of_different_settings(info: pd.DataFrame) -> bool:
    """Tell whether runs outside of studies have one name, but are not seeds of one scenario."""
    loose = info[info["study"].isna()]
    for _, runs in loose.groupby("variant"):
        if len(runs) > 1 and differing([keys_of(path) for path in runs["path"]]):
            return True
    return False


def _called(info: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Name each run by its folder's name, and its variant where a folder has several."""
    variants = info.groupby("folder")["variant"].nunique()
    return [
        names[run.folder] if variants[run.folder] == 1 else f"{names[run.folder]} {run.variant}"
        for run in info.itertuples()
    ]


def _apart(roots: Sequence[Path]) -> list[str]:
    """Name folders by as few of their last parts as tell them apart."""
    parts = [root.resolve().parts for root in roots]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(own[-length:]) for own in parts]
        if len(set(names)) == len(names):
            return names
    raise ValueError(f"the folder {roots[0]} is given twice: give different ones")


class _NotUsableError(Exception):
    """Says why a run directory is left out."""


def _run_directories(root: Path) -> list[Path]:
    directories = []
    for folder, subfolders, files in os.walk(root):
        subfolders.sort(key=natural)
        if "run.json" in files:
            directories.append(Path(folder))
            subfolders.clear()  # a run directory holds checkpoints, not further runs
    return directories


def _info(directory: Path, partial: bool) -> dict[str, Any]:
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
    if run.get("status") != "completed" and not (partial and (directory / "rounds.csv").exists()):
        raise _NotUsableError(_what_is_missing(run, directory))
    for key, kind in KINDS.items():
        value = run.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise _NotUsableError(f"run.json is damaged: its {key} is {str(value)[:80]!r}")
    name = run.get("name") or directory.name
    return {
        "study": run.get("study"),
        **{column: run.get(column) for column in ("seed", "status", "wall_s", "simulated_s", "reference")},
        "path": directory,
        "setting": tuple((run.get("setting") or {}).items()),
        "variant": run.get("variant") or name,
        "name": name,
        "notes": tuple(run.get("notes") or ()),
        "devices_recorded": str(run.get("devices_recorded", "all")),
        "payload_bits": (run.get("model") or {}).get("payload_bits", math.nan),
        "place": (_index(run), natural(run.get("variant") or name)),
    }


def _index(run: dict[str, Any]) -> int:
    """Return the place of a run's variant in its study's file; UNKNOWN: the run does not say."""
    listed = run.get("variants") or []
    return listed.index(run["variant"]) if run.get("variant") in listed else UNKNOWN


def _what_is_missing(run: dict[str, Any], directory: Path) -> str:
    """Say why a run has no result, and how to bring it to its end."""
    status = run.get("status")
    sentence = f"its status is '{status}', not 'completed'"
    resume = f"`edgefl resume {shlex.quote(str(directory))}`"
    if status == "failed" and run.get("error"):
        error = " ".join(str(run["error"]).split())
        shown = error if len(error) <= MOST_OF_AN_ERROR else f"{error[:MOST_OF_AN_ERROR].rstrip()} …"
        again = (
            "do it again with `edgefl study ... --retry`"
            if run.get("study")
            else f"continue it with {resume}"
        )
        return f"it failed ({shown}): once the cause is gone, {again}"
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
