"""Measure speed and memory on this machine, against named rivals: `make bench BENCH="training --short"`.

python -m tests.tools.bench whole | radio | network | deciders | training | memory | run SCENARIO
"""

from collections.abc import Callable
from json import dumps
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from edgefl.commands.shared import AllowCode, Override, ScenarioFile, TorchDevice, console

Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
app = typer.Typer(help="Measure speed on this machine, against named rivals in the same run.")


@app.command("whole")
def bench_whole(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of a run.")] = 50,
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; figures are medians.")] = 5,
    floats: Annotated[bool, typer.Option("--floats", help="Inputs are floats instead of bytes.")] = False,
    json: Json = False,
) -> None:
    """Measure whole runs of logistic regression with the `nr` radio against PyTorch loops without radio.

    Examples:

        python -m tests.tools.bench whole --rounds 20 --repeats 3
    """
    from tests.tools.bench import report, whole

    figures = whole.run(rounds, repeats, floats=floats)
    show(figures, json, report.whole)


@app.command("radio")
def bench_radio(json: Json = False) -> None:
    """Measure slots per second on one core, with interference and without, and whole runs of the radio's presets.

    Examples:

        python -m tests.tools.bench radio --json
    """
    from tests.tools.bench import radio, report

    figures = radio.run()
    show(figures, json, report.radio)


@app.command("network")
def bench_network(
    simulated_s: Annotated[float, typer.Option(help="Simulated time, s.")] = 3600.0,
    devices: Annotated[list[int] | None, typer.Option(help="Number of devices; may be repeated.")] = None,
    json: Json = False,
) -> None:
    """Measure the wall time of moving devices in 19 cells, with handovers and transfers.

    Examples:

        python -m tests.tools.bench network --simulated-s 60 --devices 1000
    """
    from tests.tools.bench import network, report

    figures = network.run(simulated_s, tuple(devices or network.SIZES))
    show(figures, json, report.network)


@app.command("deciders")
def bench_deciders(
    candidates: Annotated[int, typer.Option(min=2, help="Devices that are present.")] = 1_000,
    taken: Annotated[int, typer.Option(min=1, help="Participants of a round.")] = 20,
    json: Json = False,
) -> None:
    """Measure each decider's CPU time to choose a round's participants, against a general optimiser.

    Examples:

        python -m tests.tools.bench deciders --candidates 10000
    """
    from tests.tools.bench import deciders, report

    figures = deciders.run(candidates, taken)
    show(figures, json, report.deciders)


@app.command("training")
def bench_training(
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; figures are medians.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the parallel variants on a CPU.")] = 2,
    device: TorchDevice = "auto",
    floor: Annotated[
        bool, typer.Option("--floor", help="Also compute the least time of a round on this CPU.")
    ] = False,
    short: Annotated[
        bool, typer.Option("--short", help="Small rounds: less than a minute on a CPU.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure a round of local training against a sequential PyTorch loop, on a CPU or a GPU.

    Examples:

        python -m tests.tools.bench training --short --floor

        python -m tests.tools.bench training --device cuda
    """
    from edgefl.learners.building import torch_device
    from tests.tools.bench import report, training

    figures = training.run(repeats, threads, torch_device(device), floor=floor, short=short)
    show(figures, json, report.training)


@app.command("run")
def bench_run(
    scenario: ScenarioFile,
    set_: Override = None,
    device: TorchDevice = "auto",
    json: Json = False,
    allow_code: AllowCode = False,
) -> None:
    """Run a scenario and split its wall time into training, evaluation, engine, radio, drawing and writing.

    Examples:

        python -m tests.tools.bench run scenarios/journal_fashion_mnist.yaml --set sessions.count=2
    """
    from edgefl.scenario.scenario import load
    from tests.tools.bench import report
    from tests.tools.bench import run as bench

    figures = bench.run(load(scenario, set_ or ()), device=device)
    show(figures, json, report.run)


@app.command("memory")
def bench_memory(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds.")] = 3,
    steps: Annotated[int, typer.Option(min=1, help="Local steps of each device and round.")] = 1,
    batch: Annotated[int, typer.Option(min=2, help="Samples per step.")] = 128,
    device: TorchDevice = "auto",
    json: Json = False,
) -> None:
    """Measure the peak memory of the journal's CIFAR setting: ResNet-18, 100 devices, random images.

    Examples:

        python -m tests.tools.bench memory --rounds 1 --batch 8
    """
    from edgefl.learners.building import torch_device
    from tests.tools.bench import memory, report

    figures = memory.run(rounds=rounds, steps=steps, batch=batch, torch_device=torch_device(device))
    show(figures, json, report.memory)


def show(figures: dict[str, Any], json: bool, as_table: Callable[[dict[str, Any]], RenderableType]) -> None:
    if json:
        print(dumps(figures, indent=2))  # print without rich, which would wrap long lines
    else:
        console.print(as_table(figures))


if __name__ == "__main__":
    app()
