"""Test the panel of TR 38.901, Table 7.3-1, and sites with a panel for each of their cells."""

import cmath
import math

import numpy as np
import pytest

from edgefl.channel.antenna import Panel, Sectors
from edgefl.channel.layout import Wraparound, hexagonal_sites

HEIGHT_M = 8.5


def at(azimuth_deg: float, elevation_deg: float = 0.0) -> tuple[np.ndarray, float]:
    """Return a place 100 m away in a direction, and its depth below the antenna."""
    angle = math.radians(azimuth_deg)
    flat = 100.0 * np.array([math.cos(angle), math.sin(angle)])
    return flat, -100.0 * math.tan(math.radians(elevation_deg))


@pytest.mark.parametrize(
    ("azimuth_deg", "elevation_deg", "gain_dbi"),
    [
        (0.0, 0.0, 8.0),  # straight ahead
        (32.5, 0.0, 5.0),  # at half the beamwidth, 12 / 4 = 3 dB less
        (-32.5, 0.0, 5.0),
        (65.0, 0.0, -4.0),  # 12 dB less
        (90.0, 0.0, 8.0 - 12 * (90 / 65) ** 2),
        (110.0, 0.0, -22.0),  # 12 (110/65)^2 = 34 dB, limited to 30
        (180.0, 0.0, -22.0),
        (0.0, -32.5, 5.0),
        (0.0, 32.5, 5.0),
        (0.0, -89.999, 8.0 - 12 * (89.999 / 65) ** 2),
        (180.0, -45.0, -22.0),  # the sum of both angles' losses is limited to 30 dB, too
    ],
)
def test_pattern_without_tilt(azimuth_deg: float, elevation_deg: float, gain_dbi: float) -> None:
    flat, height_m = at(azimuth_deg + 77.0, elevation_deg)
    assert Panel(77.0).gain_dbi(flat, height_m) == pytest.approx(gain_dbi, abs=1e-9)


@pytest.mark.parametrize("tilt_deg", [-20.0, 0.0, 12.0, 60.0])
def test_the_beam_is_turned_downwards(tilt_deg: float) -> None:
    flat, height_m = at(30.0, -tilt_deg)
    assert Panel(30.0, tilt_deg).gain_dbi(flat, height_m) == pytest.approx(8.0)
    flat, height_m = at(30.0, 40.0 - tilt_deg)
    assert Panel(30.0, tilt_deg).gain_dbi(flat, height_m) == pytest.approx(8.0 - 12 * (40 / 65) ** 2)


def test_the_turn_is_that_of_38_901() -> None:
    """The gain equals (7.1-7) and (7.1-8) with gamma = 0, angle by angle, in many directions."""
    rng = np.random.default_rng(5)
    for azimuth_deg, tilt_deg in [(30.0, 10.0), (-150.0, 25.0), (200.0, -7.0)]:
        ways_m = rng.uniform(-200.0, 200.0, (200, 2))
        gains_dbi = Panel(azimuth_deg, tilt_deg).gain_dbi(ways_m, HEIGHT_M)
        beta = math.radians(tilt_deg)
        for (x, y), gain_dbi in zip(ways_m, gains_dbi, strict=True):
            theta = math.acos(-HEIGHT_M / math.hypot(x, y, HEIGHT_M))
            phi = math.atan2(y, x) - math.radians(azimuth_deg)
            down = math.cos(phi) * math.sin(theta) * math.sin(beta) + math.cos(theta) * math.cos(beta)
            ahead = math.cos(phi) * math.sin(theta) * math.cos(beta) - math.cos(theta) * math.sin(beta)
            theta_deg = math.degrees(math.acos(down))
            phi_deg = math.degrees(cmath.phase(complex(ahead, math.sin(phi) * math.sin(theta))))
            vertical_db = -min(12 * ((theta_deg - 90) / 65) ** 2, 30)
            horizontal_db = -min(12 * (phi_deg / 65) ** 2, 30)
            assert gain_dbi == pytest.approx(8 - min(-(vertical_db + horizontal_db), 30), abs=1e-9)


def three_panels(azimuth_deg: float, downtilt_deg: float = 0.0) -> tuple[Panel, ...]:
    return tuple(Panel(azimuth_deg + turn, downtilt_deg) for turn in (0.0, 120.0, 240.0))


def test_right_below_the_antenna_there_is_a_gain() -> None:
    """Straight below, an upright panel loses 12 (90/65)^2 = 23 dB, and a panel tilted by 90 degrees loses nothing."""
    below = np.zeros(2)
    assert Panel(30.0).gain_dbi(below, HEIGHT_M) == pytest.approx(8 - 12 * (90 / 65) ** 2)
    assert Panel(30.0, 90.0).gain_dbi(below, HEIGHT_M) == pytest.approx(8.0)


def test_cells_are_numbered_site_by_site() -> None:
    sites_m = np.array([[0.0, 0.0], [500.0, 0.0]])
    sectors = Sectors(sites_m, [three_panels(30.0)] * 2, 0.0)
    ahead = [np.array([math.cos(math.radians(a)), math.sin(math.radians(a))]) for a in (30, 150, 270)]
    places_m = np.array([site + 50 * way for site in sites_m for way in ahead])
    gains_dbi = sectors.gain_dbi(places_m)
    assert gains_dbi.shape == (6, 6)
    assert gains_dbi.diagonal() == pytest.approx(8.0)
    # the other two panels of site 0 point 120 degrees away
    assert gains_dbi[0, 1:3] == pytest.approx(-22.0)
    assert sectors.site_of(np.arange(6)).tolist() == [0, 0, 0, 1, 1, 1]


def test_each_site_may_have_panels_of_its_own() -> None:
    """Sites with one panel (east) and two panels (north, south-west) have 8 dBi straight ahead of each panel."""
    sites_m = np.array([[0.0, 0.0], [500.0, 0.0]])
    bearings = [[0.0], [90.0, 225.0]]
    sectors = Sectors(sites_m, [tuple(map(Panel, of)) for of in bearings], 0.0)
    places_m = np.array([[50.0, 0.0], [500.0, 50.0], [500.0 - 50.0, -50.0]])
    gains_dbi = sectors.gain_dbi(places_m)
    assert gains_dbi.diagonal() == pytest.approx(8.0)
    assert sectors.site_of(np.arange(3)).tolist() == [0, 1, 1]
    ways_m = places_m[:, None] - sites_m
    for cell, (site, bearing) in enumerate([(0, 0.0), (1, 90.0), (1, 225.0)]):
        assert np.array_equal(gains_dbi[:, cell], Panel(bearing).gain_dbi(ways_m[:, site], 0.0))


def test_sectors_of_a_layout_that_repeats_look_at_the_nearest_copy() -> None:
    sites_m, wraparound = hexagonal_sites(1, 200.0), Wraparound(1, 200.0)
    panels = three_panels(30.0, 8.0)
    of_sites = [panels] * len(sites_m)
    places_m = np.random.default_rng(1).uniform(-300, 300, (50, 2))
    wrapped = Sectors(sites_m, of_sites, HEIGHT_M, wraparound).gain_dbi(places_m)
    ways_m = wraparound.displacement_m(places_m, sites_m)
    for cell in (0, 4, 20):
        expected = panels[cell % 3].gain_dbi(ways_m[:, cell // 3], HEIGHT_M)
        assert np.array_equal(wrapped[:, cell], expected)
    single = Sectors(sites_m, of_sites, HEIGHT_M, wraparound).gain_dbi(places_m, single=True)
    assert single.dtype == np.float32
    assert np.abs(single - wrapped).max() < 1e-4


def test_where_nobody_is_every_cell_has_no_gain_to_tell() -> None:
    sectors = Sectors(np.zeros((5, 2)), [three_panels(0.0, 6.0)] * 5, 8.5)
    assert sectors.gain_dbi(np.empty((0, 2)), single=True).shape == (0, 15)
