"""`edgefl study`."""

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.shared import AllowCode, Out, TorchDevice, console
from edgefl.errors import EdgeflError


def study(
    study: Annotated[Path, typer.Argument(help="Study YAML: base scenario, variants, seeds.")],
    out: Out = None,
    device: TorchDevice = "auto",
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once. Default: one per core.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only this seed; may be repeated.")] = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End with the first run that fails, compare nothing.")
    ] = False,
    allow_code: AllowCode = False,
) -> None:
    """Run every variant and seed of a study, then print the comparison.

    A run that fails is reported at once and at the end; the others go on, and what they found is compared.
    The exit code then is 2.

    Examples:

        edgefl study scenarios/studies/quickstart.yaml

        edgefl study scenarios/studies/quickstart.yaml --out runs/again --jobs 1

        edgefl study scenarios/studies/journal_table_x_mnist.yaml --seed 100 --fail-fast
    """
    from edgefl import study as studies
    from edgefl.progress import RunProgress
    from edgefl.run_directory.interruption import Interrupted

    plan = studies.plan(study, seeds=seed or ())
    incomplete = None
    try:
        with RunProgress(console, {run.label: run.scenario for run in plan.runs}) as progress:

            def failed(failure: studies.Failed) -> None:
                progress.failed(failure.label)
                print(failure.trace, end="", file=sys.stderr)
                if not fail_fast:
                    print(f"edgefl: failed: {failure}", file=sys.stderr)

            path = studies.run(
                plan,
                out,
                device=device,
                jobs=jobs,
                progress=progress.update,
                failed=failed,
                fail_fast=fail_fast,
            )
    except Interrupted as error:
        print(
            "edgefl: interrupted; each run that was begun goes on with: edgefl resume RUN_DIR",
            file=sys.stderr,
        )
        raise typer.Exit(error.exit_code) from error
    except studies.IncompleteStudy as error:
        incomplete, path = error, error.path
    if incomplete is None:
        _print_study(path, grid=bool(plan.runs[0].member.setting))
        return
    if not fail_fast and len(incomplete.failures) < len(plan.runs):
        try:
            _print_study(path, grid=bool(plan.runs[0].member.setting))
        except EdgeflError as error:
            print(f"edgefl: {error}", file=sys.stderr)
    raise incomplete


def _print_study(path: Path, *, grid: bool) -> None:
    """Compare the runs of a study that are complete."""
    from analysis import compare, compare_settings
    from analysis.report import print_comparison, print_settings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # runs left out are among the comparison's notes
            if grid:
                print_settings(compare_settings(path), console)
            else:
                print_comparison(compare(path), console)
    except ValueError as error:
        raise EdgeflError(f"not compared: {error}") from error
