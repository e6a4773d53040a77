"""Collect a study's data for export: each run's settings, circumstances and rounds, and the study's files."""

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from edgefl.analysis.measures.metrics import RUN, of_run, totals
from edgefl.analysis.runs.load import load_settings, named
from edgefl.analysis.runs.scenario_keys import keys_of

CURVES = ("accuracy", "loss", "latency_s", "energy_j")  # curves with a point per round
# totals of a run; its other metrics are means of its rounds
SUMS = ("energy_j", "simulated_s", "rounds", "probe_rounds")
FILES = ("*.csv", "*.md", "*.tex", "*.png", "*.pdf")  # files of a study's own folder that are exported


@dataclass(frozen=True)
class RunRecord:
    """A completed run's parameters, summary and curves, in the form that experiment trackers read.

    Attributes:
        name: setting, variant and seed of the run, as text.
        key: text that is unique among all runs, including runs of other settings at the same path.
        group: setting and variant, which all seeds share.
        settings: dotted key of the scenario -> the run's value.
        about: study, variant, seed, setting and versions of the run, as text.
        rounds: for each round in order, simulated seconds at the round's end, and metric -> finite value.
        summary: `total.` and metric -> finite value of the whole run, and `mean.` and metric -> finite mean over its
            training rounds.
    """

    path: Path
    name: str
    key: str
    group: str
    settings: dict[str, Any] = field(repr=False)
    about: dict[str, str] = field(repr=False)
    rounds: Sequence[tuple[float, dict[str, float]]] = field(repr=False)
    summary: dict[str, float] = field(repr=False)


@dataclass(frozen=True)
class StudyRecord:
    """A study's runs for export, and the files of comparisons in the study's folder.

    Attributes:
        home: the folder of comparisons; comparisons of each federation are in subfolders.
    """

    path: Path
    name: str
    runs: Sequence[RunRecord]
    home: Path
    files: Sequence[Path]
    notes: Sequence[str]

    def name_of(self, file: Path) -> str:
        """Return the name of one of the study's files, with the federation's folder if it is in one."""
        return file.relative_to(self.home).as_posix()


@dataclass(frozen=True)
class Exported:
    """The result of exporting a study.

    Attributes:
        new: how many runs were exported for the first time.
        files: how many files of the study were exported.
        look: the shell command that shows the exported runs.
    """

    study: StudyRecord
    place: Path
    new: int
    files: int
    look: str

    @property
    def there(self) -> int:
        """The number of runs that an earlier export had already written."""
        return len(self.study.runs) - self.new


def study_of(path: str | Path) -> StudyRecord:
    """Gather the completed runs in and below a folder.

    Raises:
        ValueError: there is no completed run.
    """
    folder = Path(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the report's notes name the runs left out
        by_setting = load_settings(folder, partial=None)
    records: list[RunRecord] = []
    federations: dict[str, None] = {}
    name = folder.resolve().name
    for setting, runs in by_setting.items():
        spent = totals(runs.rounds).set_index(RUN)
        for row in runs.info.itertuples():
            run = Path(str(row.path))
            about = json.loads((run / "run.json").read_text(encoding="utf-8"))
            name = about.get("study") or name
            if about.get("federation"):
                federations[about["federation"]] = None
            group = ", ".join(filter(None, (named(setting), str(row.variant))))
            key = (row.variant, row.seed)
            records.append(
                RunRecord(
                    path=run,
                    name=f"{group} seed {row.own_seed}",
                    key=f"{(about.get('identity') or {}).get('hash', '')} {group} {row.own_seed}".strip(),
                    group=group,
                    settings=keys_of(run),
                    about=_about(about),
                    rounds=list(_rounds(of_run(runs.rounds, row), str(row.score))),
                    summary=_summary(spent.loc[key].to_dict()) if key in spent.index else {},
                )
            )
    home = by_setting.first.home or folder
    folders = [home, *(home / name for name in federations)]
    files = sorted(file for each in folders for pattern in FILES for file in each.glob(pattern))
    if (folder / "run.json").exists():  # tables of a single run belong to no comparison
        files = []
    notes = dict.fromkeys(note for runs in by_setting.values() for note in runs.left_out)
    return StudyRecord(folder, name, records, home, files, tuple(notes))


def _about(about: dict[str, Any]) -> dict[str, str]:
    told = {
        key: about.get(key) for key in ("study", "variant", "seed", "reference", "edgefl_version", "device")
    }
    told |= {f"setting.{axis}": label for axis, label in (about.get("setting") or {}).items()}
    told |= {f"version.{name}": version for name, version in (about.get("versions") or {}).items()}
    return {key: str(value) for key, value in told.items() if value is not None}


def _rounds(rounds: pd.DataFrame, score: str) -> Iterator[tuple[float, dict[str, float]]]:
    """Yield a run's rounds in order of their end times; with several cells, each cell has its own curves."""
    several = rounds["cell"].nunique() > 1
    spent_j = 0.0
    for row in rounds.sort_values("end_s").to_dict("records"):
        spent_j += row["energy_j"]
        of_cell = f".cell_{row['cell']}" if several else ""
        values = {
            f"{score if name == 'accuracy' else name}{of_cell}": row[name] for name in CURVES if name in row
        }
        values |= {"simulated_s": row["end_s"], "spent_j": spent_j, f"session{of_cell}": row["session"]}
        yield float(row["end_s"]), _finite(values)


def _summary(values: dict[Any, Any]) -> dict[str, float]:
    return {f"{'total' if name in SUMS else 'mean'}.{name}": of for name, of in _finite(values).items()}


def _finite(values: dict[Any, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in values.items() if math.isfinite(value)}
