"""`edgefl list` and `edgefl describe`."""

from pathlib import Path
from typing import Annotated

import typer


def list_(kind: Annotated[str | None, typer.Argument(help="A kind; none: list the kinds.")] = None) -> None:
    """List the components of a kind, one a line.

    Examples:

        edgefl list

        edgefl list algorithms
    """
    from edgefl import registry

    print("\n".join(registry.KINDS if kind is None else registry.names(kind)))


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
