"""Studies and comparisons from Python, as `edgefl study` and `python -m analysis compare` do them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError
from edgefl.scenario import Scenario, dump
from edgefl.yaml_source import write

if TYPE_CHECKING:
    from analysis import Comparison

Overrides = Mapping[str, Any]


def study(
    base: str | Path | Scenario,
    variants: Mapping[str, Overrides | None] | None = None,
    *,
    seeds: Sequence[int] = (),
    reference: str | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    jobs: int | None = None,
) -> Path:
    """Run every variant with every seed; then `edgefl.compare` compares them.

    In a script, call it below `if __name__ == "__main__":`, as Python asks where processes are started.

    Args:
        base: a study file; or a scenario, and then `variants` too.
        variants: name -> dotted overrides, as in a study file: {"wide": {"radio.bandwidth_hz": 2e8}}.
        seeds: each variant runs once per seed; none: those of the study file, or the scenario's own.
        reference: the variant to which others are compared; none: the first.
        out: directory of the study, new or empty; none: below runs/.
        device: as in `simulate`.
        jobs: processes at once; none: one per core.

    Returns:
        The directory of the study.

    Raises:
        EdgeflError: names what is wrong, and the remedy; or runs have failed, and the others are complete.
    """
    from edgefl import studies

    if not isinstance(base, Scenario):
        if variants is not None or reference is not None:
            raise EdgeflError(
                "a study file has its own variants and reference: give a scenario to vary it here"
            )
        return studies.run(studies.plan(base, seeds=seeds), out, device=device, jobs=jobs)
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
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / "scenario.yaml").write_text(dump(base), encoding="utf-8")
        file = Path(folder) / "study.yaml"
        file.write_text(write(content), encoding="utf-8")
        return studies.run(studies.plan(file), out, device=device, jobs=jobs)


def compare(runs: str | Path, **options: Any) -> "Comparison":
    """Compare the variants of a study: `.table`, `.per_session`, `.detail` are data frames, `.figure` a PNG.

    Seconds and joules to a target accuracy, peaks, and paired tests over seeds; also written as comparison.csv, .md,
    .tex and .png.

    Args:
        runs: the directory of a study.
        options: as `analysis.compare` takes them: out, the folder to write to; reference, a variant; target, an
            accuracy from 0 to 1 or "95%" of the reference's peak, or several; recurring, "labels" or "population".

    Returns:
        The comparison: its tables have one row per variant, or per variant and session, or per variant and seed.

    Raises:
        EdgeflError: there is nothing to compare, or an option does not fit.
    """
    import analysis

    try:
        return analysis.compare(runs, **options)
    except ValueError as error:
        raise EdgeflError(f"not compared: {error}") from error
