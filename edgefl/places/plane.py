"""Convert longitude and latitude to metres east and north of a geographic location, in a local plane."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# WGS 84
EQUATOR_M = 6_378_137.0
FLATTENING = 1 / 298.257223563
FARTHEST_DEG = 3.0  # largest difference in longitude or latitude from the origin
SMALLEST_M = 1.0  # places this close to one another, but not to [0, 0], are probably in degrees


def look_like_degrees(places: npt.ArrayLike, origin_lon_lat: tuple[float, float] | None = None) -> bool:
    """Return whether places [n, 2] in metres look like longitudes and latitudes, in either order.

    Places look like degrees if all are in the range of degrees, and several of them lie within SMALLEST_M of one
    another, or within FARTHEST_DEG if they have decimals, away from [0, 0]. As degrees, such coordinates span a town
    or a region; as metres, they span an area too small to move in. A single place looks like degrees only if it is
    near the origin's longitude and latitude.
    """
    points = np.asarray(places, dtype=float).reshape(-1, 2)
    if not len(points):
        return False
    widest, away = np.ptp(points, axis=0).max(), np.abs(points).max(axis=0)
    several = widest > 0.0
    if origin_lon_lat is not None:
        several |= (
            min(np.abs(points[0] - each).max() for each in (origin_lon_lat, origin_lon_lat[::-1])) < 1.0
        )
    on_earth = away.max() <= 180.0 and away.min() <= 90.0
    narrow = FARTHEST_DEG if np.mod(points, 1.0).any() else SMALLEST_M
    return bool(on_earth and several and widest < narrow < away.max() - widest)


def turned_deg(longitude_deg: np.ndarray, from_deg: float) -> np.ndarray:
    """Return the differences [n] between longitudes and another one, -180 to 180, across the antimeridian too."""
    return (longitude_deg - from_deg + 180.0) % 360.0 - 180.0


def middle_deg(lon_lat_deg: npt.ArrayLike) -> list[float]:
    """Return the median longitude and latitude of places [n, 2], rounded to 4 decimals."""
    lon_deg, lat_deg = np.asarray(lon_lat_deg, dtype=float).reshape(-1, 2).T
    lon = lon_deg[0] + float(np.median(turned_deg(lon_deg, lon_deg[0])))
    return [round(float(turned_deg(np.array([lon]), 0.0)[0]), 4), round(float(np.median(lat_deg)), 4)]


def box_middle_deg(lon_lat_deg: npt.ArrayLike) -> list[float]:
    """Return the middle of the box around places [n, 2] in degrees, rounded to 4 decimals."""
    lon_deg, lat_deg = np.asarray(lon_lat_deg, dtype=float).reshape(-1, 2).T
    east_deg = lon_deg[0] + turned_deg(lon_deg, lon_deg[0])
    corners = [(east_deg.min(), lat_deg.min()), (east_deg.max(), lat_deg.max())]
    return middle_deg(corners)  # the median of two is their middle


@dataclass(frozen=True)
class LocalPlane:
    """Transverse Mercator projection of the WGS 84 ellipsoid on the meridian of the origin.

    Angles are preserved. Distances along the origin's meridian are exact; at a distance d east or west of it all
    distances are too long by the relative error d^2 / (2 R^2), R = 6,371 km: 3e-7 at 5 km, 1.2e-6 at 10 km, 1.2e-4
    at 100 km. The series ends with the third power of the third flattening, with an error of 1e-4 m at FARTHEST_DEG.

    Source: Krueger, 1912; in the form of Karney, Transverse Mercator with an accuracy of a few nanometers,
    J. Geodesy 2011, equations (7) to (11) and (35). The scale on the meridian is 1, unlike UTM's 0.9996.

    Args:
        lon_deg, lat_deg: position of the origin [0, 0].
    """

    lon_deg: float
    lat_deg: float

    def to_m(self, lon_lat_deg: npt.ArrayLike) -> np.ndarray:
        """Convert longitudes and latitudes to metres [n, 2] east and north of the origin.

        Args:
            lon_lat_deg: [n, 2] longitude and latitude.

        Raises:
            ValueError: the coordinates are invalid, or too far from the origin for a plane.
        """
        lon_deg, lat_deg = np.asarray(lon_lat_deg, dtype=float).reshape(-1, 2).T
        away_deg = turned_deg(lon_deg, self.lon_deg)
        far = (np.abs(away_deg) > FARTHEST_DEG) | (np.abs(lat_deg) > 84.0)
        far |= ~(np.abs(lat_deg - self.lat_deg) <= FARTHEST_DEG)
        if far.any():
            lon, lat = lon_deg[far.argmax()], lat_deg[far.argmax()]
            raise ValueError(
                f"longitude {lon:g}, latitude {lat:g} is more than {FARTHEST_DEG:g} degrees from the origin "
                f"{self.lon_deg:g}, {self.lat_deg:g} (or beyond 84 degrees north or south): check their order "
                "and origin_lon_lat"
            )
        east_m, north_m = _krueger(np.radians(away_deg), np.radians(lat_deg))
        _, origin_m = _krueger(np.zeros(1), np.radians([self.lat_deg]))
        return np.stack([east_m, north_m - origin_m], axis=1)

    def lines_to_m(self, lines: Sequence[npt.ArrayLike]) -> list[np.ndarray]:
        """Return positions [n, 2] in metres for each of several lines or rings, as `to_m` does for one of them."""
        each = [np.asarray(line, dtype=float).reshape(-1, 2) for line in lines]
        return np.split(self.to_m(np.concatenate(each)), np.cumsum([len(line) for line in each])[:-1])


def _krueger(lon: np.ndarray, lat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return metres east of the meridian at which lon is 0, and north of the equator; angles in radians."""
    n = FLATTENING / (2.0 - FLATTENING)
    radius_m = EQUATOR_M / (1.0 + n) * (1.0 + n**2 / 4.0 + n**4 / 64.0)
    eccentricity = math.sqrt(FLATTENING * (2.0 - FLATTENING))
    # tangent of the conformal latitude
    t = np.sinh(np.arctanh(np.sin(lat)) - eccentricity * np.arctanh(eccentricity * np.sin(lat)))
    xi, eta = np.arctan2(t, np.cos(lon)), np.arcsinh(np.sin(lon) / np.hypot(t, np.cos(lon)))
    alphas = (
        n / 2 - 2 * n**2 / 3 + 5 * n**3 / 16,
        13 * n**2 / 48 - 3 * n**3 / 5,
        61 * n**3 / 240,
    )
    north, east = xi.copy(), eta.copy()
    for j, alpha in enumerate(alphas, start=1):
        north += alpha * np.sin(2 * j * xi) * np.cosh(2 * j * eta)
        east += alpha * np.cos(2 * j * xi) * np.sinh(2 * j * eta)
    return radius_m * east, radius_m * north
