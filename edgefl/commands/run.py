"""`edgefl run` and `edgefl resume`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from edgefl.scenario.scenario import Scenario


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
    from edgefl.run.simulation import simulate
    from edgefl.scenario.scenario import load

    loaded = load(scenario, set_ or (), seed)
    _carry_out(loaded, partial(simulate, loaded, out, device=device), snapshot_rounds)


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
    from edgefl.run import resuming

    left = resuming.left_behind(run)
    _carry_out(left, partial(resuming.resume, run), snapshot_rounds)


def _carry_out(scenario: "Scenario", begin: Callable[..., Path], snapshot_rounds: int | None) -> None:
    """Run with a display of the progress, then print where the run is."""
    from edgefl.run.progress import ProgressDisplay
    from edgefl.run_directory.snapshot import Every

    notes, name = Notes(), scenario.name
    with interruptible(), ProgressDisplay(console, {name: scenario}) as progress:
        path = begin(
            on_round=lambda row: progress.update(name, row),
            on_note=notes,
            every=Every(rounds=snapshot_rounds),
        )
    print_end(path, notes.printed)
