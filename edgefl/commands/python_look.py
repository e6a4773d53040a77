"""The functions `edgefl.preview`, `validate`, `describe` and `report`, which do the same as the commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeflError, clipped
from edgefl.run.views import Lines, Page, Picture

if TYPE_CHECKING:
    from edgefl.scenario.scenario import Scenario


def preview(
    scenario: "Scenario | str | Path | Mapping[str, Any]",
    out: str | Path | None = None,
    *,
    device: str = "auto",
) -> Picture:
    """Draw a scenario before it runs: map, tracks, handovers, population and labels; also estimate time and energy.

    A preview takes seconds. Nothing is trained or downloaded. Devices move as in the run; a round's time and energy
    are measured in a few rounds without training.

    Args:
        scenario: result of `load_scenario`, or an argument for `load_scenario`: a file's path or a dict.
        out: file of the picture, PNG, PDF, SVG or WebP, or None for runs/NAME-preview.png.
        device: name of the torch device, as in `simulate`.

    Returns:
        The picture: a path object with the preview's lines of text as `.text`. Notebooks show both.

    Raises:
        EdgeflError: the run would be refused, or the picture cannot be written.
    """
    from edgefl.commands.validate import written_preview
    from edgefl.scenario.scenario import given

    seen, target = written_preview(given(scenario), None if out is None else Path(out), device)
    return Picture.of(target, seen.lines("edgefl.validate(..., plan=True)"))


def validate(
    *scenarios: "Scenario | str | Path | Mapping[str, Any]", plan: bool = False, device: str = "auto"
) -> Lines:
    """Check scenarios and studies without running them: build devices, radio, data and model, and describe them.

    Nothing is trained, downloaded or written, except with `plan` in a scratch directory. Everything that a run would
    reject at its start is rejected here.

    Args:
        scenarios: files of scenarios or studies, or scenarios as `simulate` takes them.
        plan: whether to estimate the cost of each run from a few rounds.
        device: name of the torch device, as in `simulate`.

    Returns:
        A description of each run, and with `plan` also of the run's costs, as lines of text.

    Raises:
        EdgeflError: a file is invalid; for each invalid file, the error names the fault and the remedy.
    """
    from edgefl.config import shipped
    from edgefl.scenario.data_loading import Loaded
    from edgefl.scenario.scenario import given
    from edgefl.studies.validation import look

    failures, lines, load = list[str](), list[str](), Loaded(download=False)
    for one in scenarios:
        try:
            found = shipped.find(Path(one), "scenario") if isinstance(one, str | Path) else given(one)
            lines += look(found, device, load, plan=plan)
        except EdgeflError as error:
            failures.append(str(error))
    if failures:
        raise EdgeflError("\n".join(failures))
    return Lines("\n".join(lines))


def describe(what: str, scenario: str | Path | None = None) -> Lines:
    """Describe a component, a section, a key, or a column of a run's tables: meaning, unit, range, default, source.

    Args:
        what: name to describe, such as `algorithms/fedprox`, `radio.slot_s`, `energy_j`, `rounds.csv` or `papers`.
        scenario: the scenario file whose cells are listed, if `what` is `layout`.

    Returns:
        The description, as lines of text.

    Raises:
        EdgeflError: no component, kind, section or key has this name.
    """
    from edgefl.commands.descriptions import describe as text

    if not isinstance(what, str):
        raise EdgeflError(f"what: give a name, such as 'radio', got {clipped(repr(what))}")
    return Lines(text(what, None if scenario is None else Path(scenario)))


def report(
    runs: str | Path,
    out: str | Path | None = None,
    *,
    picture: str | Path | None = None,
    cell: int = 0,
    at: float | None = None,
    phone: bool = False,
) -> Page:
    """Write a report as one HTML file: text, tables, charts, and a replay of the devices on a time slider.

    Args:
        runs: directory of a run, or folder of a study.
        out: file of the page, .html or .htm, or None for report.html in `runs`.
        picture: an additional file that shows a run's moving network as a map and curves: a picture (.png, .pdf,
            .svg) or a film (.gif, .webp).
        cell: the cell that the picture's curves describe.
        at: hour of the simulated day that the picture shows, or None for the middle of the run.
        phone: whether to put the picture's map on top, for narrow pages.

    Returns:
        The page's path, which a notebook shows as a frame with the page.

    Raises:
        EdgeflError: no run is completed, a file's name has a wrong ending, or a file cannot be written.
    """
    from edgefl.analysis.html import write_report
    from edgefl.analysis.reports.moving import draw_moving

    page = Page(write_report(runs, out))
    if picture is not None:
        draw_moving(runs, picture, cell=cell, at_hour=at, phone=phone)
    return page
