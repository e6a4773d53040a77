"""The commands that work on one run: `edgefl run`, `edgefl resume`, `edgefl watch` and `edgefl record`."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from edgefl.analysis.page.words import complain
from edgefl.analysis.runs.choices import Json, Quiet
from edgefl.commands.shared import (
    AllowCode,
    Out,
    Override,
    ScenarioFile,
    SnapshotRounds,
    TorchDevice,
    console,
    refuse_two_values,
)
from edgefl.commands.told import Told
from edgefl.errors import EdgeflError

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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario and write one run directory.

    Examples:

        edgefl run quickstart

        edgefl run scenarios/quickstart.yaml

        edgefl run scenarios/quickstart.yaml --set learning.algorithm=fedavg --seed 7 --out runs/mine
    """
    from edgefl.run.api import simulate
    from edgefl.scenario.scenario import load

    refuse_two_values(set_ or (), seed)
    loaded = load(scenario, set_ or (), seed)
    told = Told("run", json=json, quiet=quiet)
    if left_out := _learner_left_out(scenario):
        if told.plain:
            complain(f"note: {left_out}")
        told.add(notes=[left_out])
    _carry_out(loaded, partial(simulate, loaded, out, device=device, progress=False), snapshot_rounds, told)


def _learner_left_out(scenario: Path) -> str:
    """Return a note if a scenario is from the directory of a run with an external learner; otherwise ''."""
    from edgefl.run_directory.reading import about_of

    try:
        learner = (about_of(scenario.parent).get("learner") or {}).get("name")
    except EdgeflError:  # the folder is no run directory, or the run has to be repeated
        return ""
    if not learner:
        return ""
    return (
        f"{scenario.parent} was trained by the learner {learner}, which is not in its scenario, so this run does not"
        f" train; with edgefl.simulate({str(scenario)!r}, learner=...) it trains"
    )


def resume(
    run: Annotated[Path, typer.Argument(help="Run directory of a killed, interrupted or failed run.")],
    snapshot_rounds: SnapshotRounds = None,
    allow_code: AllowCode = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Resume a run that was killed, interrupted or failed; its tables will equal those of an uninterrupted run.

    Completed training is not repeated, but read from the run's journal and latest snapshot.

    Examples:

        edgefl resume runs/quickstart-seed0
    """
    from edgefl.run.api import resume as resume_run
    from edgefl.run.resuming import left_behind

    begin = partial(resume_run, run, progress=False)
    _carry_out(left_behind(run), begin, snapshot_rounds, Told("resume", json=json, quiet=quiet))


def _carry_out(
    scenario: "Scenario", begin: Callable[..., Path], snapshot_rounds: int | None, told: Told
) -> None:
    """Execute a run with a progress display, then print how the run ended."""
    from edgefl.run.progress import ProgressDisplay

    notes, name = list[str](), scenario.name

    def note(text: str) -> None:
        notes.append(text)
        if told.plain:
            complain(f"note: {text}")

    with _interruptible(), ProgressDisplay(told.console, {name: scenario}) as progress:
        path = begin(
            on_round=lambda row: progress.update(name, row), on_note=note, snapshot_rounds=snapshot_rounds
        )
    if told.plain:
        _print_end(path, notes)
    else:
        _gather(path, told)


def _gather(path: Path, told: Told) -> None:
    """Print a completed run's results for a program, with one row per federation."""
    from edgefl.commands import watching
    from edgefl.commands.closing import epsilon
    from edgefl.run_directory.reading import about_of

    about = about_of(path)
    runs = [(one, one.look()) for one in watching.find(path)]
    spent = [epsilon(one.path) for one, _ in runs]
    private = any(value is not None for value in spent)
    several = len(runs) > 1
    table = [
        {
            **({"federation": one.path.name} if several else {}),
            "rounds": run.rounds,
            "simulated_s": about["simulated_s"],
            "wall_s": about["wall_s"],
            "energy_j": run.joules,
            run.score: run.accuracy,
            **({"epsilon": its} if private else {}),
        }
        for (one, run), its in zip(runs, spent, strict=True)
    ]
    told.answer(*filter(None, [about.get("stopped")]))
    told.add(notes=about.get("notes") or (), table=table)
    told.finish(path)


@contextmanager
def _interruptible() -> Iterator[None]:
    """End on Ctrl-C or SIGTERM with exit code 130 or 143, after printing how to continue the run."""
    from edgefl.run_directory.interruption import Interrupted
    from edgefl.run_directory.reading import about_of, resume_command

    try:
        yield
    except Interrupted as error:
        path = error.path
        how = f"continue with: {resume_command(path, about_of(path))}" if path else "nothing was written"
        complain(f"edgefl: interrupted; {how}")
        raise typer.Exit(error.exit_code) from error


def _print_end(path: Path, printed: Sequence[str]) -> None:
    """Print the notes of a run that have not been printed yet, and then the run's costs and scores."""
    from rich.text import Text

    from edgefl.commands.closing import closing
    from edgefl.run_directory.reading import about_of

    about = about_of(path)
    if stopped := about.get("stopped"):
        console.print(Text(f"end: {stopped}"), soft_wrap=True)
    for note in (note for note in about.get("notes") or () if note not in printed):
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    reached, go_on = closing(path)
    console.print(Text(reached), soft_wrap=True)
    console.print(Text(go_on, no_wrap=True), soft_wrap=True)  # unwrapped, so that users can copy the command


def watch(
    run: Annotated[Path, typer.Argument(help="Run directory or study folder, running or finished.")],
    once: Annotated[bool, typer.Option("--once", help="Print the current state and exit.")] = False,
    every_s: Annotated[float, typer.Option(min=0.1, help="Seconds between updates.")] = 2.0,
) -> None:
    """Watch a run or study: progress, time left, latest accuracy, joules, failures. Watching ends when the runs end.

    The command only reads files; runs on another machine can be watched through a shared folder.

    Examples:

        edgefl watch runs/quickstart

        edgefl watch runs/quickstart --once
    """
    from rich.live import Live

    from edgefl.commands import watching

    known = {each.path: each for each in watching.find(run)}
    if list(known) == [run]:  # a single run
        known[run].look()
    if once or not console.is_terminal:
        standings = [each.standing() for each in known.values()]
        console.print(watching.table(standings, watching.planned(run), console.width))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            known |= {each.path: each for each in watching.find(run) if each.path not in known}
            of, standings = watching.planned(run), [each.standing() for each in known.values()]
            live.update(watching.table(standings, of, console.width), refresh=True)
            if all(each.over for each in standings) and len(standings) >= (of or 0):
                return
            time.sleep(every_s)


def record(
    scenario: ScenarioFile,
    out: Annotated[Path, typer.Option(help="Folder to create; new or empty.")],
    duration_s: Annotated[
        float | None, typer.Option(min=1e-3, help="How long to record. Default: the scenario's duration_s.")
    ] = None,
    every_s: Annotated[
        float | None,
        typer.Option(min=1e-3, help="Seconds between samples. Default: the network's tick, which is exact."),
    ] = None,
    links_s: Annotated[
        float, typer.Option(min=1e-3, help="Seconds between measurements of all links.")
    ] = 10.0,
    payload_bits: Annotated[
        list[int] | None, typer.Option(min=1, help="Bits of a transfer to measure; may be repeated.")
    ] = None,
    tables: Annotated[Literal["csv", "parquet"], typer.Option(help="Format of the tables.")] = "csv",
    set_: Override = None,
    seed: Annotated[int | None, typer.Option(help="Replace the scenario's seed.")] = None,
    allow_code: AllowCode = False,
) -> None:
    """Record the world of a scenario without training: positions, serving cells, transfer costs.

    The folder contains tables that any framework can read, availability in FedScale's format, and a scenario.yaml
    that trains on the recorded world.

    Examples:

        edgefl record scenarios/membership_random_waypoint.yaml --duration-s 600 --out world

        edgefl run world/scenario.yaml
    """
    from rich.text import Text

    from edgefl.run import world_record
    from edgefl.scenario.scenario import load

    refuse_two_values(set_ or (), seed)
    path = world_record.record(
        load(scenario, set_ or (), seed),
        out,
        duration_s=duration_s,
        every_s=every_s,
        links_s=links_s,
        payload_bits=payload_bits or (),
        tables=tables,
    )
    console.print(Text(f"recorded world: {path}"), soft_wrap=True)
    console.print(Text(f"train with: edgefl run {path / 'scenario.yaml'}", no_wrap=True), soft_wrap=True)
