"""Studies: one base scenario, named variants, seeds, and perhaps a grid of settings to compare them in.

Every variant of a seed meets the same world.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.preview import Loaded, preview_all
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.results import RunDirectory, free_directory, fresh_directory
from edgefl.scenario import LARGEST_SEED, Scenario, from_source
from edgefl.scenario_fields import Section
from edgefl.simulation import StudyMembership, available_cores, simulate, torch_device
from edgefl.workers import Failure, side_by_side
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


def _named(setting: Mapping[str, str], variant: str) -> str:
    """Name a variant in a setting in messages: `alpha 0.3, algorithm moon, similarity`."""
    return ", ".join([*(f"{axis} {label}" for axis, label in setting.items()), variant])


@dataclass(frozen=True)
class Run:
    """One run of a study."""

    scenario: Scenario
    path: Path
    member: StudyMembership

    @property
    def label(self) -> str:
        return f"{_named(self.member.setting, self.member.variant)} seed {self.scenario.seed}"


@dataclass(frozen=True)
class Failed:
    """A run of a study that failed; trace: where in the code, if it was no error of the user's."""

    label: str
    path: Path
    error: str
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.label}: {self.error}"


class IncompleteStudy(EdgeflError):
    """An error about a study of which some runs have failed.

    Args:
        message: how many, and which.
        path: the study directory.
        failures: in the order in which they came.
    """

    def __init__(self, message: str, path: Path, failures: Sequence[Failed]) -> None:
        super().__init__(message)
        self.path = path
        self.failures = tuple(failures)


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
            try:
                for axis, label in setting.items():
                    for key, value in study.grid[axis][label].items():
                        base.override(key, value, source.where(("grid", axis, label, key)))
                for key, value in (overrides or {}).items():
                    base.override(key, value, source.where(("variants", variant, key)))
                cases.append(Case(setting, variant, from_source(base)))
            except EdgeflError as error:
                raise EdgeflError(f"{_named(setting, variant)}: {error}") from error
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
    failed: Callable[[Failed], None] = lambda failure: None,
    fail_fast: bool = False,
) -> Path:
    """Carry out all runs of a study. A run that fails does not keep the others from their end.

    Args:
        out: new or empty directory; None: `runs/NAME` in the current folder, numbered if taken.
        device: as in `simulate`.
        jobs: processes at once; None: one per core (one in all on a GPU).
        progress: called with a run's label and each finished round, and with None when the run is complete.
        failed: called with each run that fails, at once.
        fail_fast: end the study with the first run that fails.

    Returns:
        The study directory.

    Raises:
        IncompleteStudy: runs have failed.
        Interrupted: Ctrl-C or SIGTERM; runs under way are marked `interrupted`.
    """
    preview_all(plan.first_runs(), device, Loaded(download=True))  # before anything is written
    with interruptible():
        at_once = 1 if torch_device(device).type == "cuda" else available_cores()
        wanted = Path(out) if out is not None else free_directory(Path("runs"), plan.name)
        directory = fresh_directory(wanted, claim="study.yaml")
        (directory / "study.yaml").write_text(plan.file.read_text(encoding="utf-8"), encoding="utf-8")
        tasks = [(replace(planned, path=directory / planned.path), device) for planned in plan.runs]
        failures: list[Failed] = []

        def ended(task: tuple[Run, str], failure: Failure | None) -> None:
            planned, _ = task
            if failure is None:
                progress(planned.label, None)
                return
            failures.append(Failed(planned.label, planned.path, failure.error, failure.trace))
            _leave_a_trace(planned, failure)
            failed(failures[-1])
            if fail_fast:
                begun = "; the study has ended there, runs that were begun go on with: edgefl resume RUN_DIR"
                raise IncompleteStudy(f"{failures[0]}{begun}", directory, failures)

        def reported(task: tuple[Run, str], row: Round) -> None:
            progress(task[0].label, row)

        workers = min(len(tasks), jobs or at_once)
        if workers > 1:
            side_by_side(tasks, _work, workers, reported=reported, ended=ended)
        else:
            for task in tasks:
                ended(task, _work_here(task, partial(reported, task)))
        if failures:
            listed = "\n".join(f"  {failure}" for failure in failures)
            message = f"{len(failures)} of {len(tasks)} runs failed, the others are complete:\n{listed}"
            raise IncompleteStudy(message, directory, failures)
    return directory


def _work(task: tuple[Run, str], report: Callable[[Round], None], threads: int | None = 1) -> None:
    planned, device = task
    simulate(
        planned.scenario,
        planned.path,
        device=device,
        threads=threads,
        on_round=report,
        member=planned.member,
    )


def _work_here(task: tuple[Run, str], report: Callable[[Round], None]) -> Failure | None:
    try:
        _work(task, report, threads=None)
    except Exception as error:
        return Failure.of(error)
    return None


def _leave_a_trace(planned: Run, failure: Failure) -> None:
    """Make the directory of a run that failed before it had one: a comparison can say that it is missing."""
    with suppress(EdgeflError):
        run = RunDirectory(planned.path, planned.scenario, {"notes": [], **asdict(planned.member)})
        run.fail(failure.error)
