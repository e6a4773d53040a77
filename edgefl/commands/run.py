"""`edgefl run` and `edgefl resume`."""

from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.shared import (
    AllowCode,
    Notes,
    Out,
    Override,
    ScenarioFile,
    SnapshotRounds,
    TorchDevice,
    console,
    interruptible,
    print_end,
)


def run(
    scenario: ScenarioFile,
    set_: Override = None,
    seed: Annotated[int | None, typer.Option(help="Replace the scenario's seed.")] = None,
    out: Out = None,
    device: TorchDevice = "auto",
    snapshot_rounds: SnapshotRounds = None,
    allow_code: AllowCode = False,
) -> None:
    """Run a scenario into one run directory.

    Examples:

        edgefl run quickstart

        edgefl run scenarios/quickstart.yaml

        edgefl run scenarios/quickstart.yaml --set learning.algorithm=fedavg --seed 7 --out runs/mine
    """
    from edgefl.progress import RunProgress
    from edgefl.run_directory.snapshot import Every
    from edgefl.scenario import load
    from edgefl.simulation import simulate

    loaded, told = load(scenario, set_ or (), seed), Notes()
    with interruptible(), RunProgress(console, {loaded.name: loaded}) as progress:
        path = simulate(
            loaded,
            out,
            device=device,
            on_round=lambda row: progress.update(loaded.name, row),
            on_note=told,
            every=Every(rounds=snapshot_rounds),
        )
    print_end(path, told.told)


def resume(
    run: Annotated[Path, typer.Argument(help="Run directory that was left: killed, interrupted or failed.")],
    snapshot_rounds: SnapshotRounds = None,
    allow_code: AllowCode = False,
) -> None:
    """Resume a run that was killed, interrupted or failed; its tables become those of an undisturbed run.

    What the run had trained is read from its journal and its latest snapshot, not trained again.

    Examples:

        edgefl resume runs/quickstart-seed0
    """
    from edgefl import resuming
    from edgefl.progress import RunProgress
    from edgefl.run_directory.snapshot import Every

    loaded, told = resuming.left_behind(run), Notes()
    with interruptible(), RunProgress(console, {loaded.name: loaded}) as progress:
        path = resuming.resume(
            run,
            on_round=lambda row: progress.update(loaded.name, row),
            on_note=told,
            every=Every(rounds=snapshot_rounds),
        )
    print_end(path, told.told)
