"""Load run directories as tidy tables with one row per run, round, participation, event, session or device."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from edgefl.analysis.page import score_words
from edgefl.analysis.runs.reading import SESSION, check_sessions, forms, read_all, until_end, whole_sessions
from edgefl.analysis.runs.run_folders import SEVERAL, Paths, Remarks, find_runs, run_directories
from edgefl.analysis.runs.under_way import asynchronous, with_work_under_way

Kind = TypeVar("Kind")
Setting = tuple[tuple[str, str], ...]  # (axis, label) of a study's grid; () without one


def named(setting: Iterable[tuple[str, object]], between: str = ", ") -> str:
    """Write a setting as text with axes and labels, such as `bandwidth 20 MHz, alpha 0.3`."""
    return between.join(f"{axis} {label}" for axis, label in setting)


@dataclass(frozen=True)
class Runs:
    """The completed runs below a folder. Every table except `info` begins with the columns variant, seed.

    Attributes:
        path: the searched folder, or the common parent of several folders.
        home: default folder of reports: the searched folder; `comparison` next to several folders; None if they have
            no common parent.
        info: one row per run: path, setting, variant, seed, status, wall_s, simulated_s, reference, name,
            federation (empty if it is the only one), notes (of the run), devices_recorded (whether devices.csv has
            rows of all rounds, of none, or of every n-th round), payload_bits (bits of one model transfer, NaN if
            unknown), place (the variant's rank for sorting: its place in the study's file or, with several folders,
            in their order), score (name of the score that judges models; if it is not accuracy, the score's columns
            also appear under the name accuracy), stopped (how `stop` ended the run, empty if it did not), learner
            (name of the run's own learner, empty without one), own_seed (the seed in run.json; if runs of different
            seeds are compared, `seed` is the lowest of them), rows (table -> number of rows that the run wrote,
            empty if it did not end), epsilon (the largest privacy loss of any device, NaN without one).
        rounds: rows of rounds.csv of all runs. Accuracy (0..1) is NaN in probe rounds and in runs without training.
        events: rows of events.csv of all runs.
        sessions: rows of sessions.csv of all runs.
        left_out: one sentence for each reason why run directories were not read; it names the first such directory.
        remarks: facts that a reader must know about the runs that were read, one sentence each.
    """

    path: Path
    home: Path | None
    info: pd.DataFrame
    rounds: pd.DataFrame = field(repr=False)
    events: pd.DataFrame = field(repr=False)
    sessions: pd.DataFrame = field(repr=False)
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def score(self) -> str:
        """The name of the score that judges the runs' models."""
        return str(self.info["score"].iloc[0])

    @property
    def trained(self) -> bool:
        """Whether any run has an accuracy."""
        return bool(self.rounds["accuracy"].notna().any())

    def folder(self, out: str | Path | None = None, apart: str = "") -> Path:
        """Return the folder of a report on these runs: `out`, or the runs' home, or the folder `apart` in that home.

        Raises:
            ValueError: the runs have no home, or their home itself holds runs.
        """
        if out is not None:
            return Path(out)
        if self.home is None:
            raise ValueError("the runs have no common folder to write to: choose one with --out")
        if self.home.name == SEVERAL and self.home != self.path and run_directories(self.home):
            raise ValueError(f"{self.home} holds runs: choose another folder with --out")
        return self.home / apart

    @cached_property
    def devices(self) -> pd.DataFrame:
        """Read the table devices of all runs, one row per device and round, on first use.

        A round has no rows if its run did not record them: see `notes`.
        """
        return self._finished(read_all(self.info, "devices"))

    @cached_property
    def positions(self) -> pd.DataFrame:
        """Read the table positions of the runs that have one: each device's position at regular intervals.

        Raises:
            ValueError: no run has this table.
        """
        return until_end(self.info, self._of_some("positions", "positions: run them with record.positions_s"))

    @cached_property
    def evaluation(self) -> pd.DataFrame:
        """Read the table evaluation of the runs that have one: each device's scores on its own test data.

        Raises:
            ValueError: no run has this table.
        """
        scores = self._of_some(
            "evaluation",
            "scores of devices: run them with learning.evaluation.tested_on: devices and"
            " learning.evaluation.scores_every: 1 (a larger interval saves space, but writes nothing in runs of"
            " fewer rounds)",
        )
        return self._finished(scores)

    def _finished(self, table: pd.DataFrame) -> pd.DataFrame:
        """Drop the rows of sessions that incomplete runs have not finished."""
        if (self.info["status"] == "completed").all():
            return table
        finished, own = (pd.MultiIndex.from_frame(of[SESSION]) for of in (self.sessions, table))
        return table[own.isin(finished)].reset_index(drop=True)

    def _of_some(self, table: str, lacking: str) -> pd.DataFrame:
        """Read a table of all runs that have it; if none has it, raise a ValueError that says what they lack."""
        some = [any(forms(Path(path), table)) for path in self.info["path"]]
        if not any(some):
            raise ValueError(f"the runs in {self.path} have no {lacking}")
        return read_all(self.info[some], table)

    def said(self) -> list[str]:
        """List notes for readers of the runs: runs left out, remarks, and data that the runs did not record."""
        return [*self.left_out, *self.remarks, *self.notes]

    @property
    def notes(self) -> list[str]:
        """Notes on data that the runs did not record, one sentence each."""
        notes = []
        for recorded, runs in self.info.groupby("devices_recorded", sort=False):
            if recorded != "all":
                rows = "of no round" if recorded == "none" else f"of one round in {recorded}"
                notes.append(
                    f"{len(runs)} of {len(self.info)} runs have device rows {rows} (record.devices): "
                    "numbers that need all rounds are left out, and means are over the recorded rows"
                    + "; joules to a target leave out work under way"
                    * any(asynchronous(runs, self.rounds))
                )
        return notes

    @cached_property
    def ledger(self) -> pd.DataFrame:
        """Read ledger.csv of all runs, one row per device: the joules of each activity, and the wasted joules."""
        return read_all(self.info, "ledger")


class Settings(dict[Setting, Runs]):
    """The runs of each setting of a study's grid, in order of their folders."""

    @property
    def first(self) -> Runs:
        """The runs of the first setting, which has the reports' folder and the score that all settings share."""
        return next(iter(self.values()))

    @property
    def trained(self) -> bool:
        """Whether any run has an accuracy."""
        return any(runs.trained for runs in self.values())

    @cached_property
    def info(self) -> pd.DataFrame:
        """The rows of each setting's `info`, in one table."""
        return pd.concat([runs.info for runs in self.values()], ignore_index=True)

    def said(self) -> list[str]:
        """List the notes on the runs of all settings, each once."""
        return list(dict.fromkeys(note for runs in self.values() for note in (*runs.left_out, *runs.remarks)))


def given_runs(
    runs: Sequence[Any], load: Callable[..., Kind], *, names: Sequence[str] = (), partial: bool | None = False
) -> Kind:
    """Return the runs that a report was given; if it was given folders, read them with `load` first."""
    read: Any = next((one for one in runs if isinstance(one, Runs | Settings)), None)
    return load(runs, names=names, partial=partial) if read is None else read


def load_runs(path: Paths, *, names: Sequence[str] = (), partial: bool | None = False) -> Runs:
    """Read every completed run directory below one or several folders; a folder may be a run directory itself.

    A run outside a study uses its name as its variant.

    Args:
        path: one folder or several folders. If runs in several folders have the same variant and seed, the variants'
            names include the folders.
        names: names to use instead of the folders' own names.
        partial: whether to include incomplete runs, with the sessions that they have completed; if not, these runs
            are left out, and a warning names them. None also leaves them out, for a command without `--partial`.

    Raises:
        ValueError: the folder does not exist or has no completed run, the runs belong to several settings of a grid,
            two runs have the same variant and seed, or a run directory's tables are missing or lack a column.
    """
    info, root, remarks = find_runs(path, names, partial)
    settings = list(dict.fromkeys(info["setting"]))
    if any(axis == "federation" for axis, _ in settings[0]):
        raise ValueError(
            f"{root} holds several federations, but this command reads one: give the directories of one federation, "
            f"such as {info['path'].iloc[0]}"
        )
    if len(several := sorted(set(filter(None, info["federation"])))) > 1:
        raise ValueError(
            f"the runs belong to several federations ({', '.join(several)}), each with a model of its own:"
            " give the runs of one federation"
        )
    if len(settings) > 1:
        first = _folder(info[[setting == settings[0] for setting in info["setting"]]])
        one = f"give the folder of one, such as {first}, or compare all with `edgefl settings` or `edgefl sweep`"
        how = (
            one
            if info["variant"].nunique() > 1
            else (
                f"give the folder of one, such as {first}, compare all with `edgefl settings {root}` or, if they"
                f" differ in a number, draw their costs with"
                f" `edgefl sweep {root}`"
            )
        )
        if first == root:  # runs of several studies
            how = f"give the folder of one run or study, such as {info['path'].iloc[0]}"
        raise ValueError(f"{root} holds {len(settings)} settings of a grid: {how}")
    return _read(info, root, remarks)


def load_as_variants(path: Paths, *, names: Sequence[str] = (), partial: bool | None = False) -> Runs:
    """Read runs as `load_runs` does; settings of a grid become variants, named by setting and variant.

    Each run keeps its own seed, since no runs are paired.
    """
    info, root, remarks = find_runs(path, names, partial)
    words = [" ".join(label for _, label in setting) for setting in info["setting"]]
    both = [" ".join(filter(None, pair)) for pair in zip(words, info["variant"], strict=True)]
    order = list(dict.fromkeys(info["setting"]))
    places = [
        (order.index(setting), *place[1:])
        for setting, place in zip(info["setting"], info["place"], strict=True)
    ]
    return _read(info.assign(variant=both, place=places, seed=info["own_seed"]), root, remarks)


def load_settings(path: Paths, *, names: Sequence[str] = (), partial: bool | None = False) -> Settings:
    """Read the runs of each setting of a study's grid as `load_runs` does, in order of their folders."""
    info, root, remarks = find_runs(path, names, partial)
    by_setting = Settings()
    for setting, group in info.groupby("setting", sort=False):
        folder = root if len(group) == len(info) else _folder(group)
        by_setting[setting] = _read(group, folder, remarks)
    return by_setting


def _folder(info: pd.DataFrame) -> Path:
    return Path(os.path.commonpath(list(info["path"])))


def _read(info: pd.DataFrame, path: Path, remarks: Remarks) -> Runs:
    runs = info.sort_values(["place", "seed"], ignore_index=True)
    _check_distinct(runs)
    score = _score(runs)
    tables = {name: read_all(runs, name) for name in ("rounds", "events", "sessions")}
    sentences = list(remarks.sentences)
    if score != "accuracy":
        sentences.append(
            f"the score of these runs' task is {score_words.named(score)}: 1 is perfect, and it may be "
            "negative; percentages are the score times 100"
        )
    unfinished = int((runs["status"] != "completed").sum())
    if unfinished:
        tables = whole_sessions(runs, tables)
        ends_s = tables["rounds"].groupby(["variant", "seed"])["end_s"].max()
        known = runs["simulated_s"].astype(float)
        of_run = [float(ends_s.get((run.variant, run.seed), 0.0)) for run in runs.itertuples()]
        runs["simulated_s"] = known.fillna(pd.Series(of_run, runs.index))
        tables["events"] = until_end(runs, tables["events"])
        sentences.append(
            f"{unfinished} of {len(runs)} runs are not completed: only their finished sessions count, also "
            "in their totals"
        )
    check_sessions(runs, tables)
    tables["rounds"] = with_work_under_way(runs, tables["rounds"])
    left_out = tuple(remarks.left_out)
    return Runs(
        path=path, home=remarks.home, info=runs, left_out=left_out, remarks=tuple(sentences), **tables
    )


def _score(info: pd.DataFrame) -> str:
    """Return the name of the runs' score; refuse runs with different scores, which cannot be compared."""
    first, *others = info["score"].unique()
    if others:
        paths = [info.loc[info["score"] == one, "path"].iloc[0] for one in (first, others[0])]
        raise ValueError(
            f"{paths[0]} has the score {first}, but {paths[1]} has {others[0]}: their learning "
            "tasks differ; give one of these folders"
        )
    return str(first)


def _check_distinct(info: pd.DataFrame) -> None:
    twice = info[info.duplicated(["variant", "seed"], keep=False)]
    if len(twice):
        first, second = twice.iloc[0], twice.iloc[1]
        raise ValueError(
            f"two runs of variant '{first.variant}' and seed {first.seed}: {first.path} and {second.path}; "
            "give the folder of one study"
        )
