"""Hexagonal layouts of base stations, with or without wraparound.

Distances are 2D, in m. Cells are hexagons around the sites, with circumradius isd / sqrt(3) and two vertical edges.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray

Floats = TypeVar("Floats", npt.NDArray[np.float32], npt.NDArray[np.float64])

# axial coordinates (q, r) of the six directions, counter-clockwise; (1, 0) points along x
_DIRECTIONS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))


def site_count(rings: int) -> int:
    """Return the number of sites of a hexagonal layout, 1, 7 or 19 for 0, 1 or 2 rings.

    Raises:
        ValueError: rings is negative.
    """
    if rings < 0:
        raise ValueError(f"rings must be >= 0, got {rings}")
    return 1 + 3 * rings * (rings + 1)


def hexagonal_sites(rings: int, isd_m: float) -> FloatArray:
    """Place sites on a triangular grid, with one site in the centre and full rings around it.

    Args:
        rings: number of rings around the central site; 0, 1, 2 give 1, 7, 19 sites.
        isd_m: inter-site distance between neighbours, > 0.

    Returns:
        [S, 2] positions of the sites in m, from the centre ring by ring, each ring counter-clockwise from the x axis.
        The first sites do not depend on the number of rings.

    Raises:
        ValueError: rings is negative, or isd_m is not positive.
    """
    _check_isd(isd_m)
    axial = np.zeros((site_count(rings), 2))
    site = 1
    for ring in range(1, rings + 1):
        for corner, side in zip(_DIRECTIONS, _DIRECTIONS[2:] + _DIRECTIONS[:2], strict=True):
            for step in range(ring):
                axial[site] = ring * corner[0] + step * side[0], ring * corner[1] + step * side[1]
                site += 1
    return isd_m * np.stack([axial[:, 0] + 0.5 * axial[:, 1], math.sqrt(0.75) * axial[:, 1]], axis=1)


def displacement_m(positions_m: npt.ArrayLike, sites_m: npt.ArrayLike) -> FloatArray:
    """Return displacements [n, S, 2] from each site to each position, without wraparound.

    Args:
        positions_m: [n, 2] positions in m.
        sites_m: [S, 2] positions of the sites in m.
    """
    return np.asarray(positions_m, dtype=float)[:, None, :] - np.asarray(sites_m, dtype=float)


@dataclass(frozen=True)
class Wraparound:
    """A hexagonal layout that repeats in all directions, so that no cell is at the edge.

    The cluster of S sites is copied by the translations of a triangular lattice with step isd sqrt(S), which are
    ((rings + 1) a + rings b) and its rotations by 60 degrees, for the neighbour directions a, b of a site. A position
    sees the nearest copy of every site. The world is a torus: every site has the same distances to all others.

    Source: Panwar and Sivalingam, 2017, with the usual six copies around the cluster. Here the nearest of all copies
    is used, so positions may lie anywhere.
    """

    rings: int
    isd_m: float

    def __post_init__(self) -> None:
        site_count(self.rings)
        _check_isd(self.isd_m)

    @cached_property
    def step_m(self) -> float:
        """Distance between neighbouring copies of the layout, isd sqrt(S)."""
        return self.isd_m * math.sqrt(site_count(self.rings))

    @property
    def largest_distance_m(self) -> float:
        """Largest distance from a position to the nearest copy of a site, step / sqrt(3)."""
        return self.step_m / math.sqrt(3.0)

    def displacement_m(self, positions_m: npt.ArrayLike, sites_m: npt.ArrayLike) -> FloatArray:
        """Return displacements [n, S, 2] from the nearest copy of each site to each position.

        Args:
            positions_m: [n, 2] positions in m, anywhere.
            sites_m: [S, 2] positions of all or some sites of `hexagonal_sites(rings, isd_m)`, in any order.
        """
        along, across = self.aligned_axes(np.moveaxis(displacement_m(positions_m, sites_m), -1, 0))
        along, across = along - np.rint(along), across - np.rint(across)
        # the shifted lattice has a point in the middle of each quarter of the rectangle around 0
        nearer_middle = np.abs(along) + 3.0 * np.abs(across) > 1.0
        along -= np.where(nearer_middle, np.copysign(0.5, along), 0.0)
        across -= np.where(nearer_middle, np.copysign(0.5, across), 0.0)
        cos, sin = self._axis
        x, y = self.step_m * along, self.step_m * math.sqrt(3.0) * across
        return np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)

    def aligned_axes(self, axes_m: FloatArray) -> FloatArray:
        """Convert points or displacements [2, ...] in m to units of the lattice's rectangle (step x sqrt(3) step)."""
        cos, sin = self._axis
        x, y = axes_m
        step = self.step_m
        axes = np.empty_like(axes_m)
        np.divide(cos * x + sin * y, step, out=axes[0])
        np.divide(cos * y - sin * x, step * math.sqrt(3.0), out=axes[1])
        return axes

    def square_distance(self, axes: Floats) -> Floats:
        """Return squared distances modulo the lattice, m^2, of axes [2, ...] in `aligned_axes` units; overwrite them.

        The triangular lattice consists of a rectangular lattice and its copy shifted by half a rectangle. Rounding
        finds the nearest point of the rectangular lattice, with a remainder of at most 1/2 per axis; the nearest
        point of the copy then lies at (1/2, 1/2).
        """
        axes -= np.rint(axes)
        np.abs(axes, out=axes)
        shifted = 0.5 - axes
        for both in (axes, shifted):
            both *= both
            x, y = both
            y *= 3.0
            x += y
        square: Floats = np.minimum(axes[0], shifted[0], out=axes[0])
        square *= self.step_m**2
        return square

    @cached_property
    def _axis(self) -> tuple[float, float]:
        """Cosine and sine of the direction of one translation, (rings + 1) a + rings b."""
        x, y = self.rings + 1 + 0.5 * self.rings, math.sqrt(0.75) * self.rings
        return x / math.hypot(x, y), y / math.hypot(x, y)


def _check_isd(isd_m: float) -> None:
    if not 0 < isd_m < math.inf:
        raise ValueError(f"isd_m must be > 0 and finite, got {isd_m}")
