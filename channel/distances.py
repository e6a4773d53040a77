"""Distances from places to sites, within the range of a path-loss model."""

import math

import numpy as np
import numpy.typing as npt

from edgefl.channel.layout import Floats, Wraparound
from edgefl.channel.units import FloatArray

Float32Array = npt.NDArray[np.float32]


class Distances:
    """Distances from places to sites as ln d3D^2, for the path loss; 2D distances are clamped to a range.

    Args:
        sites_m: [S, 2] positions of the base stations.
        nearest_m: smallest distance; shorter distances are clamped to it. range_m: largest distance; longer distances
            are clamped to it, and places farther away do not receive the site.
        area_radius_m: places lie within this distance of the origin.
        height_m: height of the sites above the places.
        wraparound: wraparound of the layout, or None if it does not repeat.

    Attributes:
        range_m: the range, or inf if no place of the area is that far from a site.
        farthest_m: an upper bound on the distances within the range.
    """

    def __init__(
        self,
        sites_m: FloatArray,
        *,
        nearest_m: float,
        range_m: float,
        area_radius_m: float,
        height_m: float,
        wraparound: Wraparound | None,
    ) -> None:
        self._wraparound = wraparound
        # sites as axes [2, S], as `framed` returns them
        self._sites = self.framed(sites_m)
        self._sites_single = self._sites.astype(np.float32)
        self._nearest_m, self._height_m = nearest_m, height_m
        bound_m = area_radius_m + float(np.hypot(*sites_m.T).max())
        if wraparound:
            bound_m = wraparound.largest_distance_m
        self.range_m = range_m if bound_m > range_m else math.inf
        self.farthest_m = min(bound_m, self.range_m)
        # single precision rounds by 4 cm at 5 km
        self._range_ends = math.log(self.range_m**2 + height_m**2) - 2e-5

    def framed(self, points_m: FloatArray) -> FloatArray:
        """Return points as axes [2, n], aligned with the layout if it wraps around."""
        axes = np.ascontiguousarray(points_m.T)
        return self._wraparound.aligned_axes(axes) if self._wraparound else axes

    def to_all(self, framed: Float32Array) -> Float32Array:
        """Return ln d3D^2 [S, n] from all sites to points [2, n], which `framed` returned."""
        return self.log_of(self._square(framed[:, None] - self._sites_single[:, :, None]))

    def to_one(self, framed: FloatArray, chosen: npt.NDArray[np.intp]) -> Float32Array:
        """Return ln d3D^2 [n] from each point [2, n] to its chosen site, in single precision like `to_all`."""
        return self.log_of(self._square(framed.astype(np.float32) - self._sites_single[:, chosen]))

    def square_to(self, framed: FloatArray, chosen: npt.NDArray[np.intp]) -> FloatArray:
        """Return the squared 2D distance [n] from each point [2, n] to its chosen site, in double precision."""
        return self._square(framed - self._sites[:, chosen])

    def log_of(self, square: Floats) -> Floats:
        """Return ln d3D^2 of squared 2D distances, clamped to the minimum and the maximum; overwrite `square`."""
        np.maximum(square, self._nearest_m**2, out=square)
        if self.range_m < math.inf:
            np.minimum(square, self.range_m**2, out=square)
        square += self._height_m**2
        return np.log(square, out=square)

    def out_of_range(self, log_square: Float32Array) -> npt.NDArray[np.bool_]:
        """Return whether sites at these ln d3D^2 are out of range and therefore not received."""
        return log_square >= self._range_ends

    def _square(self, axes: Floats) -> Floats:
        """Return squared 2D distances of displacements [2, ...]; overwrite `axes`."""
        if self._wraparound:
            return self._wraparound.square_distance(axes)
        axes *= axes
        axes[0] += axes[1]
        return axes[0]
