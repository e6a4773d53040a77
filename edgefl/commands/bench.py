"""`edgefl bench`: speed on this machine."""

from typing import Annotated

import typer

from edgefl.commands.shared import AllowCode, Json, Override, ScenarioFile, TorchDevice, show

app = typer.Typer(help="Measure speed on this machine, against named rivals in the same run.")


@app.command("radio")
def bench_radio(json: Json = False) -> None:
    """Measure slots per second on one core, with interference and without, and whole runs of the radio's presets.

    Examples:

        edgefl bench radio --json
    """
    from edgefl.bench import radio, report

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

        edgefl bench network --simulated-s 60 --devices 1000
    """
    from edgefl.bench import network, report

    figures = network.run(simulated_s, tuple(devices or network.SIZES))
    show(figures, json, report.network)


@app.command("deciders")
def bench_deciders(
    candidates: Annotated[int, typer.Option(min=2, help="Devices that are present.")] = 1_000,
    taken: Annotated[int, typer.Option(min=1, help="Participants of a round.")] = 20,
    json: Json = False,
) -> None:
    """Measure the CPU time in which each decider chooses a round's participants, and beside a general optimiser.

    Examples:

        edgefl bench deciders --candidates 10000
    """
    from edgefl.bench import deciders, report

    figures = deciders.run(candidates, taken)
    show(figures, json, report.deciders)


@app.command("training")
def bench_training(
    repeats: Annotated[int, typer.Option(min=1, help="Interleaved repeats; figures are medians.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the parallel variants on a CPU.")] = 2,
    device: TorchDevice = "auto",
    floor: Annotated[
        bool, typer.Option("--floor", help="Also the least time that a round takes on this CPU.")
    ] = False,
    short: Annotated[
        bool, typer.Option("--short", help="Small rounds: less than a minute on a CPU.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure a round of local training against a sequential PyTorch loop, on a CPU or a GPU.

    Examples:

        edgefl bench training --short --floor

        edgefl bench training --device cuda
    """
    from edgefl.bench import report, training
    from edgefl.learners.building import torch_device

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
    """Run a scenario and say where its wall time goes: training, evaluation, engine, radio, drawing, writing.

    Examples:

        edgefl bench run scenarios/journal_fashion_mnist.yaml --set sessions.count=2
    """
    from edgefl.bench import report
    from edgefl.bench import run as bench
    from edgefl.scenario.scenario import load

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

        edgefl bench memory --rounds 1 --batch 8
    """
    from edgefl.bench import memory, report
    from edgefl.learners.building import torch_device

    figures = memory.run(rounds=rounds, steps=steps, batch=batch, torch_device=torch_device(device))
    show(figures, json, report.memory)
