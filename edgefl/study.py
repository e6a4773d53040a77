"""Studies: one base scenario, named variants, seeds, and perhaps a grid of settings to compare them in.

Every variant of a seed meets the same world.
"""

import copy
import multiprocessing
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from queue import Empty
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.preview import Loaded, preview_all
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.results import free_directory, fresh_directory
from edgefl.scenario import LARGEST_SEED, Scenario, from_source
from edgefl.scenario_fields import Section
from edgefl.simulation import StudyMembership, available_cores, simulate, torch_device
from edgefl.yaml_source import Source

Overrides = dict[str, Any]
# names a folder too: no blanks at its ends, no way out of the study's own
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9._-])?")
LONGEST_LABEL = 100  # a file system allows 255 bytes, for several labels and a number


class Study(Section):
    """The content of a study file."""

    name: str = Field(pattern=rf"^{LABEL.pattern}$", description="letters, digits, . _ -")
    scenario: str = Field(description="base scenario, relative to the study file")
    seeds: list[Annotated[int, Field(ge=0, le=LARGEST_SEED)]] = Field(
        min_length=1, description="each variant runs once per seed"
    )
    reference: str = Field(description="the proposed variant, to whose peak the others are compared")
    variants: dict[str, Overrides | None] = Field(
        min_length=1, description="name -> dotted overrides of the base scenario"
    )
    grid: dict[str, dict[str, Overrides]] = Field(
        default_factory=dict,
        description="settings to compare the variants in, all axes crossed: axis -> label -> dotted overrides, "
        "or a dotted key -> list of values",
    )

    @field_validator("grid", mode="before")
    @classmethod
    def _written_out(cls, grid: Any) -> Any:
        """Write `learning.lr: [0.01, 0.1]` out as `lr: {"0.01": {learning.lr: 0.01}, "0.1": {learning.lr: 0.1}}`."""
        if not isinstance(grid, dict):
            return grid
        written: dict[str, Any] = {}
        for key, points in grid.items():
            axis = key.rpartition(".")[2] if isinstance(points, list) else key
            if axis in written:
                raise ValueError(f"two axes are called '{axis}': name one, as axis -> label -> overrides")
            if isinstance(points, list):
                points = {str(value): {key: value} for value in points}
            written[axis] = points
        return written

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.reference not in self.variants:
            raise ValueError(f"reference '{self.reference}' is none of the variants {list(self.variants)}")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds are given twice in {self.seeds}")
        for axis, points in self.grid.items():
            if not points:
                raise ValueError(
                    f"grid.{axis}: has no point; give a label with overrides, or a list of values"
                )
            _check_label(f"grid.{axis}", axis)
            for label, overrides in points.items():
                _check_label(f"grid.{axis}", label)
                _check_overrides(f"grid.{axis}.{label}", overrides)
        for variant, variant_overrides in self.variants.items():
            _check_label("variants", variant)
            _check_overrides(f"variants.{variant}", variant_overrides or {})
        return self


def _check_label(place: str, label: str) -> None:
    if not LABEL.fullmatch(label) or len(label) > LONGEST_LABEL:
        raise ValueError(
            f"{place}: '{label[:LONGEST_LABEL]}' names a folder: use at most {LONGEST_LABEL} letters, digits, blanks,"
            " . _ -, a letter or digit first"
        )


def _check_overrides(place: str, overrides: Overrides) -> None:
    """Refuse a seed: it would be replaced by each of the study's."""
    if "seed" in overrides:
        raise ValueError(f"{place}: a study has its seeds in `seeds`; leave out the seed here")


@dataclass(frozen=True)
class Case:
    """A variant in one setting; the scenario has the base's seed."""

    setting: Mapping[str, str]  # axis -> label; empty without a grid
    variant: str
    scenario: Scenario

    @property
    def folder(self) -> str:
        """The folder of the setting: `alpha-0.3_algorithm-moon`."""
        return "_".join(f"{axis}-{label}" for axis, label in self.setting.items())


@dataclass(frozen=True)
class Run:
    """One run of a study."""

    scenario: Scenario
    path: Path
    member: StudyMembership

    @property
    def label(self) -> str:
        setting = [f"{axis} {label}" for axis, label in self.member.setting.items()]
        return ", ".join([*setting, f"{self.member.variant} seed {self.scenario.seed}"])


@dataclass(frozen=True)
class Plan:
    """A study's runs, validated, in folders relative to the study's own."""

    file: Path
    name: str
    runs: Sequence[Run]

    def first_runs(self) -> list[tuple[str, Scenario]]:
        """Return label and scenario of every variant in every setting, with the first seed."""
        seed = self.runs[0].scenario.seed
        return [(run.label, run.scenario) for run in self.runs if run.scenario.seed == seed]


def load(path: str | Path, seeds: Sequence[int] = ()) -> tuple[Study, list[Case]]:
    """Load a study and its cases, all validated; seeds, each counted once, replace the file's.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    source = Source(Path(path))
    if seeds:
        source.override("seeds", list(dict.fromkeys(seeds)), " ".join(f"--seed {seed}" for seed in seeds))
    study = source.validate(Study)
    unchanged = Source(source.path.parent / study.scenario)
    cases = []
    for labels in product(*study.grid.values()):
        setting = dict(zip(study.grid, labels, strict=True))
        for variant, overrides in study.variants.items():
            base = copy.deepcopy(unchanged)
            for axis, label in setting.items():
                for key, value in study.grid[axis][label].items():
                    base.override(key, value, source.where(("grid", axis, label, key)))
            for key, value in (overrides or {}).items():
                base.override(key, value, source.where(("variants", variant, key)))
            cases.append(Case(setting, variant, from_source(base)))
    return study, cases


def plan(path: str | Path, seeds: Sequence[int] = ()) -> Plan:
    """Plan all runs of a study, each in `VARIANT/seed-N`, or with a grid in `SETTING/VARIANT/seed-N`.

    Args:
        path: study file.
        seeds: only these, instead of the study's.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    study, cases = load(path, seeds)
    runs = [
        Run(
            case.scenario.model_copy(update={"seed": seed}),
            Path(case.folder, case.variant, f"seed-{seed}"),
            StudyMembership(study.name, case.variant, study.reference, case.setting),
        )
        for seed in study.seeds
        for case in cases
    ]
    return Plan(Path(path), study.name, runs)


def run(
    plan: Plan,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    jobs: int | None = None,
    progress: Callable[[str, Round | None], None] = lambda label, row: None,
) -> Path:
    """Carry out all runs of a study.

    Args:
        out: new or empty directory; None: `runs/NAME` in the current folder, numbered if taken.
        device: as in `simulate`.
        jobs: processes at once; None: one per core (one in all on a GPU).
        progress: called with a run's label and each finished round, and with None when the run is complete.

    Returns:
        The study directory.
    """
    preview_all(plan.first_runs(), device, Loaded(download=True))  # before anything is written
    wanted = Path(out) if out is not None else free_directory(Path("runs"), plan.name)
    directory = fresh_directory(wanted, claim="study.yaml")
    runs = [replace(planned, path=directory / planned.path) for planned in plan.runs]
    (directory / "study.yaml").write_text(plan.file.read_text(encoding="utf-8"), encoding="utf-8")
    at_once = 1 if torch_device(device).type == "cuda" else available_cores()
    workers = min(len(runs), jobs or at_once)
    if workers == 1:
        for planned in runs:
            report = partial(progress, planned.label)
            simulate(planned.scenario, planned.path, device=device, on_round=report, member=planned.member)
            progress(planned.label, None)
    else:
        _run_parallel(runs, device, workers, progress)
    return directory


# What a worker process was given when it started.
_worker: tuple[Any, Any] | None = None


def _start_worker(reports: Any, stop: Any) -> None:
    global _worker
    _worker = (reports, stop)


def _work(planned: Run, device: str) -> None:
    assert _worker is not None
    reports, stop = _worker

    def report(row: Round) -> None:
        reports.put((planned.label, row))
        if stop.is_set():
            raise Interrupted  # the study was, or another of its runs has failed

    simulate(planned.scenario, planned.path, device=device, threads=1, on_round=report, member=planned.member)
    reports.put((planned.label, None))


def _run_parallel(
    runs: list[Run], device: str, workers: int, progress: Callable[[str, Round | None], None]
) -> None:
    # spawn: a forked child would inherit PyTorch's thread pools in an undefined state
    context = multiprocessing.get_context("spawn")
    reports, stop = context.Queue(), context.Event()
    with ProcessPoolExecutor(workers, context, _start_worker, (reports, stop)) as pool:
        futures = {pool.submit(_work, planned, device): planned for planned in runs}
        pending = set(futures)
        try:
            while pending:
                _forward(reports, progress)
                done, pending = wait(pending, timeout=0, return_when=FIRST_EXCEPTION)
                for future in done:
                    error = future.exception()
                    if isinstance(error, EdgeflError):
                        raise EdgeflError(f"{futures[future].label}: {error}") from error
                    if error is not None:
                        raise error
            _forward(reports, progress)
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _forward(reports: Any, progress: Callable[[str, Round | None], None]) -> None:
    """Pass on what workers have reported; return when nothing has come for a moment."""
    try:
        while True:
            progress(*reports.get(timeout=0.1))
    except Empty:
        return
