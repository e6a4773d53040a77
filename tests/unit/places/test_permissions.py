"""Test which modes of travel may use a street, by SUMO's lane permissions and OpenStreetMap's tags."""

from typing import Any

import pytest

from edgefl.places.permissions import MODES, name_of, of_lanes, of_tags, tags_of

ALL = set(MODES)


@pytest.mark.parametrize(
    ("kind", "lanes", "modes"),
    [
        ("highway.residential", [{}], ALL),
        ("highway.residential", [{"disallow": "tram rail"}], ALL),
        ("highway.primary", [{"allow": "pedestrian"}, {"disallow": "pedestrian tram"}], ALL),
        ("highway.motorway", [{"disallow": "pedestrian bicycle tram rail"}] * 2, {"bus", "car"}),
        ("highway.footway", [{"allow": "pedestrian wheelchair"}], {"foot"}),
        ("highway.path", [{"allow": "pedestrian bicycle"}], {"foot", "bicycle"}),
        ("highway.service", [{"allow": "bus coach"}], {"bus"}),
        ("", [{"allow": "all"}], ALL),
        ("", [{"disallow": "all"}], set()),
        ("railway.rail", [{"allow": "rail rail_electric"}], set()),
        ("railway.rail", [{}], set()),
        ("waterway.river", [], set()),
        ("highway.tertiary|railway.tram", [{}], ALL),
        ("railway.tram", [{"allow": "tram bus"}], {"bus"}),
    ],
)
def test_an_edge_is_open_to_what_any_lane_allows(
    kind: str, lanes: list[dict[str, str]], modes: set[str]
) -> None:
    assert of_lanes(kind, lanes) == modes


@pytest.mark.parametrize(
    ("tags", "modes"),
    [
        ({"highway": "residential"}, ALL),
        ({"highway": "motorway"}, {"bus", "car"}),
        ({"highway": "motorway", "access": "yes"}, {"bus", "car"}),
        ({"highway": "trunk"}, ALL),
        ({"highway": "trunk", "motorroad": "yes"}, {"bus", "car"}),
        ({"highway": "trunk", "foot": "no", "bicycle": "use_sidepath"}, {"bus", "car"}),
        ({"highway": "footway"}, {"foot"}),
        ({"highway": "footway", "bicycle": "yes"}, {"foot", "bicycle"}),
        ({"highway": "cycleway"}, {"foot", "bicycle"}),
        ({"highway": "cycleway", "foot": "no"}, {"bicycle"}),
        ({"highway": "service", "access": "private"}, set()),
        ({"highway": "service", "access": "no", "foot": "yes"}, {"foot"}),
        ({"highway": "service", "access": "no", "psv": "yes"}, {"bus"}),
        ({"highway": "track", "motor_vehicle": "agricultural"}, {"foot", "bicycle"}),
        ({"highway": "residential", "vehicle": "no", "bicycle": "yes"}, {"foot", "bicycle"}),
        ({"highway": "residential", "access": "destination"}, ALL),
        ({"highway": "construction", "foot": "yes"}, set()),
        ({"highway": "busway"}, {"bus"}),
        ({"highway": "residential", "railway": "tram"}, ALL),
        ({"railway": "rail"}, set()),
        ({"power": "line"}, set()),
        ({"route": "ferry", "foot": "yes"}, set()),
        ({"name": "A path of a survey"}, set()),
    ],
)
def test_tags_of_openstreetmap(tags: dict[str, str], modes: set[str]) -> None:
    assert of_tags(tags, highways_only=True) == modes


def test_without_any_highway_in_a_file_its_lines_are_streets_unless_they_are_something_else() -> None:
    assert of_tags({"name": "Rathausgasse"}, highways_only=False) == ALL
    assert of_tags({"name": "Rathausgasse", "foot": "no"}, highways_only=False) == ALL - {"foot"}
    for key in ("railway", "power", "waterway", "building", "boundary"):
        assert of_tags({key: "yes"}, highways_only=False) == set()


@pytest.mark.parametrize(
    ("properties", "tags"),
    [
        ({"highway": "path", "foot": None, "lanes": 2}, {"highway": "path", "lanes": "2"}),
        ({"id": "way/1", "tags": {"highway": "path"}}, {"id": "way/1", "highway": "path"}),
        (
            {"highway": "service", "other_tags": '"access"=>"private","note"=>"a \\"b\\" => c"'},
            {"highway": "service", "access": "private", "note": 'a \\"b\\" => c'},
        ),
        ({"highway": ["steps", "footway"]}, {"highway": "steps"}),
        ({"subtype": "rail", "class": "subway"}, {"railway": "subway"}),
        ({"subtype": "road", "class": "footway"}, {"highway": "footway"}),
    ],
)
def test_tags_as_programs_write_them(properties: dict[str, Any], tags: dict[str, str]) -> None:
    read = tags_of(properties)
    assert {
        key: value for key, value in read.items() if key not in ("tags", "other_tags", "subtype", "class")
    } == tags


def test_what_a_line_is_for_a_note() -> None:
    assert (
        name_of({"name": "x", "highway": "service", "access": "private"})
        == "highway=service with access=private"
    )
    assert name_of({"power": "line"}) == "power=line"
    assert name_of({"ref": "7"}) == "no highway"
