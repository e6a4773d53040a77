"""The `edgefl` command line. Bad input ends with one clear message and exit code 2."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType

import edgefl
from edgefl.errors import EdgeflError

app = typer.Typer(
    help="Wireless edge network co-simulator for federated learning.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # an error in edgefl itself should show as Python shows it
    context_settings={"help_option_names": ["-h", "--help"]},
)
# what is printed is text as it stands: a folder may be called [red] or :car:
console = Console(highlight=False, markup=False, emoji=False)

Out = Annotated[Path | None, typer.Option(help="Directory to write; new or empty. Default: below runs/.")]
Override = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override one dotted key; may be repeated."),
]
TorchDevice = Annotated[str, typer.Option(help="Where models are trained: auto, cpu or cuda.")]
SnapshotRounds = Annotated[
    int | None,
    typer.Option(min=1, help="Rounds between snapshots of the models. Default: every 10 minutes."),
]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `edgefl` command; None: with the arguments of this process."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be text that it can write
    try:
        app(arguments)
    except EdgeflError as error:
        # plain print: rich would wrap long lines and take brackets for markup
        print(f"edgefl: error: {error}", file=sys.stderr)
        sys.exit(2)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM end a run with one line that says how to go on; exit code 130 or 143."""
    from edgefl.run_directory.interruption import Interrupted

    try:
        yield
    except Interrupted as error:
        how = f"go on with: edgefl resume {error.path}" if error.path else "nothing has been written"
        print(f"edgefl: interrupted; {how}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


class _Notes:
    """Prints notes as they come, and knows which have been told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, note: str) -> None:
        self.told.append(note)
        print(f"edgefl: note: {note}", file=sys.stderr)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"edgefl {edgefl.__version__}")
        raise typer.Exit


@app.command()
def run(
    scenario: Annotated[Path, typer.Argument(help="Scenario YAML.")],
    set_: Override = None,
    seed: Annotated[int | None, typer.Option(help="Replace the scenario's seed.")] = None,
    out: Out = None,
    device: TorchDevice = "auto",
    snapshot_rounds: SnapshotRounds = None,
) -> None:
    """Run a scenario into one run directory.

    Examples:

        edgefl run scenarios/quickstart.yaml

        edgefl run scenarios/quickstart.yaml --set learning.algorithm=fedavg --seed 7 --out runs/mine
    """
    from edgefl.progress import RunProgress
    from edgefl.run_directory.snapshot import Every
    from edgefl.scenario import load
    from edgefl.simulation import simulate

    loaded, told = load(scenario, set_ or (), seed), _Notes()
    with _interruptible(), RunProgress(console, {loaded.name: loaded}) as progress:
        path = simulate(
            loaded,
            out,
            device=device,
            on_round=lambda row: progress.update(loaded.name, row),
            on_note=told,
            every=Every(rounds=snapshot_rounds),
        )
    _print_end(path, told.told)


def _print_end(path: Path, told: Sequence[str]) -> None:
    """Say where a run is, and what it says of itself and has not told before."""
    from rich.text import Text

    from edgefl.run_directory import status

    console.print(Text(f"run directory: {path}"), soft_wrap=True)
    for note in (note for note in status.read(path)["notes"] if note not in told):
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(help="Run directory that was left: killed, interrupted or failed.")],
    snapshot_rounds: SnapshotRounds = None,
) -> None:
    """Resume a run that was killed, interrupted or failed; its tables become those of an undisturbed run.

    What the run had trained is read from its journal and its latest snapshot, not trained again.

    Examples:

        edgefl resume runs/quickstart-seed0
    """
    from edgefl import resuming
    from edgefl.progress import RunProgress
    from edgefl.run_directory.snapshot import Every

    loaded, told = resuming.left_behind(run), _Notes()
    with _interruptible(), RunProgress(console, {loaded.name: loaded}) as progress:
        path = resuming.resume(
            run,
            on_round=lambda row: progress.update(loaded.name, row),
            on_note=told,
            every=Every(rounds=snapshot_rounds),
        )
    _print_end(path, told.told)


@app.command()
def study(
    study: Annotated[Path, typer.Argument(help="Study YAML: base scenario, variants, seeds.")],
    out: Out = None,
    device: TorchDevice = "auto",
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at once. Default: one per core.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Only this seed; may be repeated.")] = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End with the first run that fails, compare nothing.")
    ] = False,
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


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(help="Scenario or study files.")],
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Say what each scenario will take: two rounds are run in a scratch directory."
        ),
    ] = False,
    device: TorchDevice = "auto",
) -> None:
    """Check scenarios and studies without running them: build devices, radio, data and model, and say what they are.

    Nothing is trained, downloaded or written, but for --plan in a scratch directory; a run that would be refused at
    its beginning is refused here.

    Examples:

        edgefl validate scenarios/quickstart.yaml

        edgefl validate scenarios/*.yaml scenarios/studies/*.yaml

        edgefl validate scenarios/commute_clock.yaml --plan
    """
    from edgefl.preview import Loaded
    from edgefl.validation import check, summary

    failures, load = [], Loaded(download=False)
    for file in files:
        try:
            found = check(file, device, load)
            print("\n  ".join([f"{file}: ok", *summary(found)]))
            if plan:
                _print_forecasts(file, device)
        except EdgeflError as error:
            failures.append(str(error))
    if failures:
        raise EdgeflError("\n".join(failures))


def _print_forecasts(file: Path, device: str) -> None:
    """Print what the run of a scenario will take, or those of a study, seed by seed."""
    from edgefl.forecast import forecasts

    for line in forecasts(file, device):
        console.print(line, soft_wrap=True)


@app.command("list")
def list_(kind: Annotated[str | None, typer.Argument(help="A kind; none: list the kinds.")] = None) -> None:
    """List the components of a kind, one a line.

    Examples:

        edgefl list

        edgefl list algorithms
    """
    from edgefl import registry

    print("\n".join(registry.KINDS if kind is None else registry.names(kind)))


@app.command()
def describe(
    component: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="e.g. algorithms/fedprox, or a section: radio")
    ],
    scenario: Annotated[Path | None, typer.Argument(help="With layout: list the cells of this file.")] = None,
) -> None:
    """Describe a component or a section of a scenario: its parameters with units, ranges, defaults, its source.

    Examples:

        edgefl describe algorithms/fedprox

        edgefl describe models/logistic

        edgefl describe layout scenarios/handover_hexagonal.yaml
    """
    from edgefl.describe import describe as text

    print(text(component, scenario))


bench_app = typer.Typer(help="Measure speed on this machine, against named rivals in the same run.")
app.add_typer(bench_app, name="bench")
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]


def _show(figures: dict[str, Any], json: bool, as_table: Callable[[dict[str, Any]], RenderableType]) -> None:
    if json:
        print(dumps(figures, indent=2))  # not through rich, which would wrap long lines
    else:
        console.print(as_table(figures))


@bench_app.command("radio")
def bench_radio(json: Json = False) -> None:
    """Measure fading slots per second on one core, and renewal against slot by slot.

    Examples:

        edgefl bench radio --json
    """
    from edgefl.bench import radio, report

    figures = radio.run()
    _show(figures, json, report.radio)


@bench_app.command("network")
def bench_network(
    simulated_s: Annotated[float, typer.Option(help="Simulated time, s.")] = 3600.0,
    devices: Annotated[list[int] | None, typer.Option(help="Number of devices; may be repeated.")] = None,
    json: Json = False,
) -> None:
    """Measure the wall time of moving devices in 19 cells, with handovers and transfers.

    Examples:

        edgefl bench network --simulated-s 60 --devices 1000
    """
    from edgefl.bench import network, report

    figures = network.run(simulated_s, tuple(devices or network.SIZES))
    _show(figures, json, report.network)


@bench_app.command("training")
def bench_training(
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; figures are medians.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the parallel variants on a CPU.")] = 2,
    device: TorchDevice = "auto",
    json: Json = False,
) -> None:
    """Measure a round of local training against a sequential PyTorch loop, on a CPU or a GPU.

    Examples:

        edgefl bench training --repeats 3

        edgefl bench training --device cuda
    """
    from edgefl.bench import report, training
    from edgefl.simulation import torch_device

    figures = training.run(repeats, threads, torch_device(device))
    _show(figures, json, report.training)


@bench_app.command("run")
def bench_run(
    scenario: Annotated[Path, typer.Argument(help="Scenario YAML.")],
    set_: Override = None,
    device: TorchDevice = "auto",
    json: Json = False,
) -> None:
    """Run a scenario and say where its wall time goes: training, evaluation, engine, radio, drawing, writing.

    Examples:

        edgefl bench run scenarios/journal_fashion_mnist.yaml --set sessions.count=2
    """
    from edgefl.bench import report
    from edgefl.bench import run as bench
    from edgefl.scenario import load

    figures = bench.run(load(scenario, set_ or ()), device=device)
    _show(figures, json, report.run)


@bench_app.command("memory")
def bench_memory(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds.")] = 3,
    steps: Annotated[int, typer.Option(min=1, help="Local steps of each device and round.")] = 1,
    batch: Annotated[int, typer.Option(min=2, help="Samples per step.")] = 128,
    device: TorchDevice = "auto",
    json: Json = False,
) -> None:
    """Measure the peak memory of the journal's CIFAR setting: ResNet-18, 100 devices, random images.

    Examples:

        edgefl bench memory --rounds 1 --batch 8
    """
    from edgefl.bench import memory, report
    from edgefl.simulation import torch_device

    figures = memory.run(rounds=rounds, steps=steps, batch=batch, torch_device=torch_device(device))
    _show(figures, json, report.memory)
