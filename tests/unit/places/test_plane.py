"""Test that the local plane is a transverse Mercator projection, and has the stated error of distances."""

import numpy as np
import pytest
from scipy.integrate import quad

from edgefl.places.plane import EQUATOR_M, FLATTENING, LocalPlane, look_like_degrees
from tests.refusals import refused_at

E2 = FLATTENING * (2 - FLATTENING)


def meridian_radius_m(lat_deg: float) -> float:
    return EQUATOR_M * (1 - E2) / (1 - E2 * np.sin(np.radians(lat_deg)) ** 2) ** 1.5


def parallel_radius_m(lat_deg: float) -> float:
    return EQUATOR_M * np.cos(np.radians(lat_deg)) / np.sqrt(1 - E2 * np.sin(np.radians(lat_deg)) ** 2)


def test_a_degree_on_wgs_84() -> None:
    """At 45 degrees north, a degree of latitude is 111.132 km, and of longitude 78.847 km, as in textbooks."""
    (north,) = LocalPlane(10.0, 44.5).to_m([[10.0, 45.5]])
    assert north == pytest.approx([0.0, 111_131.8], abs=0.1)
    (east,) = LocalPlane(10.0, 45.0).to_m([[10.001, 45.0]])
    assert east[0] == pytest.approx(78.847, abs=1e-3)


@pytest.mark.parametrize("lat_deg", [-33.0, 0.0, 48.1, 70.0])
def test_distances_along_the_meridian_are_those_of_the_ellipsoid(lat_deg: float) -> None:
    """The distance is the integral of the meridian's radius of curvature."""
    arc_m, _ = quad(lambda lat: meridian_radius_m(lat) * np.pi / 180, lat_deg, lat_deg + 2.5)
    assert LocalPlane(7.0, lat_deg).to_m([[7.0, lat_deg + 2.5]])[0] == pytest.approx([0.0, arc_m], abs=1e-4)


@pytest.mark.parametrize("lat_deg", [-33.0, 5.0, 48.1, 70.0])
@pytest.mark.parametrize("away_deg", [0.0, 0.05, 1.0, -2.5])
def test_angles_are_kept(lat_deg: float, away_deg: float) -> None:
    """Steps north and east have equal scale and a right angle; with the meridian, this defines the projection."""
    plane, step = LocalPlane(11.0, lat_deg), 1e-4
    here = np.array([11.0 + away_deg, lat_deg + 0.3])
    ways = []
    for way, radius_m in (((0.0, step), meridian_radius_m), ((step, 0.0), parallel_radius_m)):
        ahead, behind = (plane.to_m([here + sign * np.array(way)])[0] for sign in (1, -1))
        ways.append((ahead - behind) / (2 * np.radians(step) * radius_m(here[1])))
    north, east = ways
    assert np.hypot(*north) == pytest.approx(np.hypot(*east), abs=2e-8)
    assert north @ east == pytest.approx(0.0, abs=2e-8)
    # the docstring states the scale 1 + d^2 / (2 R^2)
    away_m = plane.to_m([here])[0, 0]
    assert np.hypot(*north) - 1 == pytest.approx(away_m**2 / (2 * 6.371e6**2), rel=0.02, abs=2e-8)


def test_the_date_line_is_no_border() -> None:
    (east,) = LocalPlane(179.99, 0.0).to_m([[-179.99, 0.0]])
    assert east == pytest.approx([np.radians(0.02) * EQUATOR_M, 0.0], abs=1e-3)


@pytest.mark.parametrize("there", [(48.1, 11.5), (20.0, 48.1), (11.5, 89.0), (11.5, -48.1)])
def test_what_is_far_away_is_refused(there: tuple[float, float]) -> None:
    with refused_at("", "11.5, 48.1", kind=ValueError):
        LocalPlane(11.5, 48.1).to_m([[11.5, 48.1], there])


@pytest.mark.parametrize(
    ("places", "degrees"),
    [
        ([[11.57, 48.13], [11.58, 48.14]], True),  # Munich
        ([[48.13, 11.57], [48.14, 11.58]], True),  # latitude first
        ([[120.99, 14.57], [120.99, 14.5701]], True),  # Manila, a street of 11 m
        ([[-0.1, 51.5], [0.1, 51.6]], True),  # London, on both sides of the meridian
        ([[-70.66, -33.45], [-70.6, -33.4]], True),  # Santiago
        ([[8.0, 50.0], [9.1, 50.5]], True),  # two devices, 80 km apart
        ([[4, 0], [5, 0]], False),  # a step of a metre, in a trace
        ([[0, 0], [0.5, 0.4]], False),  # a table in the laboratory, in metres
        ([[-0.4, 0.2], [0.3, -0.1]], False),
        ([[11.57, 48.13]], False),
        ([[11.57, 48.13], [11.57, 48.13]], False),
        ([[11.57, 48.13], [13.4, 52.5]], False),  # two masts next to a path, in metres
        ([[0, 0], [400, 0]], False),
        ([[100, 100], [100.5, 100.5]], False),  # too large for a latitude
        ([[200.1, 30], [200.2, 30]], False),  # too large for a longitude
        ([], False),
    ],
)
def test_degrees_are_recognised(places: list[list[float]], degrees: bool) -> None:
    assert look_like_degrees(places) is degrees
