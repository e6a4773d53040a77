"""Test that degrees are refused at keys that need metres, and that small places in metres are accepted."""

import json
from typing import Any

import numpy as np
import pytest

from edgefl.places.plane import LocalPlane
from edgefl.rng import Streams
from edgefl.scenario import scenario as scenarios
from edgefl.scenario.world import World
from tests.refusals import refused_at
from tests.tables import sections

MUNICH = [11.57, 48.13]
TRIANGLE = [[11.57, 48.13], [11.58, 48.13], [11.58, 48.14]]


SMALL = sections("""
    name=w; devices.count=5; sessions={name: schedule, count: 1, rounds: 1}
    workload={payload_bits: 1000, flops_per_sample: 1000}
""")


def scenario(**changes: Any) -> dict[str, Any]:
    return {**SMALL, **changes}


def disc(*centre_m: float, radius_m: float = 300) -> dict[str, Any]:
    return {"disc": {"centre_m": list(centre_m), "radius_m": radius_m}}


def addresses(**places: Any) -> dict[str, Any]:
    plan = [{"leave": 8, "to": "work"}, {"leave": 17, "to": "home"}]
    return {"count": 2, "mobility": {"name": "itinerary", "addresses": places, "plan": plan}}


@pytest.mark.parametrize(
    ("place", "sections"),
    [
        ("areas.a.polygon.points_m", {"areas": {"a": {"polygon": {"points_m": TRIANGLE}}}}),
        ("layout.sites", {"layout": {"sites": [[11.12, 46.06], [11.11, 46.05]]}}),
        ("layout.sites", {"layout": {"sites": [[46.06, 11.12], [46.05, 11.11]]}}),
        ("streets.lines_m", {"streets": {"lines_m": [TRIANGLE[:2], TRIANGLE[1:]]}}),
        ("areas.a.rectangle", {"areas": {"a": {"rectangle": {"from_m": [-0.2, 51.4], "to_m": [0.1, 51.6]}}}}),
        ("areas.b.disc.centre_m", {"areas": {"a": disc(11.57, 48.13), "b": disc(11.58, 48.14)}}),
        ("devices.mobility.addresses", {"devices": addresses(home=[151.2, -33.87], work=[151.25, -33.9])}),
    ],
)
def test_degrees_are_refused_at_their_key(place: str, sections: dict[str, Any]) -> None:
    if "layout" in sections:
        sections = {**sections, "radio": {"propagation": {"shadowing": "spatial"}}}
    with refused_at(place, "look like degrees", "metres east and north of [0, 0]"):
        scenarios.load(scenario(**sections))


def test_the_same_places_in_metres_are_named() -> None:
    """The remedy states the projected metres: at 48.13 degrees north, 0.01 degrees are 744 m and 1,112 m."""
    x, y = LocalPlane(*MUNICH).to_m(TRIANGLE)[2]
    assert (x, y) == pytest.approx((0.01 * 111_320 * np.cos(np.radians(48.14)), 1112), rel=3e-3)
    areas = {"a": {"polygon": {"points_m": TRIANGLE}}}
    with refused_at("areas.a.polygon.points_m", f"write [0.0, 0.0], [744.4, 0.0], [{x:.1f}, {y:.1f}]"):
        scenarios.load(scenario(origin_lon_lat=MUNICH, areas=areas))
    # a single place counts as degrees if it is near the origin's longitude and latitude
    one = {"a": disc(11.58, 48.13)}
    with refused_at("areas.a.disc.centre_m", "write [744.4, 0.0]"):
        scenarios.load(scenario(origin_lon_lat=MUNICH, areas=one))
    scenarios.load(scenario(areas=one))


def test_small_places_in_metres_are_not_degrees() -> None:
    table = {"a": {"rectangle": {"from_m": [0, 0], "to_m": [0.6, 0.4]}}}
    pair = {"a": disc(30, 40, radius_m=5), "b": disc(30, 40, radius_m=50)}
    scenarios.load(scenario(areas={**table, "yard": {"polygon": {"points_m": [[3, 3], [9, 3], [3, 9]]}}}))
    scenarios.load(scenario(origin_lon_lat=MUNICH, areas=pair))
    scenarios.load(scenario(layout={"sites": [[60, 30]]}, radio={"propagation": {"shadowing": "spatial"}}))


def test_an_origin_that_nothing_uses_is_noted(tmp_path: Any) -> None:
    polygon = {"type": "Polygon", "coordinates": [[*TRIANGLE, TRIANGLE[0]]]}
    (tmp_path / "a.geojson").write_text(json.dumps(polygon))
    file = {"a": {"geojson": {"path": str(tmp_path / "a.geojson")}}}
    noted = {}
    for name, areas in (("file", file), ("disc", {"a": disc(0, 0)})):
        one = scenarios.load(scenario(origin_lon_lat=MUNICH, areas=areas))
        noted[name] = World(one, Streams(1)).places.noted()
    assert noted["file"] == []
    (note,) = noted["disc"]
    assert note.startswith("origin_lon_lat is not used")
