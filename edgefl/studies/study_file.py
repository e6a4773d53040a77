"""The keys of a study file."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from edgefl.analysis.page import units  # formats the labels
from edgefl.config.scenario_fields import Section
from edgefl.config.units import yaml_number
from edgefl.errors import EdgeflError
from edgefl.scenario.scenario import LARGEST_SEED

Overrides = dict[str, Any]
# also names a folder, so it has no leading or trailing spaces and no path separators
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._-]*[A-Za-z0-9._-])?")
POINT = re.compile(rf"-?{LABEL.pattern}")  # in a grid, a folder's name is the axis and then the label
LONGEST_LABEL = 100  # a folder's name joins several labels and a number, and may have 255 bytes
ZIP = "zip"


# quantities that `edgefl.analysis.reports.question` measures; accuracies are to be maximised, all others minimised
Metric = Literal[
    "accuracy_end",
    "accuracy_first",
    "accuracy_start",
    "rounds_to_target",
    "seconds_to_target",
    "joules_to_target",
    "energy_j",
    "simulated_s",
    "latency_s",
]
TO_TARGET = "_to_target"
SHARE = re.compile(r"\d+(\.\d+)? ?%( of (?P<peak>.+))?")  # such as `95% of average`
BEST = "best"  # represents the variant with the best accuracy


class QuestionSettings(Section):
    """A study's question: seeds are added until the question is answered, or the budget is spent."""

    metric: Metric = Field(
        description="metric to compare, one number per run: accuracy_end (after the last round of a session), "
        "accuracy_first (mean of the first 10 rounds), accuracy_start (before the first round), the rounds, seconds "
        "or joules to the target, or for the whole run energy_j, simulated_s (until its last round ends) and "
        "latency_s (mean over rounds)"
    )
    variants: tuple[str, str] = Field(
        description="two variants to compare; the difference is the first minus the second"
    )
    precision: float = Field(
        ge=1e-9,
        le=1e12,
        description="half width of the difference's confidence interval at which no more seeds are added, in the"
        " metric's unit (0 to 1 for accuracies)",
    )
    budget: int = Field(
        ge=2,
        le=10_000,
        description="maximum number of seeds per setting: the study's seeds, then numbers after the largest seed",
    )
    error: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="probability that at least one setting's interval ever misses the true difference",
    )
    target: Annotated[float, Field(gt=0, le=1)] | str | None = Field(
        None,
        description="accuracy to which time or energy is measured: 0.8, or '95%' of the reference's best accuracy",
    )

    @model_validator(mode="after")
    def _answerable(self) -> Self:
        if self.variants[0] == self.variants[1]:
            raise EdgeflError(
                f"'{self.variants[0]}' is given twice; name two different variants", ("question", "variants")
            )
        if self.metric.endswith(TO_TARGET) != (self.target is not None):
            wants = (
                "needs a target, such as 0.8 or '95%'"
                if self.target is None
                else "takes no target; leave it out"
            )
            raise EdgeflError(f"{self.metric} {wants}", ("question", "target"))
        if isinstance(self.target, str) and not SHARE.fullmatch(self.target):
            raise EdgeflError(
                f"'{self.target}' cannot be read: give an accuracy (0.8) or a share ('95%', '95% of {BEST}')",
                ("question", "target"),
            )
        return self


class ChoiceSettings(Section):
    """The choice of a grid key's value for each variant, made once all runs are complete."""

    key: str = Field(description="axis of the grid, or its dotted key")
    by: Literal["validation", "test"] = Field(
        "validation",
        description="samples on which accuracies are compared: validation: needs learning.evaluation.validation;"
        " test: the samples on which the choice is then reported",
    )


class Study(Section):
    """The content of a study file."""

    name: str = Field(
        pattern=rf"^{LABEL.pattern}$",
        max_length=200,  # a folder is called by this name and a seed, in at most 255 bytes
        description="a-z, A-Z, 0-9, spaces, . _ -, beginning with a letter or digit",
    )
    scenario: str = Field(
        description="base scenario: a file, relative to the study file, or the name of a shipped scenario"
    )
    seeds: list[Annotated[int, Field(ge=0, le=LARGEST_SEED)]] = Field(
        min_length=1, description="each variant runs once per seed"
    )
    reference: str | None = Field(
        None,
        description="the proposed variant, to which comparisons and relative targets refer; null: no reference",
    )
    variants: dict[str, Overrides | None] = Field(
        default_factory=dict,
        description="name -> dotted overrides of the base scenario; with a grid, variants may be left"
        " out: the base scenario then runs in each setting",
    )
    grid: dict[str, dict[str, Overrides]] = Field(
        default_factory=dict,
        description="settings in which to compare the variants, all axes crossed: axis -> label -> dotted overrides,"
        " or a dotted key -> list of values, or axis -> {zip: {dotted key: list of values, ...}} for keys that"
        " change together: all first values, then all second values",
    )
    question: QuestionSettings | None = Field(
        None, description="question that the study should answer; seeds are added until it is answered"
    )

    choose: ChoiceSettings | None = Field(
        None, description="a grid setting to choose for each variant, and to report on the test data"
    )

    @field_validator("grid", mode="before")
    @classmethod
    def _written_out(cls, grid: Any) -> Any:
        """Expand `seed: [1, 2]` to `seed: {"1": {seed: 1}, "2": {seed: 2}}`.

        If values have a unit, their labels state the unit, and the axis does not: `bandwidth: {"5 MHz": ...}`.
        """
        if not isinstance(grid, dict):
            return grid
        written: dict[str, Any] = {}
        for key, points in grid.items():
            if points in ([], None):
                raise EdgeflError("has no values: list at least one", ("grid", key))
            if not isinstance(points, dict | list):
                one = yaml_number(points) if _is_number(points) else points
                raise EdgeflError(
                    f"must be a list of values, or labels with overrides: write [{one}] for one value",
                    ("grid", key),
                )
            axis = _axis(str(key), points, written) if isinstance(points, list) else key
            if axis in written:
                raise EdgeflError(
                    f"two axes are called '{axis}': rename one, as axis -> label -> overrides", ("grid", key)
                )
            if isinstance(points, list):
                points = _labelled(key, [{key: value} for value in points])
            elif isinstance(points, dict) and list(points) == [ZIP]:
                points = _labelled(key, list(_zipped(key, points[ZIP])))
            written[axis] = points
        return written

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.variants:
            if not self.grid:
                raise EdgeflError("varies nothing: define variants, a grid, or both")
            stem = Path(self.scenario).stem
            self.variants[stem if LABEL.fullmatch(stem) else "scenario"] = None
        if self.reference is not None and self.reference not in self.variants:
            raise EdgeflError(
                f"'{self.reference}' is not one of the variants {list(self.variants)}", ("reference",)
            )
        if len(set(self.seeds)) < len(self.seeds):
            raise EdgeflError(f"some seeds are given twice in {self.seeds}", ("seeds",))
        for axis, points in self.grid.items():
            if not points:
                raise EdgeflError(
                    "has no values; give a label with overrides, or a list of values", ("grid", axis)
                )
            _check_label(("grid", axis), axis)
            for label, overrides in points.items():
                _check_label(("grid", axis, label), label, POINT)
                _check_overrides(("grid", axis, label), overrides)
            _check_distinct(("grid", axis), points)
        _check_distinct(("variants",), self.variants)
        for variant, variant_overrides in self.variants.items():
            _check_label(("variants", variant), variant)
            _check_overrides(("variants", variant), variant_overrides or {})
        if self.choose is not None:
            last = self.choose.key.rpartition(".")[2]
            if not any(axis in (self.choose.key, last) or last.startswith(f"{axis}_") for axis in self.grid):
                raise EdgeflError(
                    f"'{self.choose.key}' is not an axis of the grid: {', '.join(self.grid) or 'it has none'}",
                    ("choose", "key"),
                )
        if self.question is not None:
            _check_question(self.question, self)
        return self


def _check_question(question: QuestionSettings, study: Study) -> None:
    for variant in question.variants:
        if variant not in study.variants:
            raise EdgeflError(
                f"'{variant}' is not one of the variants {list(study.variants)}", ("question", "variants")
            )
    if question.budget < len(study.seeds):
        raise EdgeflError(
            f"is {question.budget}, but the study already has {len(study.seeds)} seeds",
            ("question", "budget"),
        )
    if max(study.seeds) + question.budget > LARGEST_SEED:
        raise EdgeflError(f"seeds would exceed the maximum, {LARGEST_SEED}", ("question", "budget"))
    share = SHARE.fullmatch(question.target) if isinstance(question.target, str) else None
    if share and share["peak"] is None and study.reference is None:
        raise EdgeflError(
            f"'{question.target}' is a share of the reference's best accuracy, but the study has no reference; set"
            f" reference, or the target to '{question.target} of {BEST}' or to an accuracy",
            ("question", "target"),
        )
    if share and share["peak"] not in (None, BEST, *study.variants):
        raise EdgeflError(
            f"'{share['peak']}' is neither one of the variants {list(study.variants)} nor '{BEST}'",
            ("question", "target"),
        )


def _zipped(axis: str, lists: Any) -> Iterator[Overrides]:
    if not isinstance(lists, dict) or not all(isinstance(values, list) for values in lists.values()):
        raise EdgeflError("give dotted keys with lists of values", ("grid", axis, ZIP))
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise EdgeflError(f"the lists need the same length; {listed}", ("grid", axis, ZIP))
    for values in zip(*lists.values(), strict=True):
        yield dict(zip(lists, values, strict=True))


def labelled_by_author(points: Any) -> bool:
    """Return whether an axis, as the file has it, has labels from its author; other labels state the values."""
    return isinstance(points, dict) and list(points) != [ZIP]


def _axis(key: str, values: list[Any], taken: Container[str]) -> str:
    """Name the axis of a dotted key by the key's last part, without a unit if the values' labels have one."""
    without = units.bare(key)
    return without if all(map(_is_number, values)) and without not in taken else key.rpartition(".")[2]


def _labelled(axis: str, points: list[Overrides]) -> dict[str, Overrides]:
    keys = list(points[0]) if points else []
    texts = {key: _label_texts(key, [overrides[key] for overrides in points]) for key in keys}
    labelled: dict[str, Overrides] = {}
    for number, overrides in enumerate(points):
        label = " ".join(texts[key][number] for key in overrides)
        if label in labelled:
            raise EdgeflError(
                f"two points have the label '{label}': give each a label, as label: overrides", ("grid", axis)
            )
        labelled[label] = overrides
    return labelled


def _label_texts(key: str, values: Sequence[Any]) -> list[str]:
    """Format the values of a dotted key: numbers in one unit, components by name and parameters."""
    return units.written(key, values) if all(map(_is_number, values)) else list(map(_text, values))


def _is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false do not count as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(_text(one) if key == "name" else f"{key} {_text(one)}" for key, one in value.items())
    return str(value)


def _check_label(place: tuple[str, ...], label: str, allowed: re.Pattern[str] = LABEL) -> None:
    if not allowed.fullmatch(label) or len(label) > LONGEST_LABEL:
        raise EdgeflError(
            f"'{label[:LONGEST_LABEL]}' becomes a folder name: use at most {LONGEST_LABEL} characters a-z, A-Z,"
            " 0-9, spaces, . _ -, beginning with a letter or digit",
            place,
        )


def folder_of(label: str) -> str:
    """Return the name of a label's folder, without spaces, so that shells read it as one word."""
    return label.replace(" ", "-")


def _check_distinct(place: tuple[str, ...], labels: Iterable[str]) -> None:
    """Raise if two labels of an axis, or two variants, would share a folder."""
    taken: dict[str, str] = {}
    for label in labels:
        if (other := taken.setdefault(folder_of(label), label)) != label:
            raise EdgeflError(
                f"'{other}' and '{label}' would have the same folder, {folder_of(label)}: rename one",
                (*place, label),
            )


def _check_overrides(place: tuple[str, ...], overrides: Overrides) -> None:
    """Raise if overrides contain a seed, which the study's own seeds would replace."""
    if "seed" in overrides:
        raise EdgeflError("the seeds of a study are in `seeds`; leave out this key", (*place, "seed"))
