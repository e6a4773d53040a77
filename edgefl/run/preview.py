"""A run before it begins: everything built and checked, nothing trained, nothing written; and what was found."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.run.plan import RunPlan, prepare
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario


@dataclass(frozen=True)
class Preview:
    """What is known of a run before it begins.

    sessions: None: as many as begin within duration_s. longest: None: a session ends at a time, not after rounds.
    samples: fewest, median and most training samples of a device in session 1; None: nothing is trained.
    parameters: M; None: nothing is trained. notes: what is allowed, but hardly wanted.
    """

    devices: int
    cells: int
    federations: int
    sessions: int | None
    longest: int | None
    payload_bits: int
    flops_per_sample: float
    model: str | None
    parameters: int | None
    samples: tuple[int, float, int] | None
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        cells = f"{self.cells} cells, {self.federations} with a server" if self.cells > 1 else "one cell"
        many = "as many as begin in time" if self.sessions is None else self.sessions
        of = "each until its time" if self.longest is None else f"of at most {self.longest} rounds"
        lines = [
            f"{self.devices} devices in {cells}",
            f"sessions: {many}, {of}",
        ]
        if self.parameters is not None:
            flops = f"{self.flops_per_sample:,.0f} FLOPs per sample"
            lines.append(f"model {self.model}: {self.parameters:,} parameters, {flops}")
        lines.append(f"bits per transfer: {self.payload_bits:,}")
        if self.samples is not None:
            fewest, median, most = self.samples
            lines.append(f"samples per device: {fewest} to {most}, median {median:g}")
        return lines + [f"note: {note}" for note in self.notes]


def preview(scenario: Scenario, device: str = "auto", load: Loaded | None = None) -> Preview:
    """Build and check a run as `simulate` does at its beginning, and no more.

    Args:
        device: as in `simulate`.
        load: None: data must be on this machine, nothing is downloaded.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    run = prepare(scenario, device=device, threads=1, load=load or Loaded(download=False), in_outline=True)
    first = next(iter(run.learners.values()))
    learns = scenario.learning is not None
    return Preview(
        devices=run.world.count,
        cells=run.world.scenario.layout.cells,
        federations=len(run.learners),
        sessions=scenario.sessions.count,
        longest=scenario.sessions.longest,
        payload_bits=first.payload_bits,
        flops_per_sample=first.flops_per_sample,
        model=run.model["model"]["name"],
        parameters=run.model["model"]["parameters"],
        samples=_samples(run) if learns else None,
        notes=(*run.notes, *_day_that_hardly_passes(scenario)),
    )


def _day_that_hardly_passes(scenario: Scenario) -> list[str]:
    """Say that people who live by the clock may never set out, where nothing makes the run last for hours."""
    lasts = scenario.duration_s or scenario.rounds.every_s or scenario.rounds.pause_s
    if scenario.day is None or lasts or scenario.sessions.longest is None:
        return []
    return [
        f"devices live by a day of {scenario.day.day_s:g} s, and rounds follow one another at once: the run may be"
        " over before anybody sets out; give rounds.every_s, or sessions by the hour (daily) with duration_s"
    ]


def preview_all(
    scenarios: Iterable[tuple[str, Scenario]], device: str = "auto", load: Loaded | None = None
) -> list[Preview]:
    """Build and check several runs, say those of a study.

    Args:
        scenarios: label and scenario of each; a label stands in front of its error.
        device, load: as in `preview`.

    Raises:
        EdgeflError: of the first that is wrong.
    """
    load = load or Loaded(download=False)
    previews = []
    for label, scenario in scenarios:
        try:
            previews.append(preview(scenario, device, load))
        except EdgeflError as error:
            raise EdgeflError(f"{label}: {error}") from error
    return previews


def _samples(run: RunPlan) -> tuple[int, float, int]:
    device_data = next(iter(run.learners.values())).device_data
    sizes = list(device_data.sizes(range(run.world.count)).values())
    return min(sizes), float(np.median(sizes)), max(sizes)
