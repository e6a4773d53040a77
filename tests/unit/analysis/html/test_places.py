"""The reader's own drawing of the layout is that of the engine."""

import numpy as np
import pytest

from analysis.html.places import areas_of, hexagonal_sites_m, images_m, layout_of
from channel.layout import Wraparound, hexagonal_sites

CELL = {"radius_m": 250.0}
PLAIN = {"sectors": 1, "azimuth_deg": 30.0, "rings": 0, "isd_m": 200.0}


@pytest.mark.parametrize("rings", [1, 2])
def test_sites_and_their_copies_are_those_of_the_channel(rings: int) -> None:
    sites_m = hexagonal_sites(rings, 200.0)
    np.testing.assert_allclose(hexagonal_sites_m(rings, 200.0), sites_m, atol=1e-9)
    world = Wraparound(rings, 200.0)
    points_m = np.random.default_rng(1).uniform(-400, 400, (200, 2))
    nearest_m = np.linalg.norm(world.displacement_m(points_m, sites_m), axis=-1)
    copies_m = sites_m[None] + images_m(rings, 200.0)[:, None]
    mine_m = np.linalg.norm(points_m[:, None, None] - copies_m, axis=-1).min(axis=1)
    inside = np.linalg.norm(points_m, axis=1) < (rings + 0.5) * 200.0
    assert inside.sum() > 50
    np.testing.assert_allclose(mine_m[inside], nearest_m[inside])


def test_one_cell_hexagons_and_open_sites() -> None:
    assert layout_of({"cell": CELL, "layout": PLAIN}) == {
        "sectors": 1,
        "azimuth_deg": 30.0,
        "images": [[0.0, 0.0]],
        "shape": "disc",
        "sites": [[0.0, 0.0]],
        "isd_m": 0.0,
        "radius_m": 250.0,
    }
    hexagons = layout_of({"cell": CELL, "layout": PLAIN | {"rings": 1, "edge": "wraparound"}})
    assert (hexagons["shape"], len(hexagons["sites"]), len(hexagons["images"])) == ("hexagons", 7, 7)
    guarded = layout_of({"cell": CELL, "layout": PLAIN | {"rings": 1, "edge": "guard_ring"}})
    assert len(guarded["images"]) == 1
    free = layout_of({"cell": CELL, "layout": PLAIN | {"sites": [[0, 0], [300, 400]]}})
    assert (free["shape"], free["radius_m"]) == ("open", 750.0)


def test_areas_have_their_shapes() -> None:
    areas = {
        "park": {"disc": {"centre_m": [1, 2], "radius_m": 3}},
        "station": {"rectangle": {"from_m": [0, 0], "to_m": [2, 1]}},
        "town": {"geojson": {"path": "town.geojson"}},
    }
    park, station = areas_of({"areas": areas})
    assert park == {"name": "park", "centre": [1, 2], "radius": 3}
    assert station["points"] == [[0, 0], [2, 0], [2, 1], [0, 1]]
