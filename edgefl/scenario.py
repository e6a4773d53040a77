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

from edgefl.areas import Area
from edgefl.engine.layout import LayoutSettings
from edgefl.engine.settings import (
    CellSettings,
    DeviceSettings,
    HandoverSettings,
    RadioSettings,
    RoundSettings,
    WorkloadSettings,
)
from edgefl.errors import EdgeflError, clipped, quoted
from edgefl.extent import Extent
from edgefl.learning.settings import LearningSettings
from edgefl.registry import did_you_mean
from edgefl.scenario_fields import Named, Section
from edgefl.scenario_numbers import check_numbers
from edgefl.yaml_source import Source, parse_value, write

LARGEST_SEED = 2**32 - 1
Longitude = Annotated[float, Field(ge=-180, le=180)]
Latitude = Annotated[float, Field(ge=-84, le=84)]
AreaName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]


class Scenario(Section):
    """One run, completely described (with its seed)."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="letters, digits, . _ -")
    seed: int = Field(100, ge=0, le=LARGEST_SEED, description="the run is a function of scenario and seed")
    cell: CellSettings = CellSettings()
    layout: LayoutSettings = LayoutSettings()
    origin_lon_lat: tuple[Longitude, Latitude] | None = Field(
        None, description="[longitude, latitude] of [0, 0] m, degrees: for areas and traces in degrees"
    )
    areas: dict[AreaName, Area] = Field(
        {}, description="areas by name: {disc | rectangle | polygon | geojson | sumo_net: ...}"
    )
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
            raise EdgeflError(
                "give either learning (train models) or workload (radio and compute only)",
                ("workload" if self.workload else "learning",),
            )
        return self

    @model_validator(mode="after")
    def _places_for_handover(self) -> Self:
        if self.layout.several and self.radio.shadowing != "spatial":
            raise EdgeflError(
                "handover measures path loss and shadowing of a place: several cells (layout.rings, sites or"
                " sectors) need radio.shadowing: spatial",
                ("radio", "shadowing"),
            )
        return self

    @property
    def extent(self) -> Extent:
        """How far this scenario's world reaches, and how high its antennas stand."""
        return Extent(self.cell, self.layout, self.radio, self.devices.mobility)

    @model_validator(mode="after")
    def _areas_are_there(self) -> Self:
        for place, name in self.devices.mobility.area_names():
            if name not in self.areas:
                known = did_you_mean(name, list(self.areas)) if self.areas else "; areas: names them"
                raise EdgeflError(f"no area {quoted(name)}{known}", ("devices", "mobility", *place))
        return self

    @model_validator(mode="after")
    def _path_loss_holds(self) -> Self:
        self.extent.check()
        return self

    @model_validator(mode="after")
    def _neighbours_to_interfere(self) -> Self:
        if self.radio.neighbour_load and self.layout.cells == 1:
            raise EdgeflError(
                "radio.neighbour_load needs neighbours: set layout.rings to 1 or 2, or give sites",
                ("radio", "neighbour_load"),
            )
        return self

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        if self.devices.count is not None:
            check_numbers(self, self.devices.count)
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
