"""The commands `edgefl validate` and `edgefl preview`, which describe a run before it begins."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgefl.analysis.page.words import complain
from edgefl.analysis.runs.choices import Json, Quiet
from edgefl.commands.shared import AllowCode, Override, ScenarioFile, TorchDevice, console
from edgefl.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.commands.preview_data import Preview
    from edgefl.run.forecast import Forecast
    from edgefl.scenario.scenario import Scenario

PICTURES = (".png", ".pdf", ".svg", ".webp")


def validate(
    files: Annotated[list[Path], typer.Argument(help="Scenario or study files.")],
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="Estimate each scenario's cost from a few rounds in a scratch directory."
        ),
    ] = False,
    set_: Override = None,
    device: TorchDevice = "auto",
    allow_code: AllowCode = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check scenarios and studies without running them: build devices, radio, data and model, and describe them.

    Nothing is trained, downloaded or written, except by --plan in a scratch directory. Everything that a run would
    reject at its start is rejected here. With --json, the table has a row per scenario, or per case of a study.

    Examples:

        edgefl validate scenarios/quickstart.yaml

        edgefl validate scenarios/*.yaml scenarios/studies/*.yaml

        edgefl validate scenarios/commute_clock.yaml --plan

        edgefl validate quickstart --set learning.local.lr=0.01

        edgefl validate quickstart commute_clock --json
    """
    from rich.text import Text

    from edgefl.commands.told import Told
    from edgefl.config import shipped
    from edgefl.scenario.data_loading import Loaded
    from edgefl.studies.validation import look

    failed, load, told = False, Loaded(download=False), Told("validate", json=json, quiet=quiet)
    for file in files:
        cases: list[tuple[str, Forecast]] = []
        try:
            file = shipped.find(file, "scenario")
            for line in _awaited(look(file, device, load, set_ or (), plan=plan, cases_to=cases)):
                told.console.print(Text(line), soft_wrap=True)
        except EdgeflError as error:
            complain(f"edgefl: error: {error}")  # errors appear in the order of the arguments
            told.add(table=[{"file": str(file), "case": "", "error": str(error)}])
            failed = True
            continue
        if quiet and not json:
            print(file)
        told.add(
            notes=list(dict.fromkeys(f"{file}: {note}" for _, case in cases for note in case.notes)),
            table=[{"file": str(file), "case": label, "error": None, **case.row()} for label, case in cases],
        )
    told.finish()
    if failed:
        raise typer.Exit(2)


def _awaited(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; while the next line is computed, a terminal shows a status line on stderr."""
    from edgefl.run.showing import showing

    rest = iter(lines)
    while True:
        with showing(True):
            line = next(rest, None)
        if line is None:
            return
        yield line


def preview(
    scenario: ScenarioFile,
    set_: Override = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Picture to write: PNG, PDF, SVG or WebP. Default: runs/NAME-preview.png."),
    ] = None,
    device: TorchDevice = "auto",
    allow_code: AllowCode = False,
) -> None:
    """Draw a scenario before it runs: map, tracks, handovers, population and labels; also estimate time and energy.

    A preview takes seconds. Nothing is trained or downloaded. Devices move as in the run; a round's time and energy
    are measured in a few rounds without training.

    Examples:

        edgefl preview scenarios/handover_hexagonal.yaml

        edgefl preview scenarios/quickstart.yaml --set devices.count=100 --out picture.png
    """
    from rich.text import Text

    from edgefl.config.shipped import called
    from edgefl.run.showing import showing
    from edgefl.scenario.scenario import load

    with showing(True):
        seen, target = written_preview(load(scenario, set_ or ()), out, device)
    for line in seen.lines(f"`edgefl validate {called(scenario)} --plan`"):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"picture: {target}"), soft_wrap=True)


def written_preview(scenario: "Scenario", out: Path | None, device: str) -> "tuple[Preview, Path]":
    """Preview a scenario; return the preview, and the file of the picture.

    Raises:
        EdgeflError: the run would be refused, or the picture cannot be written.
    """
    from edgefl.analysis.page.own_files import file_to_write
    from edgefl.commands.preview_data import make_preview
    from edgefl.commands.preview_picture import draw

    target = out or Path("runs", f"{scenario.name}-preview.png")
    if target.suffix not in PICTURES:
        raise EdgeflError(f"--out {target}: give a name that ends in {', '.join(PICTURES)}")
    try:
        file_to_write(target)
    except ValueError as error:
        raise EdgeflError(str(error)) from error
    seen = make_preview(scenario, device)
    try:
        if out is None:
            target.parent.mkdir(exist_ok=True)
        draw(seen, target)
    except OSError as error:
        raise EdgeflError(f"cannot write {target} ({error.strerror}); choose another --out") from error
    return seen, target
