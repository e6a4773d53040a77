"""Path-loss models, one file each, with all constants of an environment."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from edgefl.channel.component import ChannelComponent
from edgefl.channel.units import FloatArray

__all__ = ["ByState", "Line", "LossLines", "PathLoss", "not_negative"]

# hypot() of a position drawn at exactly 10 m may be rounded down
DISTANCE_ROUNDING = 1e-9


class Line(NamedTuple):
    """Path loss that is linear in the logarithm of distance, intercept_db + slope_db log10 d3D."""

    intercept_db: float  # loss at d3D = 1 m
    slope_db: float  # loss per decade of distance


class LossLines(NamedTuple):
    """Path loss as the maximum of several lines, with and without line of sight.

    All models in this package have this shape. Beyond the breakpoint, PL2 applies instead of PL1. PL2 is steeper and
    meets PL1 exactly at the breakpoint (d3D^2 = d'_BP^2 + (h_BS - h_UT)^2), so PL2 is greater than PL1 beyond the
    breakpoint. The NLoS loss is defined as the maximum of its own line and the LoS loss.
    """

    los: tuple[Line, ...]
    nlos: tuple[Line, ...]


class ByState(NamedTuple):
    """A pair of values, one with line of sight and one without."""

    los: float
    nlos: float


class Spread(NamedTuple):
    """Spread of a link's paths in delay and in direction, as seen from the site.

    delay_s, azimuth_deg, zenith_deg: root mean square over all paths, weighted by power. direct: share of the power
    on the direct path, K / (K + 1); 0 without line of sight.
    """

    delay_s: float
    azimuth_deg: float
    zenith_deg: float
    direct: float = 0.0


class Spreads(NamedTuple):
    """The median spread of links with line of sight, and of links without line of sight."""

    los: Spread
    nlos: Spread


def lg_spread(
    lg_delay_s: float, lg_azimuth_deg: float, lg_zenith_deg: float, k_factor_db: float = -math.inf
) -> Spread:
    """Return a spread from the logarithms of its medians in TR 38.901, and from the Ricean factor K in dB."""
    k_factor = 10.0 ** (k_factor_db / 10.0)
    return Spread(10.0**lg_delay_s, 10.0**lg_azimuth_deg, 10.0**lg_zenith_deg, k_factor / (1.0 + k_factor))


@dataclass(frozen=True)
class PathLoss(ChannelComponent, ABC):
    """Base class of path-loss models, which include shadowing and correlation distances.

    Source of the numbers: 3GPP TR 38.901, Table 7.4.1-1 (shadowing standard deviation), Table 7.5-6 (its correlation
    distance; delay and angular spreads), Table 7.6.3.1-2 (correlation distance of the LoS state), Table 7.2-1 and
    7.2-2 (heights).
    """

    std_db: ClassVar[ByState]  # of the shadowing
    correlation_m: ClassVar[ByState | None]  # of the shadowing; None without shadowing
    los_correlation_m: ClassVar[float]  # of the LoS state
    bs_height_m: ClassVar[float]  # typical heights, the defaults of path_loss_db and of a scenario
    ut_height_m: ClassVar[float]
    # largest distance of an indoor device from the outer wall, or None if the model has no loss for indoor devices
    indoor_depth_m: ClassVar[float | None] = None
    # power of a site per MHz of its band, or None if the model describes no particular kind of site
    site_dbm_per_mhz: ClassVar[float | None] = None
    nearest_m: ClassVar[float] = 10.0  # range of distances; typical values for a model without limits
    farthest_m: ClassVar[float] = math.inf

    @abstractmethod
    def lines(self, *, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
        """Compute the lines of the path loss at a carrier and given antenna heights.

        Raises:
            ValueError: the carrier or a height is outside the model's range.
        """

    @abstractmethod
    def los_probability(self, distance_2d_m: npt.ArrayLike) -> FloatArray:
        """Compute the probability of line of sight; `edgefl.channel.large_scale` correlates nearby places.

        Args:
            distance_2d_m: [devices] horizontal distance, >= 0.

        Raises:
            ValueError: a distance is negative.
        """

    def check_distances(self, distance_2d_m: FloatArray, distance_3d_m: FloatArray) -> None:
        """Raise an error if a distance is outside the model's range, by default a range of horizontal distances.

        Raises:
            ValueError: a distance is out of range; the message names the range and the remedy.
        """
        self._check_range("distance_2d_m", distance_2d_m, self.nearest_m, self.farthest_m)

    def range_2d_m(self, *, bs_height_m: float, ut_height_m: float) -> tuple[float, float]:
        """Return the default minimum and maximum horizontal distance of a device.

        A model with a range of 3D distances converts that range for the given heights.
        """
        return self.nearest_m, self.farthest_m

    def path_loss_db(
        self,
        distance_2d_m: npt.ArrayLike,
        *,
        carrier_hz: float,
        line_of_sight: npt.ArrayLike = True,
        bs_height_m: float | None = None,
        ut_height_m: float | None = None,
    ) -> FloatArray:
        """Compute the path loss without shadowing.

        Args:
            distance_2d_m: [devices] horizontal distance, within the model's range.
            line_of_sight: [devices] whether each device is in line of sight, or one value for all.
            bs_height_m, ut_height_m: antenna heights of base stations and devices, m; by default the model's own.

        Returns:
            [devices] path loss in dB.

        Raises:
            ValueError: a distance, the carrier or a height is outside the model's range.
        """
        bs_m = self.bs_height_m if bs_height_m is None else bs_height_m
        ut_m = self.ut_height_m if ut_height_m is None else ut_height_m
        distance = np.asarray(distance_2d_m, dtype=float)
        distance_3d_m = np.hypot(distance, bs_m - ut_m)
        self.check_distances(distance, distance_3d_m)
        log_distance = np.log10(distance_3d_m)
        los, nlos = (
            np.max([line.intercept_db + line.slope_db * log_distance for line in state], axis=0)
            for state in self.lines(carrier_hz=carrier_hz, bs_height_m=bs_m, ut_height_m=ut_m)
        )
        return np.where(line_of_sight, los, nlos)

    def spreads(self, carrier_hz: float) -> Spreads | None:
        """Return the links' median delay and angular spreads, or None if the model defines no spreads."""
        return None

    def shadowing_std_db(self, line_of_sight: bool) -> float:
        """Return the standard deviation of the shadowing in dB, with or without line of sight."""
        return self.std_db.los if line_of_sight else self.std_db.nlos

    def _check_range(self, what: str, distance: FloatArray, nearest_m: float, farthest_m: float) -> None:
        inside = (distance >= nearest_m * (1.0 - DISTANCE_ROUNDING)) & (
            distance <= farthest_m * (1.0 + DISTANCE_ROUNDING)
        )
        if not np.all(inside):
            worst = np.atleast_1d(distance)[~np.atleast_1d(inside)][0]
            raise ValueError(
                f"{type(self).__name__} path loss holds for {what} from {nearest_m:g} to {farthest_m:g} m, "
                f"got {worst:g}: keep links within that range"
            )


def check_places(model: PathLoss, nearest_m: float, farthest_m: float, radio: dict[str, float]) -> None:
    """Raise an error if a path-loss model is not valid in a range of distances.

    Args:
        radio: carrier and antenna heights, as arguments of `PathLoss.path_loss_db`.

    Raises:
        ValueError: the model rejects a distance; the message names the distances and includes the model's error.
    """
    if not nearest_m < farthest_m:
        raise ValueError(
            f"min_distance_m {nearest_m:g} must be less than {farthest_m:g} m, the largest distance of a device"
            " from a site"
        )
    try:
        model.path_loss_db([nearest_m, farthest_m], **radio)
    except ValueError as error:
        raise ValueError(
            f"devices are from min_distance_m {nearest_m:g} to {farthest_m:g} m away from a site: {error}"
        ) from error


def check_height(name: str, height_m: float, lowest_m: float, highest_m: float, why: str) -> None:
    """Raise if an antenna height is outside a model's range.

    Raises:
        ValueError: the height is out of range; the message begins with its name, and gives the range and the reason.
    """
    if not lowest_m <= height_m <= highest_m:
        raise ValueError(f"{name} must be between {lowest_m:g} and {highest_m:g} m, got {height_m:g}: {why}")


def not_negative(distance_2d_m: npt.ArrayLike) -> FloatArray:
    """Return distances as an array if none is negative.

    Raises:
        ValueError: a distance is negative.
    """
    distance = np.asarray(distance_2d_m, dtype=float)
    if not np.all(distance >= 0):
        raise ValueError(f"distance_2d_m must be >= 0, got {distance}")
    return distance
