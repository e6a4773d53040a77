"""Test that traces in the format of each program have the described positions, whatever the file's name."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from edgefl.errors import EdgeflError
from edgefl.mobility.trace import Trace
from edgefl.places.areas import Places
from edgefl.places.plane import LocalPlane
from edgefl.scenario.scenario import load
from edgefl.scenario.world import World
from tests.refusals import refused_at
from tests.tools.fuzz_traces import FORMS, trace_case

BEIJING = (116.318, 39.984)
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "trace") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def started(path: Path | str, origin: tuple[float, float] | None = None, **keys: object) -> tuple:
    """Return the movement of all devices of a trace, and its notes."""
    places = Places(plane=LocalPlane(*origin) if origin else None)
    model = Trace(path=Path(path), **keys).within(places)
    return model.start_all(), places.notes


def near_m(lon: float, lat: float, origin: tuple[float, float]) -> list[float]:
    """Return metres east and north by WGS 84's radii of curvature; meridians converge by 6 cm at 1 km."""
    a, e2 = 6_378_137.0, 0.00669437999
    phi = np.radians(origin[1])
    w = 1 - e2 * np.sin(phi) ** 2
    north = np.radians(lat - origin[1]) * a * (1 - e2) / w**1.5
    return [np.radians(lon - origin[0]) * a * np.cos(np.radians(lat)) / np.sqrt(w), north]


# -- degrees where metres are meant -------------------------------------------------------------------


def fcd(places: list[tuple[float, float]], step_s: float = 5, of: str = "bus.1") -> str:
    steps = (
        f'<timestep time="{step_s * at}"><vehicle id="{of}" x="{x}" y="{y}" type="bus"/></timestep>\n'
        for at, (x, y) in enumerate(places)
    )
    return f"<fcd-export>\n{''.join(steps)}</fcd-export>"


def sumo_table(places: list[tuple[float, float]]) -> str:
    rows = "".join(f"{5 * at};bus.1;{x};{y}\n" for at, (x, y) in enumerate(places))
    return f"timestep_time;vehicle_id;vehicle_x;vehicle_y\n{rows}"


def plain(places: list[tuple[float, float]]) -> str:
    return "t,id,x,y\n" + "".join(f"{5 * at},bus.1,{x},{y}\n" for at, (x, y) in enumerate(places))


MANILA = [(120.99 + 5e-4 * at, 14.57 + 2.5e-4 * at) for at in range(13)]
SANTIAGO = [(-70.66 + 1e-3 * at, -33.45) for at in range(5)]
MUNICH_LATITUDE_FIRST = [(48.13, 11.57 + 1e-3 * at) for at in range(5)]


# as receivers write, which report [0, 0] before they know where they are
WITHOUT_A_FIX = [(0, 0), *SANTIAGO]


@pytest.mark.parametrize("places", [MANILA, SANTIAGO, MUNICH_LATITUDE_FIRST, WITHOUT_A_FIX])
@pytest.mark.parametrize("form", [fcd, sumo_table, plain])
def test_degrees_are_not_taken_for_metres(write: Write, places: list, form: Callable) -> None:
    path = write(form(places))
    with refused_at("devices.mobility.path", "geo: true", "origin_lon_lat", "geo: false", "scale: 1000"):
        started(path)
    for declared, scale in (({"geo": False}, 1), ({"scale": 1000.0}, 1000)):
        still = started(path, **declared)[0].positions_m(0.0)[0]
        assert still.tolist() == pytest.approx([scale * each for each in places[0]])


def test_a_parquet_table_in_degrees_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    x, y = zip(*MANILA, strict=True)
    table = pyarrow.table({"t": list(range(13)), "id": ["a"] * 13, "x": x, "y": y})
    parquet.write_table(table, tmp_path / "trace")
    with refused_at("devices.mobility.path", "geo: true"):
        started(tmp_path / "trace")


@pytest.mark.parametrize(
    ("text", "geo", "columns"),
    [
        ("t,id,lon,lat\n0,a,8.4,49\n5,a,8.401,49\n", False, {}),
        ("t,id,a,b\n0,a,8.4,49\n5,a,8.401,49\n", False, {"lon": "a", "lat": "b"}),
        (
            '<gpx><trk><trkseg><trkpt lat="49" lon="8.4"><time>2026-01-05T08:00:00Z</time></trkpt></trkseg></trk>'
            "</gpx>",
            False,
            {},
        ),
        ("$node_(0) set X_ 8.4\n$node_(0) set Y_ 49\n$node_(0) set Z_ 0\n", True, {}),
    ],
)
def test_a_unit_that_contradicts_the_file_is_refused(
    write: Write, text: str, geo: bool, columns: dict
) -> None:
    with refused_at("devices.mobility.geo", f"geo: {str(geo).lower()}", "leave geo out"):
        started(write(text), origin=(8.4, 49.0), geo=geo, columns=columns)


def test_metres_may_stand_in_columns_that_are_called_degrees(write: Write) -> None:
    path, columns = write("t,id,lon,lat\n0,a,30,40\n5,a,35,40\n"), {"x": "lon", "y": "lat"}
    assert started(path, geo=False, columns=columns)[0].positions_m(5.0).tolist() == [[35, 40]]
    with refused_at("", "origin_lon_lat"):  # without geo, the names of the columns decide
        started(path, columns=columns)


def test_the_origin_that_is_missing_is_proposed(write: Write) -> None:
    with refused_at("devices.mobility.path", "origin_lon_lat", "[120.993, 14.5715]"):
        started(write(fcd(MANILA)), geo=True)


def test_milliseconds_are_not_taken_for_seconds(write: Write) -> None:
    path = write("t,id,x,y\n1767598200000,a,0,0\n1767598201000,a,9,0\n")
    with refused_at("devices.mobility.time_scale", "0.001"):
        started(path)
    assert started(path, time_scale=0.001)[0].positions_m(0.5).tolist() == [[4.5, 0]]
    with refused_at("devices.mobility.time_scale", "20260105080000", "write them as 2026-01-05T07:30:00Z"):
        started(write("t,id,x,y\n20260105080000,a,0,0\n20260105080001,a,9,0\n"))


# -- the kind of a file is in its content -------------------------------------------------------------


@pytest.mark.parametrize("name", ["fcd.gz", "sumoTrace", "trace.xml", "trace.csv", "trace.parquet"])
@pytest.mark.parametrize("packed", [False, True])
def test_names_do_not_matter(write: Write, name: str, packed: bool) -> None:
    text = fcd([(0, 0), (10, 0)]).encode()
    path = write(gzip.compress(text) if packed else text, name)
    assert started(path)[0].positions_m(2.5).tolist() == [[5, 0]]
    table = plain([(0, 0), (10, 0)]).encode()
    path = write(gzip.compress(table) if packed else table, name)
    assert started(path)[0].positions_m(2.5).tolist() == [[5, 0]]


# -- tables of GPS ------------------------------------------------------------------------------------

NUMBERS = {"id": 1, "t": 2, "lat": 3, "lon": 4}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("id,timestamp,latitude,longitude,alt\n7,2008-10-23T02:53:04Z,{0},9\n7,2008-10-23T02:53:10Z,{1},9\n", {}),
        ("User ID;UTC time;Lat;Lng\n7;2008/10/23 02:53:04;{0}\n7;2008/10/23 02:53:10;{1}\n", {}),
        ("when\twho\tlat\tlon\n1224730384\t7\t{0}\n1224730390\t7\t{1}\n", {"columns": {"t": "when", "id": "who"}}),
        ("7,2008-10-23T10:53:04+08:00,{0}\n7,2008-10-23T10:53:10+08:00,{1}\n", {"columns": NUMBERS}),
        ("{0} 0 0\n{1} 1 6\n", {"columns": {"lat": 1, "lon": 2, "t": 4}}),
        ("t,id,y,x\n0,7,{0}\n6,7,{1}\n", {"columns": {"lon": "x", "lat": "y"}}),
        ("time latitude longitude\n0 {0}\n6 {1}\n", {}),
    ],
)  # fmt: skip
def test_tables_of_gps(write: Write, text: str, keys: dict) -> None:
    """Two fixes 6 s apart differ by 2.1 m south and 2.8 m east, in every notation."""
    mark = next(mark for mark in ";\t, " if mark in text)
    fixes = [mark.join(fix) for fix in (("39.984702", "116.318417"), ("39.984683", "116.318450"))]
    moved, _ = started(write(text.format(*fixes)), BEIJING, **keys)
    first, last = near_m(116.318417, 39.984702, BEIJING), near_m(116.318450, 39.984683, BEIJING)
    assert np.subtract(last, first) == pytest.approx([2.82, -2.11], abs=0.01)
    assert moved.positions_m(0.0)[0] == pytest.approx(first, abs=1e-3)
    assert moved.positions_m(3.0)[0] == pytest.approx(np.mean([first, last], axis=0), abs=1e-3)
    assert moved.positions_m(6.0)[0] == pytest.approx(last, abs=1e-3)
    assert len(moved.recorded) == 1


def test_t_drive(write: Write) -> None:
    rows = "1,2008-02-02 15:36:08,116.51172,39.92123\n1,2008-02-02 15:46:08,116.51135,39.93883\n"
    moved, _ = started(write(rows), (116.51, 39.92))
    assert moved.positions_m(600.0)[0] == pytest.approx(
        near_m(116.51135, 39.93883, (116.51, 39.92)), abs=0.02
    )


def test_porto(write: Write) -> None:
    """The taxi's second trip begins an hour later; between the trips the taxi is absent."""
    head = '"TRIP_ID","TAXI_ID","TIMESTAMP","MISSING_DATA","POLYLINE"\n'
    trip = '"1","20000001","1372636858","False","[[-8.618643,41.141412],[-8.618499,41.141376]]"\n'
    later = '"2","20000001","1372640458","False","[[-8.6,41.14],[-8.6,41.141]]"\n"3","5","1372640458","False","[]"\n'
    moved, notes = started(write(head + trip + later), (-8.61, 41.14))
    assert moved.positions_m(15.0)[0] == pytest.approx(near_m(-8.618499, 41.141376, (-8.61, 41.14)), abs=0.06)
    assert np.isnan(moved.positions_m(1000.0)).all()
    assert moved.positions_m(3600.0)[0] == pytest.approx(near_m(-8.6, 41.14, (-8.61, 41.14)), abs=0.06)
    assert "3585 s" in notes[0]
    with refused_at("devices.mobility.path", ":2: POLYLINE is not a list"):
        started(write(head + trip.replace("]]", "]")), (-8.61, 41.14))


FIRST, SECOND, LAST = "39.984702,116.318417", "39.984683,116.318450", "39.984783,116.318450"
DIRTY = f"id,t,lat,lon\n7,0,{FIRST}\n7,6,,\n7,6,{SECOND}\n7,5,{SECOND}\n7,12,{LAST}\n7,6,0,0\n"
FAR = f"id,t,lat,lon\n7,0,0,0\n7,6,116.318450,39.984683\n7,6,{SECOND}\n7,9\n7,12,{LAST}\n"


@pytest.mark.parametrize(
    ("text", "bad", "first"), [(DIRTY, "2 of 6", ":3: lon"), (FAR, "3 of 5", ":2: '7' is at longitude 0")]
)
def test_bad_rows_are_skipped_on_request(write: Write, text: str, bad: str, first: str) -> None:
    path = write(text)
    with refused_at("devices.mobility.path", "bad_rows: skip"):
        started(path, BEIJING)
    moved, notes = started(path, BEIJING, bad_rows="skip", begin_s=0.0)
    assert f"bad rows skipped: {bad}; the first is {path}" in notes[0]
    assert first in notes[0]
    assert moved.positions_m(6.0)[0] == pytest.approx(near_m(116.318450, 39.984683, BEIJING), abs=1e-3)
    assert moved.positions_m(9.0)[0] == pytest.approx(near_m(116.318450, 39.984733, BEIJING), abs=1e-3)


def test_rows_of_several_devices_without_ids_are_not_offered_to_be_skipped(write: Write) -> None:
    path = write("t,x,y\n0,0,0\n1,0,0\n0,5,5\n")
    with refused_at(
        "devices.mobility.path", ":4: has the time 0 s after 1 s", "no column has ids"
    ) as refusal:
        started(path)
    assert "bad_rows" not in str(refusal.value)


@pytest.mark.parametrize(("good", "skipping"), [("", False), ("1,a,0,0\n", True)])
def test_skipping_is_offered_only_if_it_leaves_rows(good: str, skipping: bool, write: Write) -> None:
    """The error is about the first bad row in both cases, also if the good row follows."""
    path = write(f"t,id,x,y\n04.05.2026 07:30:00,a,0,0\n04.05.2026 07:30:01,a,0,0\n{good}")
    with refused_at(
        "devices.mobility.path", f"{path}:2: t holds '04.05.2026 07:30:00', not a time"
    ) as refusal:
        started(path)
    assert ("bad_rows: skip" in str(refusal.value)) is skipping


@pytest.mark.parametrize(
    "text",
    [
        "t,id,x,y\n4,a,4,0\n2,b,0,7\n2,a,2,0\n0,a,0,0\n1,a,1,0\n",
        "t,id,x,y\n2026-01-05T08:00:04+01:00,a,4,0\n2026-01-05T07:00:02Z,b,0,7\n2026-01-05T02:00:02-05:00,a,2,0\n"
        "2026-01-05T07:00:00Z,a,0,0\n2026-01-05T08:00:01+01:00,a,1,0\n",
    ],
)
def test_rows_are_sorted_by_time(write: Write, text: str) -> None:
    """The order of rows does not matter, also if their dates are in several time zones."""
    path = write(text)
    moved, notes = started(path)
    assert [device.id for device in moved.recorded] == ["a", "b"]
    assert [moved.positions_m(time_s)[0].tolist() for time_s in (0.0, 1.5, 3.0, 4.0)] == [
        [x, 0] for x in (0.0, 1.5, 3.0, 4.0)
    ]
    assert moved.positions_m(2.0)[1].tolist() == [0, 7]
    assert notes == [
        f"{path}: rows sorted by time: 2 of 5 follow a later row of their device; if a device's times begin again,"
        " give each recording its own id"
    ]


def test_a_begin_after_the_trace_is_shown_as_the_traces_times(write: Write) -> None:
    path = write("t,id,x,y\n2026-05-04T07:30:00+02:00,a,0,0\n2026-05-04T07:35:00+02:00,a,9,0\n")
    with refused_at(
        "devices.mobility.begin_s",
        f"2026-05-04T07:31:00Z is after the last sample of {path}, 2026-05-04T05:35:00Z; set an earlier time; a date",
    ):
        started(path, begin_s="2026-05-04T07:31:00")
    path = write("t,id,x,y\n0,a,0,0\n5,a,9,0\n")
    with refused_at("", f"7 s is after the last sample of {path}, 5 s; set an earlier time"):
        started(path, begin_s=7)


def test_a_run_may_begin_at_a_date(write: Write) -> None:
    """begin_s may be a date in any time zone (by default UTC), or a date object made by the YAML reader."""
    path = write("id,time,x,y\na,2026-01-05 07:30:00Z,0,0\na,2026-01-05T08:30:10+01:00,50,0\n")
    texts = ("2026-01-05T07:30:04", "2026-01-05T07:30:04Z", "2026-01-05T16:30:04+09:00")
    for date in (*texts, *map(yaml.safe_load, texts), 1767598204):
        assert started(path, begin_s=date)[0].positions_m(2.0).tolist() == [[30, 0]]


@pytest.mark.parametrize(("unit", "time_scale"), [(1_000, 1e-3), (1_000_000, 1e-6)])
def test_a_date_is_found_among_times_in_milliseconds(write: Write, unit: int, time_scale: float) -> None:
    """begin_s may be a date, or in seconds since 1970; it is never in the unit of the trace's times."""
    path = write(f"t,id,x,y\n{1767598200 * unit},a,0,0\n{1767598210 * unit},a,50,0\n")
    for begin in ("2026-01-05T07:30:04Z", 1767598204):
        (place,) = started(path, time_scale=time_scale, begin_s=begin)[0].positions_m(2.0).tolist()
        assert place == pytest.approx([30, 0], abs=1e-4)
    with refused_at("devices.mobility.begin_s", "is after the last sample"):
        started(path, time_scale=time_scale, begin_s="2026-01-05T07:31:00Z")
    with refused_at("devices.mobility.begin_s", "is after the last sample"):
        started(path, time_scale=time_scale, begin_s=1767598204 * unit)
    path = write("t,id,x,y\n2026-01-05T07:30:00Z,a,0,0\n2026-01-05T07:30:10Z,a,50,0\n")
    slow = started(path, time_scale=2, begin_s="2026-01-05T07:30:04Z")[0]  # half as fast
    assert slow.positions_m(2.0).tolist() == [[25, 0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t,car,bus,x,y\n0,1,2,3,4\n", ()),
        ("t,user,device,x,y\n0,1,2,3,4\n", ("user and device could each be id", "columns: {id: user}")),
        (
            "t,id,lat,lon,X,Y\n0,1,48.1,11.5,0.3,9.8\n",
            ("has lon, lat and X, Y: choose with columns: {lon: lon, lat: lat} or {x: X, y: Y}",),
        ),
        ("t,id,x,y\n0,a,1,1\n2026-01-05,a,2,2\n", (":3: t holds '2026-01-05'", "numbers")),
        ("t,id,x,y\n5.6.2026,a,1,1\n", (":2: t holds '5.6.2026', not a time", "2026-01-05T07:30:00Z")),
        ("1,2,3,4\n", ("columns: {t: NAME",)),
    ],
)
def test_what_a_table_leaves_open_is_refused_or_noted(
    write: Write, text: str, words: tuple[str, ...]
) -> None:
    path = write(text)
    if not words:  # `bus` has ids
        assert started(path)[0].recorded[0].id == "2"
        return
    with refused_at("devices.mobility.path", *words):
        started(path)


def test_a_table_without_ids_is_one_device_and_says_so(write: Write) -> None:
    moved, notes = started(write("t,x,y\n0,1,2\n2,3,2\n", "anna.csv"))
    assert [device.id for device in moved.recorded] == ["anna"]
    assert "no column has ids" in notes[0]


def test_people_without_ids_are_not_skipped_as_bad_rows_of_one(write: Write) -> None:
    """Without ids, rows of three people would count as rows of one person, and two rows in three would be skipped."""
    rows = [f"{t},{name},{x},0" for t in (0, 1) for x, name in enumerate(("anna", "ben", "cleo"))]
    path = write("t,person,x,y\n" + "\n".join(rows) + "\n")
    with refused_at("devices.mobility.columns", "no column has ids", "4 of 6 rows"):
        started(path, bad_rows="skip")
    moved, _ = started(path, bad_rows="skip", columns={"id": "person"})
    assert [device.id for device in moved.recorded] == ["anna", "ben", "cleo"]


def test_columns_that_are_not_there(write: Write) -> None:
    path = write("t,name,x,y\n0,a,1,1\n")
    with refused_at("devices.mobility.path", ":1: has no column 'nam'", "did you mean 'name'"):
        started(path, columns={"id": "nam"})
    with refused_at("devices.mobility.path", ":1: has only 4 columns"):
        started(path, columns={"id": 5})


# -- several files ------------------------------------------------------------------------------------

PLT = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"


def test_geolife(write: Write, tmp_path: Path) -> None:
    """Each user has a folder, and each track a file; day 39744.1201851852 is 2008-10-23 02:53:04."""
    fixes = "39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\n"
    write(PLT + fixes, "Data/000/Trajectory/20081023025304.plt")
    later = "39.984683,116.31845,0,492,39744.1618518519,2008-10-23,03:53:04\n"
    write(PLT + later, "Data/000/Trajectory/20081023035304.plt")
    write(PLT + fixes, "Data/001/Trajectory/20081023025304.plt")
    write("junk", "Data/001/.DS_Store")
    for path in (tmp_path / "Data", tmp_path / "Data/*/Trajectory/*.plt"):
        moved, _ = started(path, BEIJING, begin_s="2008-10-23T02:53:04Z")
        assert [device.id for device in moved.recorded] == ["000", "001"]
        assert moved.positions_m(0.0)[1] == pytest.approx(near_m(116.318417, 39.984702, BEIJING), abs=1e-3)
        assert moved.positions_m(3600.0)[0] == pytest.approx(near_m(116.31845, 39.984683, BEIJING), abs=1e-3)


def test_files_without_ids_are_a_device_each(write: Write, tmp_path: Path) -> None:
    write("time,x,y\n0,1,2\n4,9,2\n", "day/anna.csv")
    write(gzip.compress(b"t x y\n1 5 5\n3 7 5\n"), "day/more/ben.csv.gz")
    moved, _ = started(tmp_path / "day")
    assert [device.id for device in moved.recorded] == ["anna", "more/ben"]
    assert moved.positions_m(2.0).tolist() == [[5, 2], [6, 5]]
    write("t,id,lon,lat\n0,a,1,1\n", "day/z.csv")
    with refused_at("devices.mobility.path", "z.csv: is in degrees"):
        started(tmp_path / "day")
    with refused_at("devices.mobility.path", "*.txt"):
        started(tmp_path / "day" / "*.txt")
    (tmp_path / "none").mkdir()
    with refused_at("devices.mobility.path", "folder without files"):
        started(tmp_path / "none")


GPX = (
    '<?xml version="1.0"?>\n<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><metadata><time>2020-01-01'
    "T00:00:00Z</time></metadata><trk><name>run</name><trkseg>\n"
    '<trkpt lat="48.13" lon="11.57"><ele>500</ele><time>2026-01-05T07:30:00Z</time></trkpt>\n'
    '<trkpt lat="48.131" lon="11.57"><time>2026-01-05T08:30:10.5+01:00</time></trkpt>\n'
    "</trkseg></trk></gpx>"
)


def test_gpx(write: Write) -> None:
    moved, _ = started(write(GPX, "anna.gpx"), (11.57, 48.13))
    assert [device.id for device in moved.recorded] == ["anna"]
    # a degree of latitude is 111,196 m long here on WGS 84
    assert moved.positions_m(10.5)[0] == pytest.approx([0, 111.20], abs=0.01)
    for wrong, words in (
        (GPX.replace("<time>2026-01-05T07:30:00Z</time>", ""), ":3: <trkpt> has no <time>"),
        (GPX.replace('lat="48.13"', ""), ":3: <trkpt> lat is missing"),
    ):
        with refused_at("devices.mobility.path", words):
            started(write(wrong, "anna.gpx"), (11.57, 48.13))


# -- waypoints of other simulators --------------------------------------------------------------------

NS2 = """# nodes: 2, pause: 2.00, max speed: 5.00
$node_(0) set X_ 10.0
$node_(0) set Y_ 20.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 0.0
$node_(1) set Y_ 0.0
$ns_ at 2.0 "$node_(0) setdest 10.0 60.0 4.0"
$ns_ at 7.0 "$node_(0) setdest 40.0 40.0 3.0"
$ns_ at 100.0 "$node_(1) setdest 0.0 10.0 1.0"
$god_ set-dist 0 1 1
"""


def test_ns2(write: Write) -> None:
    """On its way to (10, 60), node 0 turns at (10, 40) towards (40, 40), where it arrives at 17 s."""
    moved, notes = started(write(NS2, "mobility.tcl"))
    at = {0: [10, 20], 2: [10, 20], 4.5: [10, 30], 7: [10, 40], 12: [25, 40], 17: [40, 40], 110: [40, 40]}
    for time_s, place in at.items():
        assert moved.positions_m(time_s)[0] == pytest.approx(place), time_s
    assert moved.positions_m(100.0)[1].tolist() == [0, 0]
    assert moved.positions_m(105.0)[1] == pytest.approx([0, 5])
    assert np.isnan(moved.positions_m(110.01)).all()
    assert notes == []  # the long pauses do not count as absences


def test_ns2_nodes_that_stop_or_jump(write: Write) -> None:
    text = """$node_(0) set X_ 0.0
$node_(0) set Y_ 0.0
$ns_ at 0.0 "$node_(0) setdest 100.0 0.0 10.0"
$ns_ at 4.0 "$node_(0) setdest 100.0 0.0 0.0"
$ns_ at 8.0 "$node_(0) set X_ 7.0"
$ns_ at 8.0 "$node_(0) set Y_ 9.0"
$ns_ at 12.0 "$node_(0) setdest 7.0 19.0 5.0"
"""
    moved, _ = started(write(text))
    at = {2: [20, 0], 4: [40, 0], 7.99: [40, 0], 8: [7, 9], 12: [7, 9], 13: [7, 14], 14: [7, 19]}
    for time_s, place in at.items():
        assert moved.positions_m(time_s)[0] == pytest.approx(place), time_s
    for wrong, words in (
        ('$node_(0) set X_ 1\n$ns_ at 1 "$node_(0) setdest 1 2 3"', "no initial position"),
        (text.replace("100.0 0.0 10.0", "100.0 0.0 -1"), ":3: speed -1 is below 0"),
        (text.replace("100.0 0.0 10.0", "100.0 $y"), ":3: is not a setdest"),
    ):
        with refused_at("devices.mobility.path", words):
            started(write(wrong))


@pytest.mark.parametrize("packed", [False, True])
def test_bonnmotion_is_the_same_movement(write: Write, packed: bool) -> None:
    """BonnMotion's waypoints, in two or three dimensions, describe the same movement as NS2's nodes."""
    flat = "0 10 20 2 10 20 7 10 40 17 40 40 17 40 40\n0.0 0 0 100.0 0 0 110.0 0 10\n"
    high = "0 10 20 1 2 10 20 1 7 10 40 1 17 40 40 1\n0.0 0 0 1 100.0 0 0 1 110.0 0 10 2\n"
    expected, _ = started(write(NS2))
    for text in (flat, high):
        content = text.encode()
        moved, notes = started(write(gzip.compress(content) if packed else content, "rwp.movements"))
        assert notes == []
        for time_s in np.linspace(0, 111, 38).tolist():
            assert np.allclose(moved.positions_m(time_s), expected.positions_m(time_s), equal_nan=True)
    with refused_at("devices.mobility.path", ":3: 5 numbers are not waypoints"):
        started(write("0 10 20\n0 1 0 2\n0 1 0 2 7\n", "rwp.movements"))


def test_one(write: Write) -> None:
    moved, notes = started(
        write("0 100 0 500 0 500 0 0\n0 p1 0 0\n0 p2 5 5\n50.0 p1 100 0\n90.0 p1 100 40\n")
    )
    assert [device.id for device in moved.recorded] == ["p1", "p2"]
    assert moved.positions_m(25.0)[0] == pytest.approx([50, 0])
    assert moved.positions_m(70.0)[0] == pytest.approx([100, 20])
    assert notes == []
    with refused_at("devices.mobility.path", ":1: is a list of ONE's contacts", "external movement"):
        started(write("0.5\tCONN\t1\t2\tup\n3\tCONN\t1\t2\tdown\n"))


# -- gaps ---------------------------------------------------------------------------------------------


def gap_fcd() -> str:
    """Return a trace with vehicle a at 0 to 10 s and 50 to 60 s, and person p all the time."""
    rows = []
    for t in range(61):
        a = f'<vehicle id="a" x="{10 * t}" y="30" type="car"/>' if t <= 10 or t >= 50 else ""
        rows.append(f'<timestep time="{t}.00">{a}<person id="p" x="3" y="{t}"/></timestep>\n')
    return f"<fcd-export>{''.join(rows)}</fcd-export>"


def gap_table() -> str:
    rows = []
    for t in range(61):
        a = f"a;{10 * t};30" if t <= 10 or t >= 50 else ";;"
        rows.append(f"{t};{a};;;\n{t};;;;p;3;{t}\n")
    head = "timestep_time;vehicle_id;vehicle_x;vehicle_y;person_id;person_x;person_y\n"
    return head + "".join(rows)


@pytest.mark.parametrize("text", [gap_fcd(), gap_table()])
def test_a_vehicle_that_no_time_step_lists_is_absent(write: Write, text: str) -> None:
    path = write(text)
    moved, notes = started(path)
    there = [t for t in range(61) if np.isfinite(moved.positions_m(float(t))[0]).all()]
    assert there == [*range(11), *range(50, 61)]
    assert all(np.isfinite(moved.positions_m(float(t))[1]).all() for t in range(61))
    assert "absent: 1; the longest lasts 40 s" in notes[0]
    bridged, notes = started(path, max_gap_s=1e9)
    assert bridged.positions_m(30.0)[0].tolist() == [300, 30]
    assert notes == []
    limited, (note,) = started(path, max_gap_s=39)
    assert np.isnan(limited.positions_m(30.0)[0]).all()
    assert "gaps of more than 39 s between samples, in which devices are absent: 1 of " in note


def test_each_file_of_a_folder_has_its_own_time_steps(write: Write, tmp_path: Path) -> None:
    """A step of the bus's file, every 0.5 s, is no absence of the car, whose file has a step every second."""
    every = [(10.0 * at, 5.0) for at in range(9)]
    write(fcd(every, step_s=1, of="car"), "town/a.xml")
    write(fcd(every, step_s=0.5, of="bus"), "town/b.xml")
    movement, notes = started(tmp_path / "town")
    assert not notes
    assert movement.positions_m(2.25).tolist() == pytest.approx(np.array([[22.5, 5.0], [45.0, 5.0]]))


def test_a_car_goes_on_in_the_next_file(write: Write, tmp_path: Path) -> None:
    for name, first_s in (("a", 0), ("b", 4)):
        steps = (
            f'<timestep time="{at_s}"><vehicle id="car" x="{at_s}" y="0"/></timestep>'
            for at_s in range(first_s, first_s + 4)
        )
        write(f"<fcd-export>{''.join(steps)}</fcd-export>", f"town/{name}.xml")
    assert started(tmp_path / "town")[0].positions_m(3.5).tolist() == [[3.5, 0.0]]


def test_a_missing_step_of_a_fast_simulation_is_an_absence_too(write: Write) -> None:
    text = fcd([(at, 0) for at in range(20)], 0.1).replace(
        '<timestep time="0.5">', '<timestep time="0.5"><!--'
    )
    text = text.replace(
        'type="bus"/></timestep>\n<timestep time="0.6000', '--></timestep>\n<timestep time="0.6000'
    )
    moved, notes = started(write(text))
    assert np.isnan(moved.positions_m(0.55)).all()
    assert "absent: 1; the longest lasts 0.2 s" in notes[0]


@pytest.mark.parametrize(("every_s", "limit_s"), [(1, 60), (5, 60), (30, 300)])
def test_gps_gaps_are_measured_by_the_usual_interval(write: Write, every_s: int, limit_s: int) -> None:
    """A gap is allowed up to ten usual intervals, or a minute if this is longer; each device has its own limit."""
    for gap_s, absent in ((limit_s, False), (limit_s + 1, True)):
        times = [every_s * at for at in range(20)]
        times += [times[-1] + gap_s + every_s * at for at in range(20)]
        rows = [f"{t},a,{t},0" for t in times] + [f"{500 * t},slow,{t},0" for t in range(5)]
        moved, notes = started(write("t,id,x,y\n" + "\n".join(rows)))
        assert np.isnan(moved.positions_m(times[19] + gap_s / 2)[0]).all() == absent
        assert np.isfinite(moved.positions_m(750.0)[1]).all()
        assert bool(notes) == absent


# -- devices of a trace -------------------------------------------------------------------------------

SCENARIO = """
name: town
duration_s: 20
devices: {count: all, mobility: {name: trace, path: %s}%s}
sessions: {name: interval, length_s: 10}
rounds: {every_s: 5}
workload: {payload_bits: 1000000, flops_per_sample: 1.0e+6}
"""


def world(tmp_path: Path, trace: Path, more: str = "", count: str = "all") -> World:
    from edgefl.rng import Streams

    file = tmp_path / "town.yaml"
    file.write_text((SCENARIO % (trace, more)).replace("count: all", f"count: {count}"))
    scenario = load(file)
    return World(scenario, Streams(scenario.seed))


def test_all_devices_of_a_trace(write: Write, tmp_path: Path) -> None:
    trace = write("t,id,x,y\n" + "".join(f"{t},d{n},{n},{t}\n" for t in (0, 30) for n in range(7)))
    assert world(tmp_path, trace).count == 7
    shares = ", classes: {a: {share: 0.5}, b: {}}, classes_by: ids"
    assert world(tmp_path, trace, shares).fleet.class_names() == ["a"] * 4 + ["b"] * 3
    with pytest.raises(EdgeflError, match=r"set devices\.count: 7, or devices\.count: all"):
        _ = world(tmp_path, trace, count="8").movement
    own = ", classes: {a: {share: 0.5, mobility: static}, b: {}}"
    with pytest.raises(EdgeflError, match=r"leave classes\.a\.mobility out"):
        world(tmp_path, trace, own)


TYPES = (
    '<fcd-export><timestep time="0"><vehicle id="1" x="0" y="0" type="bus"/><vehicle id="2" x="0" y="9" type="car"/>'
    '<person id="3" x="5" y="5" type="soft:ped"/><vehicle id="4" x="9" y="0" type="bus"/></timestep><timestep time='
    '"1"><vehicle id="1" x="0" y="0" type="car"/></timestep></fcd-export>'
)


@pytest.mark.parametrize("count", ["all", "4"])
def test_types_of_a_trace_are_classes(write: Write, tmp_path: Path, count: str) -> None:
    classes = (
        "classes: {person: {clock_hz: 2.0e+8}, bus: {transmit_power_dbm: 26}, car: {}}, classes_by: types"
    )
    made = world(tmp_path, write(TYPES), f", {classes}", count)
    assert made.fleet.class_names() == ["bus", "car", "person", "bus"]
    assert made.fleet.device(0).transmit_power_dbm == 26
    column = write("t,id,x,y,mode\n0,a,0,0,walk\n0,b,0,0,car\n", "t.csv")
    walks = ", classes: {walk: {}, car: {}}, classes_by: types"
    assert world(tmp_path, column, walks).fleet.class_names() == ["walk", "car"]


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ("{bus: {}, person: {}}", "device '2' of the trace has type 'car' and kind vehicle"),
        ("{bus: {}, vehicle: {}, person: {}, tram: {}}", "types are bus, car, soft:ped"),
        ("{bus: {share: 0.5}, vehicle: {}}", "leave share and count of classes.bus out"),
    ],
)
def test_classes_and_types_must_fit(write: Write, tmp_path: Path, classes: str, words: str) -> None:
    with pytest.raises(EdgeflError) as caught:
        _ = world(tmp_path, write(TYPES), f", classes: {classes}, classes_by: types").fleet
    assert words in str(caught.value)


# -- faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_each_form_can_be_read(write: Write, form: str) -> None:
    """The files that the next test mutates have the expected formats."""
    moved, _ = started(write(FORMS[form]), (11.57, 48.13))
    assert len(moved.recorded) == (2 if form in ("fcd", "metres", "bonnmotion", "one") else 1)


def test_changed_traces_are_read_or_refused_with_their_place(tmp_path: Path) -> None:
    """Changed traces, a sample of the cases of `make fuzz`, raise nothing but an EdgeflError that names the file."""
    messages, cases = [], 100
    for number in range(cases):
        files = trace_case(2, number).files
        (tmp_path / "trace").write_bytes(files["trace"])
        try:
            started(tmp_path / "trace", (11.57, 48.13), bad_rows="skip" if number % 2 else "error")
        except EdgeflError as error:
            messages.append(str(error))
    assert 20 < len(messages) < cases - 20
    assert [text for text in messages if str(tmp_path / "trace") not in text or len(text) > 1000] == []
