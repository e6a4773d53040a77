"""The scenario: frozen, validated, complete; units stand in the key names.

`load` reads YAML, `dump` writes it back with every default filled in, so that a run directory's
`scenario.yaml` gives the same run again. Defaults are Table I of the journal paper.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    PrivateAttr,
    model_validator,
)

from edgefl.day import Day, named_days
from edgefl.engine.settings import (
    LONGEST_S,
    CellSettings,
    DeviceSettings,
    HandoverSettings,
    LayoutSettings,
    RadioSettings,
    RoundSettings,
    WorkloadSettings,
)
from edgefl.errors import EdgeflError, clipped
from edgefl.extent import Extent
from edgefl.learning.settings import LearningSettings
from edgefl.scenario_fields import Named, Section
from edgefl.yaml_source import Source, parse_value, write

LARGEST_SEED = 2**32 - 1


class Scenario(Section):
    """One run, completely described (with its seed)."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="letters, digits, . _ -")
    seed: int = Field(100, ge=0, le=LARGEST_SEED, description="the run is a function of scenario and seed")
    duration_s: float | None = Field(
        None,
        ge=1e-3,
        le=LONGEST_S,
        description="the run ends at this simulated time, if its sessions have not ended before: no round begins"
        " then or later, one under way ends; none: after the last session, s",
    )
    cell: CellSettings = CellSettings()
    layout: LayoutSettings = LayoutSettings()
    handover: HandoverSettings = HandoverSettings()
    devices: DeviceSettings
    radio: RadioSettings = RadioSettings()
    sessions: Annotated[Any, Named("sessions")] = Field(description="when a session ends")
    rounds: RoundSettings = RoundSettings()
    learning: LearningSettings | None = None
    workload: WorkloadSettings | None = None
    _source: Source | None = PrivateAttr(None)

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Make errors raised inside name the file and line of the key they are about."""
        try:
            yield
        except EdgeflError as error:
            if not error.place:
                raise
            located = f"{'.'.join(error.place)}: {error}"
            if self._source:
                located = str(self._source.error(error.place, str(error)))
            raise EdgeflError(located) from error

    @model_validator(mode="after")
    def _one_task(self) -> Self:
        if (self.learning is None) == (self.workload is None):
            raise ValueError("give either learning (train models) or workload (radio and compute only)")
        return self

    @model_validator(mode="after")
    def _an_end(self) -> Self:
        if self.sessions.count is None and self.duration_s is None:
            raise ValueError(
                "the run has no end: give sessions.count, or duration_s at the top level, or both"
            )
        return self

    @model_validator(mode="after")
    def _one_clock(self) -> Self:
        days = {where: day for where, day in named_days(self.sessions, self.devices.mobility).items() if day}
        if len(set(days.values())) > 1:
            told = ", ".join(f"{where} has {day}" for where, day in days.items())
            raise ValueError(f"two clocks in one run: {told}; give both the same begin_hour and day_s")
        return self

    @property
    def day(self) -> Day | None:
        """The day by which sessions begin, or devices move; None: there is none."""
        return next(filter(None, named_days(self.sessions, self.devices.mobility).values()), None)

    @model_validator(mode="after")
    def _places_for_handover(self) -> Self:
        if self.layout.rings and self.radio.shadowing != "spatial":
            raise ValueError(
                "handover measures path loss and shadowing of a place: several cells (layout.rings) need"
                " radio.shadowing: spatial"
            )
        return self

    @property
    def extent(self) -> Extent:
        """How far this scenario's world reaches, and how high its antennas stand."""
        return Extent(self.cell, self.layout, self.radio, self.devices.mobility)

    @model_validator(mode="after")
    def _path_loss_holds(self) -> Self:
        self.extent.check()
        return self

    @model_validator(mode="after")
    def _neighbours_to_interfere(self) -> Self:
        if self.radio.neighbour_load and not self.layout.rings:
            raise ValueError("radio.neighbour_load needs neighbours: set layout.rings to 1 or 2")
        return self

    @model_validator(mode="after")
    def _someone_takes_part(self) -> Self:
        wanted = getattr(self.rounds.selector, "count", None)
        count, populations = self.devices.count, self.devices.populations
        if wanted and count and wanted > -(-count // populations):
            of = f"devices.count {count}" + (f" / {populations} populations" if populations > 1 else "")
            raise ValueError(
                f"rounds.selector.count {wanted} exceeds {of}: a round could never have its participants"
            )
        return self


def load(path: str | Path, overrides: Sequence[str] = (), seed: int | None = None) -> Scenario:
    """Load the scenario of a YAML file.

    Args:
        path: the file.
        overrides: `dotted.key=value` strings, applied in order.
        seed: replaces the file's seed.

    Raises:
        EdgeflError: names file, line, key and remedy for everything that is wrong.
    """
    source = Source(Path(path))
    for text in overrides:
        key, equals, value = text.partition("=")
        origin = f"--set {clipped(text)}"
        if not equals:
            raise EdgeflError(f"{origin}: write dotted.key=value, e.g. --set learning.lr=0.05")
        source.override(key.strip(), parse_value(value, origin), origin)
    if seed is not None:
        source.override("seed", seed, f"--seed {seed}")
    return from_source(source)


def from_source(source: Source) -> Scenario:
    """Validate the scenario of a document that has been read, perhaps with overrides."""
    scenario = source.validate(Scenario)
    scenario._source = source  # not a key: it only names places in later errors
    return scenario


def dump(scenario: Scenario) -> str:
    """Write the complete scenario as YAML, defaults filled in."""
    return write(scenario.model_dump(mode="json", exclude_none=True))
