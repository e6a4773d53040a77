"""`edgefl run` and `edgefl resume`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgefl.commands.shared import (
    Address,
    AllowCode,
    Notes,
    Out,
    Override,
    ScenarioFile,
    SnapshotRounds,
    TorchDevice,
    console,
    interruptible,
    only_for_ray,
    print_end,
)
from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.learning.local.chunk_trainers import ChunkTrainers
    from edgefl.scenario.scenario import Scenario

Executor = Annotated[
    str,
    typer.Option(
        help="What trains the devices: local (threads of this process) or ray (cores of a cluster)."
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="With ray: cores that train at once. Default: all of the cluster.")
]


def run(
    scenario: ScenarioFile,
    set_: Override = None,
    seed: Annotated[int | None, typer.Option(help="Replace the scenario's seed.")] = None,
    out: Out = None,
    device: TorchDevice = "auto",
    snapshot_rounds: SnapshotRounds = None,
    executor: Executor = "local",
    address: Address = None,
    workers: Workers = None,
    allow_code: AllowCode = False,
) -> None:
    """Run a scenario into one run directory.

    Examples:

        edgefl run quickstart

        edgefl run scenarios/quickstart.yaml

        edgefl run scenarios/quickstart.yaml --set learning.algorithm=fedavg --seed 7 --out runs/mine

        edgefl run convolutions --executor ray --address auto
    """
    from edgefl.run.simulation import simulate
    from edgefl.scenario.scenario import load

    loaded = load(scenario, set_ or (), seed)
    _carry_out(
        loaded, partial(simulate, loaded, out, device=device), snapshot_rounds, executor, address, workers
    )


def resume(
    run: Annotated[Path, typer.Argument(help="Run directory that was left: killed, interrupted or failed.")],
    snapshot_rounds: SnapshotRounds = None,
    executor: Executor = "local",
    address: Address = None,
    workers: Workers = None,
    allow_code: AllowCode = False,
) -> None:
    """Resume a run that was killed, interrupted or failed; its tables become those of an undisturbed run.

    What the run had trained is read from its journal and its latest snapshot, not trained again.

    Examples:

        edgefl resume runs/quickstart-seed0
    """
    from edgefl.run import resuming

    left = resuming.left_behind(run)
    _carry_out(left, partial(resuming.resume, run), snapshot_rounds, executor, address, workers)


def _carry_out(
    scenario: "Scenario",
    begin: Callable[..., Path],
    snapshot_rounds: int | None,
    executor: str,
    address: str | None,
    workers: int | None,
) -> None:
    """Run with a display of the progress, then print where the run is."""
    from edgefl.run.progress import ProgressDisplay
    from edgefl.run_directory.snapshot import Every

    notes, name = Notes(), scenario.name
    with (
        interruptible(),
        _trainers(executor, address, workers) as trainers,
        ProgressDisplay(console, {name: scenario}) as progress,
    ):
        path = begin(
            trainers=trainers,
            on_round=lambda row: progress.update(name, row),
            on_note=notes,
            every=Every(rounds=snapshot_rounds),
        )
    print_end(path, notes.printed)


@contextmanager
def _trainers(executor: str, address: str | None, workers: int | None) -> "Iterator[ChunkTrainers | None]":
    """Give the trainers of a cluster; None: this process trains."""
    if executor not in ("local", "ray"):
        raise EdgeflError(f"--executor {executor}: choose local or ray")
    if executor == "local":
        only_for_ray(address=address, workers=workers)
        yield None
        return
    from edgefl.run.training_on_ray import on_ray

    with on_ray(address or "auto", workers) as trainers:
        yield trainers
        if trainers.lost:
            console.print(f"note: {trainers.lost} workers were lost; their devices were trained elsewhere")
