"""Plan the runs of a study, each in its own folder."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from edgefl.config import shipped
from edgefl.config.yaml_source import Source, assignment
from edgefl.errors import EdgeflError, quoted
from edgefl.run.study_membership import StudyMembership
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import Prepared
from edgefl.scenario.scenario import Scenario, from_source, is_study, override
from edgefl.studies.study_file import ChoiceSettings, QuestionSettings, Study, folder_of, labelled_by_author


def _named(member: StudyMembership) -> str:
    """Name a variant in a setting, as in `alpha 0.3, algorithm moon, similarity`; omit an only variant."""
    setting = [f"{axis} {label}" for axis, label in member.setting.items()]
    return ", ".join([*setting, *[member.variant] * (not setting or len(member.variants) > 1)])


@dataclass(frozen=True)
class Run:
    """One run of a study."""

    scenario: Scenario
    path: Path
    member: StudyMembership

    @property
    def label(self) -> str:
        return f"{_named(self.member)} seed {self.scenario.seed}"

    @property
    def setting(self) -> tuple[tuple[str, str], ...]:
        """The run's setting as pairs of a grid's axis and the run's label on that axis; () without a grid."""
        return tuple(self.member.setting.items())

    @property
    def case(self) -> tuple[str, ...]:
        """The run's variant and setting, which are the same for all seeds."""
        return (self.member.variant, *self.member.setting.values())


@dataclass(frozen=True)
class StudyPlan:
    """A study's runs, validated, in folders relative to the study's folder.

    question: the study's question, for which `edgefl.studies.run` adds seeds, or None if the study has no question,
    or if only given seeds are planned. base: the scenario that replaces the file named in the study.
    """

    file: Path
    name: str
    runs: Sequence[Run]
    question: QuestionSettings | None = None
    choose: ChoiceSettings | None = None
    base: Source | None = None

    def prepared(self, load: Loaded) -> dict[Path, Prepared]:
        """Return each run's scenario prepared for building, with access to the data, by the run's path."""
        return {run.path: Prepared(run.scenario, load) for run in self.runs}

    def first_runs(self, like: Sequence[Run] | None = None) -> list[tuple[str, Scenario]]:
        """Return label and scenario of the first run of each case; with `like`, only for the cases of these runs."""
        first: dict[tuple[str, ...], Run] = {}
        for run in self.runs:
            first.setdefault(run.case, run)
        cases = dict.fromkeys(run.case for run in (self.runs if like is None else like))
        return [(first[case].label, first[case].scenario) for case in cases]


def plan(
    path: str | Path, seeds: Sequence[int] = (), base: Source | None = None, overrides: Sequence[str] = ()
) -> StudyPlan:
    """Plan all runs of a study, each in `VARIANT/seed-N`, or with a grid in `SETTING/VARIANT/seed-N`.

    Args:
        path: study file.
        seeds: seeds to plan, without duplicates, instead of the study's seeds; the study's question then stays open.
        base: the scenario that replaces the file named in the study.
        overrides: `dotted.key=value` strings that change the scenario; keys of variants and settings take precedence.

    Raises:
        EdgeflError: the study is faulty; the message names file, line and remedy.
    """
    source = Source(Path(path))
    if "devices" in source.data and not {"scenario", "variants", "grid"} & set(source.data):
        raise EdgeflError(f"{path}: is a scenario, not a study; `edgefl run {path}` runs it")
    if seeds:
        source.override("seeds", list(dict.fromkeys(seeds)), " ".join(f"--seed {seed}" for seed in seeds))
    study = source.validate(Study)
    unchanged = base or _base(source, study)
    for origin, key, _ in map(assignment, overrides):
        if key == "seed":
            raise EdgeflError(f"{origin}: the seeds of a study are in `seeds`; use --seed instead")
    if overrides:
        override(unchanged, overrides)
        base = unchanged  # seeds that are added later run with the same overrides
    cases, settings = [], {axis: tuple(points) for axis, points in study.grid.items()}
    for labels in product(*study.grid.values()):
        setting = dict(zip(study.grid, labels, strict=True))
        folder = "_".join(folder_of(f"{axis}-{label}") for axis, label in setting.items())
        for variant in study.variants:
            about = StudyMembership(
                study.name, variant, study.reference, setting, tuple(study.variants), settings
            )
            cases.append((_varied(source, study, unchanged, about), Path(folder, folder_of(variant)), about))
    runs = [
        Run(scenario.model_copy(update={"seed": seed}), path / f"seed-{seed}", about)
        for seed in study.seeds
        for scenario, path, about in cases
    ]
    question = None if seeds else study.question
    return StudyPlan(Path(path), study.name, runs, question, study.choose, base)


def _base(source: Source, study: Study) -> Source:
    """Return the scenario that a study names; an error about a file that cannot be found or read names the key."""
    beside, named = source.path.parent / study.scenario, Path(study.scenario)
    shipped_one = len(named.parts) == 1 and not named.suffix and not beside.exists()
    try:
        base = Source(shipped.find(named, "scenario") if shipped_one else beside)
    except EdgeflError as error:
        if shipped_one or isinstance(error.__cause__, OSError):
            raise source.error(("scenario",), str(error)) from error
        raise  # the error already names a line of the scenario
    if is_study(base):
        own = base.data.get("scenario")
        example = f", such as {quoted(own)}, from which that study begins" if isinstance(own, str) else ""
        raise source.error(("scenario",), f"{base.path} is a study: name a scenario{example}")
    return base


def _varied(source: Source, study: Study, unchanged: Source, about: StudyMembership) -> Scenario:
    """Return the scenario of a variant in a setting, with the base scenario's seed.

    Args:
        source: file of the study. unchanged: the base scenario before any override.

    Raises:
        EdgeflError: the scenario is invalid; the message begins with the variant and the setting.
    """
    varied = copy.deepcopy(unchanged)
    try:
        _set_all(varied, source, study, about)
        scenario = from_source(varied)
        _check_aims(study, scenario)
    except EdgeflError as error:
        raise EdgeflError(f"{_named(about)}: {error}") from error
    return scenario


def _set_all(varied: Source, source: Source, study: Study, about: StudyMembership) -> None:
    """Apply the overrides of a setting, and then those of a variant, which take precedence.

    Raises:
        EdgeflError: an override changes a value that the setting's label states; a label that the study's author
            chose states no value.
    """
    stated: list[tuple[str, Any]] = []
    steps = [(("grid", axis, label), study.grid[axis][label]) for axis, label in about.setting.items()]
    for place, overrides in [*steps, (("variants", about.variant), study.variants[about.variant] or {})]:
        for key, value in overrides.items():
            varied.override(key, value, source.where((*place, key)))
            if lost := [each for each, kept in stated if not _holds(varied.data, each.split("."), kept)]:
                raise source.error(
                    (*place, key),
                    f"changes {lost[0]}, which the grid sets, so the setting's label would be wrong: leave out one of"
                    " the two, or name the settings yourself, as axis -> label -> overrides",
                )
        if place[0] == "grid" and not labelled_by_author(source.data.get("grid", {}).get(place[1])):
            stated += overrides.items()


def _holds(data: Any, place: Sequence[str], value: Any) -> bool:
    """Return whether a document still has a value at a place; keys may have been added to a component or section."""
    for part in place:
        data = (data if isinstance(data, dict) else {"name": data}).get(part)
    if isinstance(data, dict) or isinstance(value, dict):
        parts = value if isinstance(value, dict) else {"name": value}
        return all(_holds(data, [key], own) for key, own in parts.items())
    return bool(data == value)


def _check_aims(study: Study, scenario: Scenario) -> None:
    """Raise if a study with several federations has a question or a choice, which concern a single task."""
    for key in ("question", "choose"):
        if scenario.federations and getattr(study, key) is not None:
            raise EdgeflError(
                f"several federations share the cells, but {key} applies to a single federation:"
                f" remove {key}, or federations"
            )
