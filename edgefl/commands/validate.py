"""`edgefl validate`."""

from pathlib import Path
from typing import Annotated

import typer

from edgefl.commands.shared import AllowCode, Override, TorchDevice, console
from edgefl.errors import EdgeflError


def validate(
    files: Annotated[list[Path], typer.Argument(help="Scenario or study files.")],
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Say what each scenario will take: two rounds are run in a scratch directory."
        ),
    ] = False,
    set_: Override = None,
    device: TorchDevice = "auto",
    allow_code: AllowCode = False,
) -> None:
    """Check scenarios and studies without running them: build devices, radio, data and model, and say what they are.

    Nothing is trained, downloaded or written, but for --plan in a scratch directory; a run that would be refused at
    its beginning is refused here.

    Examples:

        edgefl validate scenarios/quickstart.yaml

        edgefl validate scenarios/*.yaml scenarios/studies/*.yaml

        edgefl validate scenarios/commute_clock.yaml --plan

        edgefl validate quickstart --set learning.local.lr=0.01
    """
    from edgefl.config import shipped
    from edgefl.scenario.data_loading import Loaded
    from edgefl.studies.validation import check, summary

    failures, load = [], Loaded(download=False)
    for file in files:
        try:
            file = shipped.find(file, "scenario")
            print("\n  ".join([f"{file}: ok", *summary(check(file, device, load, set_ or ()))]))
            if plan:
                from edgefl.studies.cost_estimate import estimates

                for line in estimates(file, device, set_ or ()):
                    console.print(line, soft_wrap=True)
        except EdgeflError as error:
            failures.append(str(error))
    if failures:
        raise EdgeflError("\n".join(failures))
