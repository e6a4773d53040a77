"""`edgefl record`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from edgefl.commands.shared import AllowCode, Override, console


def record(
    scenario: Annotated[Path, typer.Argument(help="Scenario YAML.")],
    out: Annotated[Path, typer.Option(help="Folder to write; new or empty.")],
    duration_s: Annotated[
        float | None, typer.Option(min=1e-3, help="How long to record. Default: the scenario's duration_s.")
    ] = None,
    every_s: Annotated[
        float | None,
        typer.Option(min=1e-3, help="Between two samples. Default: a tick of the network, which is exact."),
    ] = None,
    links_s: Annotated[float, typer.Option(min=1e-3, help="Between two looks at all links.")] = 10.0,
    payload_bits: Annotated[
        list[int] | None, typer.Option(min=1, help="Of a transfer that is timed; may be repeated.")
    ] = None,
    tables: Annotated[Literal["csv", "parquet"], typer.Option(help="Form of the tables.")] = "csv",
    set_: Override = None,
    seed: Annotated[int | None, typer.Option(help="Replace the scenario's seed.")] = None,
    allow_code: AllowCode = False,
) -> None:
    """Record the world of a scenario, without training: where devices are, which cell serves them, costs.

    Tables that any framework can read, availability in FedScale's form, and a scenario.yaml that trains on the
    recorded world.

    Examples:

        edgefl record scenarios/membership_random_waypoint.yaml --duration-s 600 --out world

        edgefl run world/scenario.yaml
    """
    from rich.text import Text

    from edgefl.run import world_record
    from edgefl.scenario.scenario import load

    how = world_record.Recording(every_s, links_s, tuple(payload_bits or ()), duration_s, tables)
    path = world_record.record(load(scenario, set_ or (), seed), out, how)
    console.print(Text(f"recorded world: {path}"), soft_wrap=True)
    console.print(Text(f"train on it: edgefl run {path / 'scenario.yaml'}"), soft_wrap=True)
