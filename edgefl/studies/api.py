"""Studies and comparisons from Python, as `edgefl study` and `edgefl compare` run them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from edgefl.config.yaml_source import write
from edgefl.errors import EdgeflError
from edgefl.scenario.scenario import Scenario, given

if TYPE_CHECKING:
    from edgefl.analysis import Comparison
    from edgefl.run.results import StudyResults

Overrides = Mapping[str, Any]


def study(
    base: str | Path | Mapping[str, Any] | Scenario,
    variants: Mapping[str, Overrides | None] | None = None,
    *,
    seeds: Sequence[int] = (),
    reference: str | None = None,
    question: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    jobs: int | None = None,
) -> "StudyResults":
    """Run every variant with every seed; `edgefl.compare` then compares them.

    A study with a question gets further seeds until it is answered, or its budget is spent.

    In a script, call it below `if __name__ == "__main__":`, as Python requires where processes are started.

    Args:
        base: a study file; or a scenario (object, file or dict), which needs `variants`.
        variants: name -> dotted overrides, as in a study file: {"wide": {"radio.bandwidth_hz": 2e8}}.
        seeds: each variant runs once per seed; if left out, those of the study file, or the scenario's own. If given
            for a study file, only these are run, and its question is not answered.
        reference: the variant with which others are compared; None for the first.
        question: as in a study file: {"metric": "accuracy_end", "variants": ["narrow", "wide"], "precision": 0.01,
            "budget": 40}.
        out: directory of the study: new, empty, or with part of this study, which is then continued; None for one
            below runs/.
        device: as in `simulate`.
        jobs: processes at once; None for one per core.

    Returns:
        The directory of the study: a path, with the tables of all runs, and the `.answer` to its question.

    Raises:
        EdgeflError: names what is wrong, and the remedy; `edgefl.studies.IncompleteStudy` if some runs failed and the
            others are complete.
    """
    from edgefl import studies

    options = studies.StudyOptions(device, jobs)
    if isinstance(base, Mapping):
        base = given(base)
    if not isinstance(base, Scenario):
        if any(each is not None for each in (variants, reference, question)):
            raise EdgeflError(
                "a study file has its own variants, reference and question: give a scenario to vary it here"
            )
        return studies.run(studies.plan(base, seeds=seeds), out, options)
    if not variants:
        raise EdgeflError(
            'variants: name at least one, e.g. {"as it is": None, "wide": {"radio.bandwidth_hz": 2e8}}'
        )
    content = {
        "name": base.name,
        "scenario": "scenario.yaml",
        "seeds": list(seeds) or [base.seed],
        "reference": reference or next(iter(variants)),
        "variants": {name: dict(overrides or {}) for name, overrides in variants.items()},
        **({} if question is None else {"question": dict(question)}),
    }
    with TemporaryDirectory() as folder:
        file = Path(folder) / "study.yaml"
        file.write_text(write(content), encoding="utf-8")
        return studies.run(studies.plan(file, base=base.source), out, options)


def compare(
    *runs: str | Path | Sequence[str | Path],
    names: Sequence[str] = (),
    partial: bool = False,
    out: str | Path | None = None,
    **options: Any,
) -> "Comparison":
    """Compare the variants of a study, or any runs: `.table`, `.per_session`, `.detail` are data frames.

    `.figure` is a PNG file; `.out` is the folder with all files.

    The tables hold seconds and joules to a target accuracy, peaks, and paired tests over seeds; they are also written
    as comparison.csv, .md, .tex and .png.

    Args:
        runs: directories of studies or runs.
        names: replace the directories' names, in their order.
        partial: include incomplete runs.
        out: folder to write; None for the directory of the runs, or `comparison` beside several.
        options: as for `edgefl.analysis.compare`: reference, target (one or several), recurring, layout.

    Returns:
        The comparison: its tables have one row per variant, or per variant and session, or per variant and seed.

    Raises:
        EdgeflError: there is nothing to compare, or an option does not fit.
    """
    from edgefl.analysis import compare as compared
    from edgefl.analysis import load_runs

    folders = [one for given in runs for one in ([given] if isinstance(given, str | Path) else given)]
    try:
        loaded = load_runs(folders, names=names, partial=partial)
        return compared(loaded, out=out, **options)
    except ValueError as error:
        raise EdgeflError(f"not compared: {error}") from error
