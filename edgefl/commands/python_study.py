"""Run studies from Python, as `edgefl study` does."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from operator import index
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError, check_values, clipped
from edgefl.run.showing import Showing, showing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgefl import studies
    from edgefl.run.results import StudyResults
    from edgefl.scenario.scenario import Scenario

Overrides = Mapping[str, Any]


def study(
    base: "str | Path | Mapping[str, Any] | Scenario",
    variants: Mapping[str, Overrides | None] | None = None,
    *,
    seeds: Sequence[int] = (),
    reference: str | None = None,
    question: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    jobs: int | None = None,
    retry: bool = False,
    alone: bool = False,
    snapshot_rounds: int | None = None,
    progress: bool = True,
) -> "StudyResults":
    """Run every variant with every seed; `edgefl.compare` then compares them.

    If a study has a question, seeds are added until it is answered or its budget is spent.

    Args:
        base: a study (file, or dict with the keys of a study file); or a scenario (object, file or dict) to run with
            `variants`.
        variants: name -> dotted overrides, as in a study file: {"wide": {"radio.bandwidth_hz": 2e8}}, or as in
            `Scenario.with_`: {"wide": dict(radio__bandwidth_hz=2e8)}.
        seeds: seeds with which each variant runs; by default the seeds of the study file, or the scenario's seed. If
            given for a study file, only these seeds are run, and the study's question is not answered.
        reference: the variant with which other variants are compared, or None for the first variant.
        question: the question to answer, as in a study file: {"metric": "accuracy_end", "variants": ["narrow",
            "wide"], "precision": 0.01, "budget": 40}.
        out: directory of the study, new, empty, or with part of this study, which is then continued; None for a
            directory below runs/.
        device: name of the torch device, as in `simulate`.
        jobs: maximum number of processes that run at the same time, or None for one per core, on a GPU for one.
        retry: whether to repeat runs that failed before.
        alone: whether to train every run by itself, even if runs could share training.
        snapshot_rounds: number of rounds between snapshots, as in `simulate`.
        progress: whether to show progress and notes in a terminal or notebook; elsewhere nothing is shown.

    Returns:
        The study's directory: a path object with attributes for the tables of all runs and the question's `.answer`.

    Raises:
        EdgeflError: the study cannot be run; the error names the fault and the remedy.
            `edgefl.studies.IncompleteStudy`: some runs failed, and all others are complete.
    """
    if not isinstance(variants, Mapping | None):
        hint = (
            f"; name the study's directory as out={str(variants)!r}"
            if isinstance(variants, str | Path)
            else ""
        )
        raise EdgeflError(
            f"variants: give a dict from names to overrides, got {clipped(repr(variants))}{hint}"
        )
    check_values({"jobs": jobs, "snapshot_rounds": snapshot_rounds}, device=device)
    seeds = () if isinstance(seeds, tuple) and not seeds else _whole(seeds)
    with showing(progress) as shown:
        from edgefl import studies
        from edgefl.commands.closing import of_study
        from edgefl.run_directory.snapshot import Every

        options = studies.StudyOptions(
            device,
            jobs,
            begins=lambda part: shown.begin({run.label: run.scenario for run in part.runs}),
            progress=lambda label, report: shown.update(label, of_study(report)),
            failed=lambda failure: _failed(shown, failure),
            noted=shown.note,
            retry=retry,
            share=not alone,
            every=Every(rounds=snapshot_rounds),
        )
        with _planned(base, variants, seeds, reference, question) as plan:
            results = studies.run(plan, out, options)
        shown.end(results)
    return results


def _whole(seeds: object) -> tuple[int, ...]:
    """Return seeds given in Python, which may be NumPy integers, as Python integers."""
    try:
        if isinstance(seeds, Iterable) and not isinstance(seeds, str) and (whole := [*map(index, seeds)]):
            return tuple(whole)
    except TypeError:
        pass
    raise EdgeflError(f"seeds: give a list of whole numbers, such as [1, 2], got {clipped(repr(seeds))}")


def _dotted(overrides: Overrides) -> dict[str, Any]:
    """Return overrides with dotted keys, in which a key of Python keywords has two underscores for each dot."""
    keys = {key: str(key) for key in overrides}
    return {key if "." in key else key.replace("__", "."): overrides[own] for own, key in keys.items()}


def _failed(shown: Showing, failure: "studies.Failed") -> None:
    shown.failed(failure.label)
    shown.note(f"failed: {failure}{failure.trace and chr(10)}{failure.trace}")


@contextmanager
def _planned(
    base: "str | Path | Mapping[str, Any] | Scenario",
    variants: Mapping[str, Overrides | None] | None,
    seeds: Sequence[int],
    reference: str | None,
    question: Mapping[str, Any] | None,
) -> "Iterator[studies.StudyPlan]":
    """Yield the plan of a study file, or of a study or variants given in Python and written to a temporary file."""
    from edgefl import studies
    from edgefl.config import shipped
    from edgefl.config.yaml_source import Source, write
    from edgefl.scenario.scenario import Scenario, from_source, given, is_study

    varied = any(each is not None for each in (variants, reference, question))
    if varied and isinstance(base, str | Path):
        source = Source(shipped.find(Path(base), "scenario"))
        base = base if is_study(source) else from_source(source)
    own = base if isinstance(base, Mapping) and "scenario" in base else None
    scenario = given(own["scenario"] if own else base) if isinstance(base, Mapping) else base
    if varied and (own or not isinstance(scenario, Scenario)):
        raise EdgeflError(
            "a study already has variants, reference and question: to pass your own, pass a scenario, not a study"
        )
    if not isinstance(scenario, Scenario):
        yield studies.plan(scenario, seeds=seeds)
        return
    if not own and not variants:
        raise EdgeflError(
            'variants: name at least one, e.g. {"as it is": None, "wide": {"radio.bandwidth_hz": 2e8}}'
        )
    if not own:
        own = {
            "seeds": list(seeds) or [scenario.seed],
            "reference": reference or next(iter(variants or {})),
            "variants": {name: _dotted(overrides or {}) for name, overrides in (variants or {}).items()},
            **({} if question is None else {"question": dict(question)}),
        }
    content = {"name": scenario.name, "seeds": [scenario.seed], **own, "scenario": "scenario.yaml"}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "study.yaml"
        file.write_text(write(content), encoding="utf-8")
        try:
            plan = studies.plan(file, () if variants else seeds, scenario.source)
        except EdgeflError as error:  # omit the name of the temporary file, which the caller never saw
            text = re.sub(rf"{re.escape(str(file))}:(\d+:? )?", "", str(error))
            raise EdgeflError(text, error.place) from None
        yield plan
