"""Test that masts of a file become sites at their positions on the ellipsoid, and cells of a mast become sectors."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgefl.places import masts
from edgefl.run.plan import prepare
from edgefl.scenario import scenario
from edgefl.scenario.scenario import Scenario
from tests.refusals import refused_at

ORIGIN = (11.12, 46.06)
# a file in OpenCelliD's format has three cells at the first mast, two at the second, and one at the third
OPENCELLID = """\
LTE,262,1,1001,100001,0,11.1200,46.0600,1000,12,1,1418816528,1598948816,0
LTE,262,1,1001,100002,0,11.1200,46.0600,1000,9,1,1418816528,1598948816,0
LTE,262,1,1001,100003,0,11.1200,46.0600,1000,7,1,1418816528,1598948816,0
LTE,262,1,1001,100101,0,11.1250,46.0620,800,4,1,1418816528,1598948816,0
LTE,262,1,1001,100102,0,11.1250,46.0620,800,31,1,1418816528,1598948816,0
NR,262,1,1001,100201,0,11.1290,46.0590,500,5,1,1698816528,1698948816,0
"""
NAMES = "radio,mcc,net,area,cell,unit,lon,lat,range,samples,changeable,created,updated,averageSignal\n"
OPERATOR = """\
Site;Longitude;Latitude;Azimuth
A;11.12;46.06;0
A;11.12;46.06;120
A;11.12;46.06;240
A;11.12;46.06;240
B;11.125;46.062;90
"""


def loaded(folder: Path, text: str, name: str = "masts.csv", **sites: Any) -> Scenario:
    path = folder / name
    path.write_text(text)
    layout = {"sites": {"path": str(path), **sites.pop("file", {})}, **sites.pop("layout", {})}
    return scenario.load(
        {
            "name": "masts",
            "duration_s": 20,
            "origin_lon_lat": ORIGIN,
            "layout": layout,
            "devices": {"count": 3},
            "sessions": {"name": "interval", "length_s": 20},
            "workload": {"payload_bits": 1e6, "flops_per_sample": 1e6},
            **sites,
        }
    )


def on_ellipsoid_m(lon: float, lat: float) -> tuple[float, float]:
    """Return metres east and north of the origin, by WGS 84's radii of curvature at the mean latitude."""
    middle = math.radians((lat + ORIGIN[1]) / 2)
    axis_m, square = 6_378_137.0, 2 / 298.257223563 - 1 / 298.257223563**2
    w = math.sqrt(1 - square * math.sin(middle) ** 2)
    north_m = math.radians(lat - ORIGIN[1]) * axis_m * (1 - square) / w**3
    east_m = math.radians(lon - ORIGIN[0]) * axis_m / w * math.cos(middle)
    return east_m, north_m


@pytest.mark.parametrize("head", ["", NAMES])
def test_cells_of_opencellid_are_joined_by_mast(tmp_path: Path, head: str) -> None:
    one = loaded(tmp_path, head + OPENCELLID)
    places = [(11.12, 46.06), (11.125, 46.062), (11.129, 46.059)]
    assert one.layout.sites is not None
    for found, place in zip(one.layout.sites, places, strict=True):
        # the reference errs by up to 0.1 m, as it computes eastings at the mean latitude, up to 100 m away
        assert found == pytest.approx(on_ellipsoid_m(*place), abs=0.1)
    assert one.layout.cells == 3
    notes = prepare(one).notes
    assert "layout.sites: masts.csv has 6 cells at 3 places: 3 sites" in notes


def test_masts_on_both_sides_of_the_antimeridian_are_neighbours(tmp_path: Path) -> None:
    """In Fiji, masts at 179.999 and -179.999 degrees are 213 m apart."""
    text = "lon,lat\n179.999,-16.8\n-179.999,-16.8\n"
    sites = loaded(tmp_path, text, origin_lon_lat=[180, -16.8]).layout.sites
    assert sites is not None
    apart_m = 0.002 * 111_320 * math.cos(math.radians(16.8))  # 111,320 m per degree of the equator
    assert [sites[0][0], sites[1][0]] == pytest.approx([-apart_m / 2, apart_m / 2], abs=0.2)
    with refused_at("origin_lon_lat", "[-180, -16.8]"):
        loaded(tmp_path, text, origin_lon_lat=None)


def test_a_file_is_read_once_and_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layout and the note on rows read the file only once, as a table of millions of cells takes a minute."""
    read, table = [], masts._of_table

    def counted(file: masts.SitesFile, path: Path) -> Iterator[masts.Row]:
        read.append(path.name)
        return table(file, path)

    monkeypatch.setattr(masts, "_of_table", counted)
    prepare(loaded(tmp_path, OPENCELLID))
    assert read == ["masts.csv"]
    assert loaded(tmp_path, OPERATOR).layout.cells == 4
    assert read == ["masts.csv"] * 2


def test_azimuths_are_sectors(tmp_path: Path) -> None:
    """Clockwise from north, 0, 120 and 240 degrees are 90, 330 and 210 degrees counter-clockwise from east."""
    one = loaded(tmp_path, OPERATOR)
    assert one.layout.azimuth_deg == ((90.0, 330.0, 210.0), (0.0,))
    assert one.layout.cells == 4
    assert one.layout.served == [0, 1, 2, 3]
    # no gain of the layout is added to a panel's own gain of 8 dBi
    assert one.layout.antenna_gain_dbi == 0
    plan = prepare(one)
    assert "layout.sites: masts.csv has 5 cells at 2 places: 2 sites with 4 sectors" in plan.notes
    # 200 m north of the first mast its first sector is strongest, and 200 m south-south-west of it the third sector
    gains = plan.world.gains
    power_db = gains.power_db(plan.world.cells_m[[0, 2, 3]] * 1.0)
    assert power_db.shape == (3, 4)
    assert power_db.argmax(axis=1).tolist() == [0, 2, 3]


def test_azimuths_in_radians_are_noted(tmp_path: Path) -> None:
    turned = "A,11.12,46.06,{}\nA,11.12,46.06,{}\n"
    for azimuths, doubted in (((0.5, 4.7), True), ((5, 185), False)):
        plan = prepare(loaded(tmp_path, "mast,lon,lat,azimuth\n" + turned.format(*azimuths)))
        assert ["radians" in note for note in plan.notes if "masts.csv" in note] == [doubted]


def test_the_written_scenario_needs_no_file(tmp_path: Path) -> None:
    one = loaded(tmp_path, OPERATOR)
    (tmp_path / "masts.csv").unlink()
    again = scenario.load(scenario.written(one))
    assert again.layout == one.layout


def test_points_of_geojson_with_their_azimuths(tmp_path: Path) -> None:
    features = [
        {"type": "Feature", "geometry": {"type": kind, "coordinates": at}, "properties": properties}
        for kind, at, properties in [
            ("Point", [11.12, 46.06], {"Bearing": 90, "net": 1}),
            ("MultiPoint", [[11.12, 46.06, 300.0], [11.125, 46.062]], {"Bearing": 270, "net": 1}),
            ("Point", [11.3, 46.2], {"Bearing": 0, "net": 2}),
            ("LineString", [[11.12, 46.06], [11.13, 46.06]], {}),
        ]
    ]
    text = json.dumps({"type": "FeatureCollection", "features": features})
    one = loaded(tmp_path, text, "masts.geojson", file={"where": {"net": 1}})
    assert one.layout.azimuth_deg == ((0.0, 180.0), (180.0,))


def test_columns_may_be_named_and_rows_chosen(tmp_path: Path) -> None:
    text = "x\ty\tband\n11.12\t46.06\tn78\n11.12\t46.07\tn1\n11.13\t46.06\tn28\n"
    named = {"columns": {"lon": "x", "lat": "y"}, "where": {"band": ["n78", "n28"]}}
    assert loaded(tmp_path, text, file=named).layout.cells == 2


@pytest.mark.parametrize("name", ["direction", "Heading", "Azimut (Grad)"])
def test_a_column_that_may_hold_azimuths_is_noted(tmp_path: Path, name: str) -> None:
    """Without a column called azimuth or bearing a mast has no azimuth, which a note says."""
    text = f"lon,lat,{name}\n11.12,46.06,90\n11.12,46.06,210\n"
    remedy = f"but '{name}' may hold them: to use it, set layout.sites.columns: {{azimuth: {name}}}"
    one = loaded(tmp_path, text)
    assert one.layout.cells == 1
    assert any(remedy in note for note in prepare(one).notes)
    one = loaded(tmp_path, text, file={"columns": {"azimuth": name}})
    assert one.layout.cells == 2
    assert not any("no azimuths" in note for note in prepare(one).notes)


def test_a_property_that_may_hold_azimuths_is_noted(tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [11.12, 46.06]}
    feature = {"type": "Feature", "geometry": point, "properties": {"net": 1, "direction": 90}}
    one = loaded(tmp_path, json.dumps(feature), "masts.geojson")
    assert any("no azimuths are read, but 'direction' may hold them" in note for note in prepare(one).notes)


def test_masts_beyond_the_world_are_left_out_and_counted(tmp_path: Path) -> None:
    """A note counts the two masts that are left out, one of them in another country."""
    rows = OPENCELLID + "LTE,208,1,1,1,0,2.35,48.85,1,1,1,1,1,0\n"
    one = loaded(tmp_path, rows, layout={"radius_m": 500})
    assert one.layout.cells == 2
    assert any("2 sites; masts left out beyond layout.radius_m: 2" in note for note in prepare(one).notes)
    with refused_at("layout.sites.path", "layout.radius_m", "of 4 masts 3"):
        loaded(tmp_path, rows)


@pytest.mark.parametrize(
    ("place", "text", "nouns", "more"),
    [
        ("layout.sites.path", "id,lon\n1,2\n", (":1:", "lat", "'id', 'lon'"), {}),
        ("layout.sites.path", "lon,lat\n11.12,north\n", (":2:", "lat is 'north'", "degrees"), {}),
        (
            "layout.sites.path",
            "lon;lat\n11,12;46,06\n",
            (":2:", "lon is '11,12'", "write a point: 11.12"),
            {},
        ),
        ("layout.sites.path", "lon,lat\n11.12,46.06\n5113000,46\n", (":3:", "lon is '5113000'", "180"), {}),
        ("layout.sites.path", "lon,lat\n11.12\n", (":2:", "1 cells in a table of 2 columns"), {}),
        ("layout.sites.path", "lon,lat\n", ("no cell",), {}),
        ("layout.sites.path", "lon,lat,azimuth\n11.12,46.06,\n", (":2:", "azimuth is ''", "where"), {}),
        (
            "layout.sites.path",
            "lon,lat,n\n11.12,46.06,1\n",
            ("no cell that `where` chooses",),
            {"where": {"n": 2}},
        ),
        ("layout.sites.path", "lon,lat\n11.12,46.06\n", (":1:", "no column 'net'"), {"where": {"net": 2}}),
        ("layout.sites.path", "name,x,y\na,10,20\n", (":1:", "[[x, y], ...]"), {}),
        ("layout.sites.path", "Easting,Northing\n10,20\n", ("easting and northing", "[[x, y], ...]"), {}),
        ("layout.sites.path", "x_km,y_km\n1,2\n", ("x_km and y_km", "write metres"), {}),
        ("layout.sites.lom", "lon,lat\n11.12,46.06\n", ("unknown key",), {"lom": "x"}),
        ("layout.sites.path", "lon,lat,long\n1,2,3\n", ("2 columns 'lon'",), {}),
    ],
)
def test_a_wrong_table_names_the_line(
    tmp_path: Path, place: str, text: str, nouns: tuple[str, ...], more: dict[str, Any]
) -> None:
    with refused_at(place, *nouns):
        loaded(tmp_path, text, file=more)


def test_other_wrong_files(tmp_path: Path) -> None:
    with refused_at("origin_lon_lat", "[11.12, 46.06]"):
        loaded(tmp_path, "lon,lat\n11.12,46.06\n", origin_lon_lat=None)
    with refused_at("layout.sites.path", "RFC 7946"):
        loaded(tmp_path, '{"type": "FeatureCollection"}', "masts.geojson")
    with refused_at("layout.sites.path", "masts are Points"):
        loaded(tmp_path, '{"type": "FeatureCollection", "features": []}', "masts.geojson")
    with refused_at("layout.sites", "GeoJSON"):
        loaded(tmp_path, "", "masts.geojson", file={"columns": {"lat": "y"}})
    with refused_at("layout.azimuth_deg", "leave azimuth_deg out"):
        loaded(tmp_path, OPERATOR, layout={"azimuth_deg": 10})
    with refused_at("layout", "leave sectors out"):
        loaded(tmp_path, OPERATOR, layout={"sectors": 3})


def test_masts_outside_the_world_are_refused_with_the_cause(tmp_path: Path) -> None:
    """A mast 0.01 degrees north, 1,112 m away, lies beyond a small radius; a swapped origin is far from all masts."""
    rows = "lon,lat\n11.12,46.07\n"
    with refused_at("layout.sites.path", "of 1 masts none", "to the origin, 1,112 m"):
        loaded(tmp_path, rows, layout={"radius_m": 50})
    with refused_at("layout.sites.path", "[46.06, 11.12]: check", "the order of longitude and latitude"):
        loaded(tmp_path, rows, origin_lon_lat=ORIGIN[::-1], layout={"radius_m": 1000})
