"""Settings of the layout: positions of base stations, their sectors, and the cells that have a federation."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, GetJsonSchemaHandler, ValidationError, field_validator, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from edgefl.channel.layout import hexagonal_sites, site_count
from edgefl.channel.units import FloatArray
from edgefl.config.scenario_fields import Section
from edgefl.places.masts import SitesFile

MOST_SITES = 500
MOST_CELLS = 3 * MOST_SITES
LARGEST_M = 50_000  # largest coordinate of a site
Metres = Annotated[float, Field(ge=-LARGEST_M, le=LARGEST_M)]
Degrees = Annotated[float, Field(ge=-360, le=360)]
CellNumber = Annotated[int, Field(ge=0, lt=MOST_CELLS)]


class _OrFile:
    """Marker of a field that may also name a file of masts, which is read before the field is validated."""

    section = SitesFile

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [handler(schema), handler(SitesFile.__pydantic_core_schema__)]}


class LayoutSettings(Section):
    """Positions and sectors of base stations: one at [0, 0], hexagonal rings around it, or arbitrary sites.

    With rings 0, 1 or 2 there are 1, 7 or 19 sites, isd_m apart. Sites are numbered from site 0 at [0, 0] ring by
    ring, each counter-clockwise from the x axis, so site 1 is at [isd_m, 0]. The world is the disc of radius (rings +
    1/2) isd_m and wraps around, so that each site has six neighbours. With `sites`, the world is a disc around [0, 0]
    with the radius radius_m (times devices.mobility.area_factor) and no wraparound; devices beyond it are absent.

    A file of masts contains the sites and, in a column of azimuths, the bearings of each site's panels.

    A site is a single omnidirectional cell with a gain of antenna_gain_dbi, or it has three panels 120 degrees apart
    (3GPP TR 38.901, Table 7.3-1: 8 dBi ahead, 65 degrees wide, at most 30 dB less), or panels of this kind at the
    bearings that azimuth_deg lists. Each panel is a cell with its own federation. Cells are numbered site by site:
    with sectors, cell 3 i + k is panel k of site i. The panels of a site share its shadowing and line of sight; fast
    fading is independent for each cell. Beams add radio.budget.array_gain_db. Left out: device antennas that are not
    isotropic.
    """

    rings: int = Field(0, ge=0, le=2, description="rings of cells around the central cell")
    isd_m: float = Field(200.0, ge=20, le=5000, description="inter-site distance of the hexagonal layout")
    sites: Annotated[tuple[tuple[Metres, Metres], ...], _OrFile()] | None = Field(
        None,
        description="[x, y] of each site in m, or a file of masts, {path, ...}, instead of rings; null: a"
        " hexagonal layout",
    )
    radius_m: float | None = Field(
        None,
        gt=0,
        le=50_000,
        description="radius of the world around sites; if left out, cell.radius_m beyond the farthest site",
    )
    sectors: Literal[1, 3] = Field(1, description="cells per site. 1: omnidirectional; 3: one per panel")
    antenna_gain_dbi: float = Field(
        0.0,
        ge=-10,
        le=30,
        description="omnidirectional gain of a site without sectors, for sending and receiving; sectors have the gain"
        " of their panels",
    )
    azimuth_deg: Degrees | tuple[Annotated[tuple[Degrees, ...], Field(min_length=1)], ...] = Field(
        30.0,
        description="bearing of each site's first panel, counter-clockwise from x; all panels are 120 degrees apart."
        " Or, without sectors, the bearings of each site's panels: [[30, 150, 270], [0, 180], ...]",
    )
    downtilt_deg: float = Field(
        0.0, ge=-90, le=90, description="mechanical tilt of the panels below the horizon"
    )
    federations: Literal["all", "centre"] | tuple[CellNumber, ...] = Field(
        "all", description="cells with a server: all, only those of site 0 (centre), or a list of cells"
    )

    @field_validator("sites", mode="before")
    @classmethod
    def _valid_file(cls, sites: Any) -> Any:
        if not isinstance(sites, Mapping):
            return sites
        try:
            SitesFile.model_validate(sites)
        except ValidationError as error:
            context = {"errors": error.errors(), "model": SitesFile, "unnamed": None}
            raise PydanticCustomError("component", "invalid parameters", context) from error
        raise ValueError("sites from a file need origin_lon_lat, which only a scenario sets")

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        if self.sites is None:
            if self.radius_m is not None:
                raise ValueError(
                    "radius_m applies only to sites; hexagons reach (rings + 1/2) isd_m: leave radius_m out"
                )
        elif self.rings:
            raise ValueError("set either rings (hexagons) or sites (arbitrary positions)")
        elif not 1 <= len(self.sites) <= MOST_SITES:
            raise ValueError(f"sites: name 1 to {MOST_SITES} places, got {len(self.sites)}")
        elif len(set(self.sites)) < len(self.sites):
            raise ValueError(
                "two of the sites are at the same place: for three cells at one site, set sectors: 3"
            )
        return self

    @model_validator(mode="after")
    def _one_antenna(self) -> Self:
        if isinstance(self.azimuth_deg, tuple):
            if self.sectors > 1:
                raise ValueError(
                    "sectors cannot be combined with a list in azimuth_deg, which already gives each panel's bearing:"
                    " leave sectors out"
                )
            if self.sites is None or len(self.azimuth_deg) != len(self.sites):
                sites = "hexagons" if self.sites is None else f"{len(self.sites)} sites"
                listed = len(self.azimuth_deg)
                raise ValueError(f"azimuth_deg has panels of {listed} sites, but the layout has {sites}")
            if self.cells > MOST_CELLS:
                raise ValueError(f"azimuth_deg: list at most {MOST_CELLS} panels, got {self.cells}")
        if self.antenna_gain_dbi and self.bearings_deg:
            raise ValueError("leave antenna_gain_dbi out: it is for sites without sectors; a panel has 8 dBi")
        return self

    @model_validator(mode="after")
    def _federations_are_there(self) -> Self:
        if not isinstance(self.federations, tuple):
            return self
        wrong = [cell for cell in self.federations if cell >= self.cells]
        if wrong:
            raise ValueError(
                f"federations: there is no cell {wrong[0]}; name cells from 0 to {self.cells - 1}"
            )
        if not self.federations or list(self.federations) != sorted(set(self.federations)):
            raise ValueError("federations: name at least one cell, each once, in ascending order")
        return self

    @property
    def several(self) -> bool:
        """Whether devices choose among several cells; otherwise one cell serves all devices within its radius."""
        return self.rings > 0 or self.sites is not None or self.sectors > 1

    @property
    def bearings_deg(self) -> tuple[tuple[float, ...], ...]:
        """Bearings of each site's panels; empty if sites are omnidirectional."""
        if isinstance(self.azimuth_deg, tuple):
            return self.azimuth_deg
        if self.sectors == 1:
            return ()
        return (tuple(self.azimuth_deg + turn for turn in (0.0, 120.0, 240.0)),) * len(self.sites_m)

    @property
    def sites_m(self) -> FloatArray:
        """[sites, 2] positions of the base stations."""
        return hexagonal_sites(self.rings, self.isd_m) if self.sites is None else np.array(self.sites, float)

    @property
    def cells(self) -> int:
        """Number of cells."""
        if isinstance(self.azimuth_deg, tuple):
            return sum(map(len, self.azimuth_deg))
        return self.sectors * (site_count(self.rings) if self.sites is None else len(self.sites))

    @property
    def served(self) -> list[int]:
        """Cells with a server: all cells, the cells of site 0, or the listed cells."""
        if isinstance(self.federations, tuple):
            return list(self.federations)
        if self.federations == "centre":
            return list(range(len(self.bearings_deg[0]) if self.bearings_deg else 1))
        return list(range(self.cells))
