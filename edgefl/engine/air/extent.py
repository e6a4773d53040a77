"""Distances and antenna heights of a scenario's world, with defaults from the path-loss model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from edgefl.channel.layout import Wraparound
from edgefl.channel.path_loss import LossLines, PathLoss
from edgefl.channel.units import FloatArray
from edgefl.config import registry
from edgefl.config.answers import must_be_shaped, wrong
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.settings import CellSettings
from edgefl.errors import EdgeflError, refused
from edgefl.mobility import Mobility

SIGHT_CHECKS = 100  # number of distances at which a model's probability of line of sight is checked


@dataclass(frozen=True)
class Extent:
    """Distances and heights of a scenario's world.

    Heights and the smallest distance default to the values of the path-loss model, whose base stations are at 10 m
    (UMi), 25 m (UMa) or 3 m (InH).
    """

    cell: CellSettings
    layout: LayoutSettings
    radio: RadioSettings
    mobilities: Sequence[Mobility]  # one model per device class

    @property
    def bs_height_m(self) -> float:
        """Height of the base stations' antennas."""
        given = self.cell.bs_height_m
        return self._path_loss.bs_height_m if given is None else given

    @property
    def ut_height_m(self) -> float:
        """Height of the devices' antennas."""
        given = self.cell.ut_height_m
        return self._path_loss.ut_height_m if given is None else given

    def at_height(self, ut_height_m: float | None) -> "Extent":
        """Return the extent for devices at a different height, or this extent if the height is None."""
        if ut_height_m is None:
            return self
        return replace(self, cell=self.cell.model_copy(update={"ut_height_m": ut_height_m}))

    @property
    def min_distance_m(self) -> float:
        """Smallest 2D distance from a site at which devices are placed; below it, the path loss is constant."""
        given = self.cell.min_distance_m
        return self._range_m[0] if given is None else given

    @property
    def model_ends_m(self) -> float:
        """Largest 2D distance for which the path-loss model is valid, m."""
        return self._range_m[1]

    @property
    def radius_m(self) -> float:
        """Radius of the cell, or of the whole layout."""
        layout = self.layout
        if layout.sites is not None:
            return layout.radius_m or self.cell.radius_m + float(np.hypot(*layout.sites_m.T).max())
        return (layout.rings + 0.5) * layout.isd_m if layout.rings else self.cell.radius_m

    @property
    def kept_free_m(self) -> float:
        """Distance from the origin within which no device is placed; 0 with `sites`, since sites may be anywhere."""
        return self.min_distance_m if self.layout.sites is None else 0.0

    @property
    def area_radius_m(self) -> float:
        """Radius of the disc in which devices are placed."""
        return max(model.area_radius_m(self.radius_m) for model in self.mobilities)

    @property
    def field_radius_m(self) -> float:
        """Radius of the disc on which shadowing and line of sight are defined as functions of the place.

        With one cell, the disc is the area where devices are placed; with several cells, what devices can reach.
        """
        if not self.layout.several:
            return self.area_radius_m
        return max(model.reach_m(self.radius_m) for model in self.mobilities)

    @property
    def edge_m(self) -> float:
        """Distance from the origin to the edge of the cell or the layout, beyond which a device is absent."""
        if not self.layout.several:
            return self.cell.radius_m
        # rounding may put a device that is reflected at the edge slightly beyond it
        return self.field_radius_m * (1.0 + 1e-10)

    @property
    def wraparound(self) -> Wraparound | None:
        """The layout's wraparound, or None without hexagons."""
        return Wraparound(self.layout.rings, self.layout.isd_m) if self.layout.rings else None

    @property
    def farthest_m(self) -> float:
        """Largest 2D distance for which a gain may be needed."""
        if not self.layout.several:
            return self.cell.radius_m if self.radio.propagation.shadowing == "round" else self.field_radius_m
        if self.wraparound:
            return self.wraparound.largest_distance_m
        return self.field_radius_m + float(np.hypot(*self.layout.sites_m.T).max())

    @property
    def shadowing_std_db(self) -> float:
        """Standard deviation of the shadowing, if line of sight is the same everywhere."""
        given = self.radio.propagation.shadowing_std_db
        return self._path_loss.shadowing_std_db(self.in_sight) if given is None else given

    def path_loss_db(self, distance_2d_m: npt.ArrayLike) -> FloatArray:
        """Return the path loss at 2D distances, dB."""
        return self._path_loss.path_loss_db(
            distance_2d_m,
            carrier_hz=self.radio.carrier_hz,
            line_of_sight=self.in_sight,
            bs_height_m=self.bs_height_m,
            ut_height_m=self.ut_height_m,
        )

    def _check_sight(self) -> None:
        near_m, far_m = sorted((self.min_distance_m, self.radius_m))
        distances_m = np.linspace(near_m, far_m, SIGHT_CHECKS)
        method, wanted = self._path_loss.los_probability, "a probability for each distance"
        sight, place = method(distances_m), ("radio", "path_loss")
        must_be_shaped(method, sight, (distances_m.shape,), f"{wanted}, an array", *place)
        if not np.all((sight >= 0) & (sight <= 1)):
            raise wrong(method, float(sight[np.argmax(np.abs(sight - 0.5))]), f"{wanted}, in [0, 1]", *place)

    def check(self) -> None:
        """Raise an error if the path-loss model is not valid for the heights, the carrier or a distance.

        Raises:
            EdgeflError: a value is outside the model's range; the message names the key and the remedy.
        """
        if type(self._path_loss).path_loss_db is not PathLoss.path_loss_db:
            name = registry.name_of("path_loss", self._path_loss)
            raise EdgeflError(
                f"{name} defines path_loss_db(), but a run computes the loss from lines(): define the loss there",
                ("radio", "path_loss"),
            )
        heights = {"bs_height_m": self.bs_height_m, "ut_height_m": self.ut_height_m}
        try:
            lines = self._path_loss.lines(carrier_hz=self.radio.carrier_hz, **heights)
        except ValueError as error:
            text = str(error)
            height = next((name for name in heights if text.startswith(name)), None)
            raise EdgeflError(text, ("cell", height) if height else ("radio", "carrier_hz")) from error
        if not isinstance(lines, LossLines):
            raise wrong(self._path_loss.lines, lines, "LossLines", "radio", "path_loss")
        self._check_sight()
        if self.min_distance_m >= self.radius_m:
            raise EdgeflError(
                f"{self.radius_m:g} m leaves no room for devices, which stay at least "
                f"{self.min_distance_m:g} m (min_distance_m) away from the site: make the radius larger",
                self._size,
            )
        self._holds_at(self.min_distance_m, ("cell", "min_distance_m"), "closest")
        # sites of a layout are received only as far as the path-loss model is valid
        if not self.layout.several:
            self._holds_at(self.farthest_m, self._size, "farthest")

    def _holds_at(self, distance_m: float, place: tuple[str, ...], which: str) -> None:
        with refused(*place):
            try:
                self.path_loss_db(distance_m)
            except ValueError as error:
                raise ValueError(f"the {which} links are {distance_m:g} m long, and {error}") from error

    @property
    def _size(self) -> tuple[str, str]:
        """Path of the key that sets the world's size."""
        if self.layout.sites is not None:
            return ("layout", "sites") if self.layout.radius_m is None else ("layout", "radius_m")
        return ("layout", "isd_m") if self.layout.rings else ("cell", "radius_m")

    @property
    def _path_loss(self) -> PathLoss:
        path_loss: PathLoss = self.radio.path_loss
        return path_loss

    @property
    def in_sight(self) -> bool:
        """Whether all links are in line of sight, if line of sight is the same everywhere."""
        return self.radio.propagation.line_of_sight == "always"

    @property
    def _range_m(self) -> tuple[float, float]:
        return self._path_loss.range_2d_m(bs_height_m=self.bs_height_m, ut_height_m=self.ut_height_m)
