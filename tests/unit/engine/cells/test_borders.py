"""Test the crossings of cell borders: on given paths, and their number on straight paths (Buffon's formula)."""

import math

import numpy as np
import pytest

from edgefl.channel.layout import Wraparound, hexagonal_sites
from edgefl.engine.cells.borders import Borders

ISD_M = 300.0


def crossed(borders: Borders, way_m: np.ndarray, served: np.ndarray | None = None) -> int:
    """Return the border crossings of devices on paths [times, devices, 2], sampled once a second."""
    for time_s, places_m in enumerate(way_m):
        borders.look(time_s, places_m, np.ones(len(places_m), bool) if served is None else served[time_s])
    return borders.crossed


def line(end_m: float, step_m: float = 7.0, y_m: float = 11.0) -> np.ndarray:
    """Return a path [times, 1, 2] along x."""
    x = np.arange(0.0, end_m, step_m)
    return np.stack([x, np.full_like(x, y_m)], axis=-1)[:, None]


def test_a_straight_way_past_three_sites_crosses_two_borders() -> None:
    sites_m = np.array([[0.0, 0.0], [300.0, 0.0], [600.0, 0.0]])
    assert crossed(Borders(sites_m), line(600.0)) == 2
    assert crossed(Borders(sites_m), np.concatenate([line(200.0), line(200.0)[::-1]])) == 2, "there and back"


def test_a_world_that_repeats_has_as_many_borders_farther_out() -> None:
    borders = Borders(hexagonal_sites(1, ISD_M), Wraparound(1, ISD_M))
    assert crossed(borders, line(7 * ISD_M)) == 7


def test_a_turn_around_a_site_of_three_sectors_crosses_three_borders() -> None:
    ahead = np.radians([30.0, 150.0, 270.0])
    panels_m = np.stack([np.cos(ahead), np.sin(ahead)], axis=1)
    turn = np.linspace(0.0, 2 * math.pi, 50)[:, None]
    assert crossed(Borders(panels_m), 80 * np.stack([np.cos(turn), np.sin(turn)], axis=-1)) == 3


@pytest.mark.parametrize("reason", ["absent", "off"])
def test_who_was_absent_or_off_begins_anew(reason: str) -> None:
    sites_m, way_m = np.array([[0.0, 0.0], [300.0, 0.0], [600.0, 0.0]]), line(600.0)
    away = (way_m[:, :, 0] > 100) & (way_m[:, :, 0] < 200)
    if reason == "absent":
        way_m[away] = np.nan
    assert crossed(Borders(sites_m), way_m, ~away if reason == "off" else None) == 1


def test_looks_are_no_closer_than_asked_for() -> None:
    borders, sites_m = Borders(np.array([[0.0, 0.0], [300.0, 0.0]]), every_s=2.0), [100.0, 200.0, 100.0]
    for time_s, x_m in enumerate(sites_m):
        borders.look(time_s, np.array([[x_m, 0.0]]), np.array([True]))
    assert borders.crossed == 0


def test_straight_ways_cross_as_many_as_buffon_says() -> None:
    """Straight paths cross 2 v B / pi borders a second, where hexagons have borders of B = 2 / isd per area."""
    devices, seconds, speed_m_s = 400, 60, 5.0
    rng = np.random.default_rng(5)
    begin, turn = 2000 * rng.random((devices, 2)), 2 * math.pi * rng.random(devices)
    step = speed_m_s * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    borders = Borders(hexagonal_sites(2, ISD_M), Wraparound(2, ISD_M))
    found = crossed(borders, begin + np.arange(seconds)[:, None, None] * step)
    expected = devices * (seconds - 1) * 2 * speed_m_s * 2 / ISD_M / math.pi
    # a Poisson process, which varies more, has this standard deviation; two crossings near a corner count as one
    assert abs(found - expected) < 4 * math.sqrt(expected) + 0.01 * expected
    assert 4 * math.sqrt(expected) < 0.2 * expected
