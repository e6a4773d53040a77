"""Test that devices follow recorded paths exactly, and that every error names a place and a remedy."""

import gzip
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import EdgeflError
from edgefl.mobility import Movement
from edgefl.mobility.trace import Trace
from edgefl.places.areas import Places
from edgefl.places.plane import LocalPlane
from edgefl.rng import Streams
from tests.refusals import refused_at

# written by SUMO 1.28.0: a bus, a car, a pedestrian, and a person with the bus's id who rides on the bus
GOLDEN = Path(__file__).parents[2] / "golden" / "sumo_fcd.xml"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "trace.csv") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def start(model: Trace, devices: int) -> Movement:
    return model.start(np.zeros((devices, 2)), cell_radius_m=250.0, min_distance_m=10.0, streams=Streams(0))


def test_the_distance_of_a_device_with_one_sample_needs_no_warning(write: Write) -> None:
    """The device is there for 5e-324 s, the smallest number, by which nothing can be divided without overflow."""
    movement = start(Trace(path=write("t,id,x,y\n0,a,300,400\n")), 1)
    assert movement.closest_m(20.0) == 500.0


@pytest.mark.parametrize(
    ("scale", "time_scale", "walked", "remedy"),
    [
        (
            0.001,
            1.0,
            1.0,
            "time_scale: 0.001 if t is in milliseconds, or scale: 0.01 if x and y are in centimetres",
        ),
        (1000.0, 1.0, 1e-5, "time_scale: 0.001 if t is in milliseconds"),
        (
            1.0,
            0.001,
            100.0,
            "set devices.mobility.scale: 0.01 if x and y are in centimetres or 0.001 if in millimetres,"
            " or time_scale: 1 if t is in seconds",
        ),
        (
            0.01,
            60.0,
            9e7,
            "set devices.mobility.scale: 0.001 if x and y are in millimetres, or time_scale: 3600 if t is in hours",
        ),
        (1000.0, 1e-6, 1e-12, "set another scale or time_scale in devices.mobility"),
    ],
)
def test_the_units_next_to_those_in_use_are_suggested(
    scale: float, time_scale: float, walked: float, remedy: str, write: Write
) -> None:
    """In 60 units of time, a device moves by `walked` units of length, which is too slow or too fast to be true."""
    path = write(f"t,id,x,y\n0,a,0,0\n60,a,{walked:g},0\n0,b,99000,0\n60,b,99000,0\n")
    model = Trace(path=str(path), scale=scale, time_scale=time_scale, geo=False)
    start(model, 2)
    (note,) = model.places.notes
    assert note.endswith(remedy)


@pytest.mark.parametrize(
    ("unit_m", "unit_s", "remedy"),
    [
        (1.0, 1.0, ""),
        (
            1000.0,
            1.0,
            "within 1 m, so set devices.mobility.scale: 1000 if x and y are in kilometres, or time_scale",
        ),
        (
            1.0,
            0.001,
            "within 1000 m, so set devices.mobility.time_scale: 0.001 if t is in milliseconds, or scale: 1000",
        ),
        (0.001, 1.0, "0.01 if x and y are in centimetres or 0.001 if in millimetres, or time_scale: 60"),
        (0.01, 1.0, "in seconds: set devices.mobility.scale: 0.01 if x and y are in centimetres or 0.001"),
    ],
)
def test_a_trace_in_other_units_is_noted(write: Write, unit_m: float, unit_s: float, remedy: str) -> None:
    """If km, ms, cm or mm make a walk too slow for a pedestrian or too fast for a train, a note names the units."""
    rows = [(0, 0, 0.0), (60, 0, 80.0), (0, 1, 1000.0), (60, 1, 1000.0)]
    text = "t,id,x,y\n" + "".join(f"{t / unit_s:g},{id_},{x / unit_m:g},0\n" for t, id_, x in rows)
    model = Trace(path=str(write(text)))
    start(model, 2)
    noted = [note for note in model.places.notes if "m/s; x and y must be in metres" in note]
    assert [remedy in note for note in noted] == [True] * bool(remedy)


@pytest.mark.parametrize(
    ("degrees", "dated", "step", "said"),
    [
        (True, True, 1e-6, None),  # a slow walk, and no unit can be wrong
        (
            True,
            False,
            1e-6,
            "m/s; t must be in seconds: all positions lie within 0.67 m, so set {}time_scale: 0.001",
        ),
        (
            False,
            True,
            0.01,
            "m/s; x and y must be in metres: all positions lie within 0.09 m, so set {}scale: 1000",
        ),
        (True, True, 0.1, "m/s; correct positions or times of the trace"),
        (False, True, 400.0, "m/s; x and y must be in metres: set {}scale: 0.01"),
    ],
)
def test_units_of_degrees_and_dates_are_not_in_doubt(
    write: Write, degrees: bool, dated: bool, step: float, said: str | None
) -> None:
    """A device takes nine steps of 1 s; degrees and dates have one unit, so no other is suggested for them."""
    base, names = (11.0, "lon,lat") if degrees else (0.0, "x,y")
    rows = [
        f"{f'2026-05-04T05:30:0{n}Z' if dated else n},a,{base + step * n:.7f},{48 if degrees else 0}\n"
        for n in range(10)
    ]
    model = Trace(path=str(write(f"t,id,{names}\n{''.join(rows)}")))
    model = model.within(Places(plane=LocalPlane(11.0, 48.0) if degrees else None))
    start(model, 1)
    noted = [note for note in model.places.notes if " m/s; " in note]
    assert [(said or "").format("devices.mobility.") in note for note in noted] == [True] * bool(said)
    assert all(("time_scale" in note) is not dated for note in noted)


@pytest.mark.parametrize(("wrong", "fast", "first_m_s"), [(0, 1, 2998.5), (50, 2, 3001.5), (99, 1, 3001.5)])
def test_a_wrong_position_is_named_rather_than_units(
    write: Write, wrong: int, fast: int, first_m_s: float
) -> None:
    """A walker at 1.5 m/s has one position 6 km off; with wrong units, all of its steps would be fast."""
    rows = [(2 * n, id_, 3.0 * n + 6000 * (n == wrong and id_ == "b")) for n in range(100) for id_ in "abc"]
    model = Trace(path=str(write("t,id,x,y\n" + "".join(f"{t},{id_},{x:g},0\n" for t, id_, x in rows))))
    start(model, 3)
    (note,) = model.places.notes
    assert (
        f": {fast} of 297 steps between samples are faster than a train, the first {first_m_s:,.0f} m/s"
        in note
    )
    assert note.endswith(f"; correct or remove the row of 'b' at {2 * wrong} s, and any others like it")
    assert "scale" not in note


def walk(path: Path, devices: int, times: list[float], **parameters: object) -> list[list[list[float]]]:
    movement = start(Trace(path=path, **parameters), devices)
    return [movement.positions_m(t).tolist() for t in times]


NOWHERE = [pytest.approx(float("nan"), nan_ok=True)] * 2


# -- positions ----------------------------------------------------------------------------------------


def test_straight_lines_between_samples_and_absence_around_them(write: Write) -> None:
    path = write("t,id,x,y\n0,a,0,0\n0,b,5,5\n10,a,20,-10\n4,b,5,5\n12,a,20,0\n")
    assert walk(path, 2, [0, 2.5, 4, 4.001, 10, 11, 12, 12.001, 1e6]) == [
        [[0, 0], [5, 5]],
        [[5, -2.5], [5, 5]],
        [[8, -4], [5, 5]],
        [[pytest.approx(8.002), pytest.approx(-4.001)], NOWHERE],
        [[20, -10], NOWHERE],
        [[20, -5], NOWHERE],
        [[20, 0], NOWHERE],
        [NOWHERE, NOWHERE],
        [NOWHERE, NOWHERE],
    ]


def test_simulation_begins_at_the_first_sample_or_when_told(write: Write) -> None:
    path = write("id,y,x,t,speed\nlate,0,8,105,\nearly,1,2,100,x\nearly,1,4,102,\n")
    assert walk(path, 2, [0, 1, 5]) == [[NOWHERE, [2, 1]], [NOWHERE, [3, 1]], [[8, 0], NOWHERE]]
    # the run begins in the middle of a segment
    assert walk(path, 2, [0, 4], begin_s=101) == [[NOWHERE, [3, 1]], [[8, 0], NOWHERE]]
    with refused_at("devices.mobility.begin_s", "106 s"):
        walk(path, 2, [0], begin_s=106)


def test_scales_and_origin(write: Write) -> None:
    path = write("t,id,x,y\n0,a,1,2\n1,a,2,2\n")
    # time in minutes, positions in kilometres
    movement = start(Trace(path=path, scale=1000, time_scale=60, origin_m=(1000.0, 1000.0)), 1)
    assert movement.positions_m(30.0)[0] == pytest.approx([500.0, 1000.0])
    assert movement.positions_m(60.0).tolist() == [[1000.0, 1000.0]]
    assert movement.doppler_speeds_m_s() == pytest.approx([1000 / 60])
    later = start(Trace(path=path, scale=1000, time_scale=60, begin_s=30.0), 1)  # 30 s, not 30 minutes
    assert later.positions_m(0.0)[0] == pytest.approx([1500.0, 2000.0])


def test_a_long_gap_is_an_absence(write: Write) -> None:
    path = write("t,id,x,y\n0,a,0,0\n1,a,2,0\n5,a,50,0\n6,a,50,4\n")
    assert walk(path, 1, [0.5, 1, 3, 5, 6], max_gap_s=3.9) == [
        [[1, 0]],
        [[2, 0]],
        [NOWHERE],
        [[50, 0]],
        [[50, 4]],
    ]
    assert walk(path, 1, [3], max_gap_s=4) == [[[26, 0]]]
    # the gap's distance and time do not count; the remaining distances are 2 m and 4 m, in a second each
    assert start(Trace(path=path, max_gap_s=3.9), 1).doppler_speeds_m_s() == pytest.approx([3.0])
    assert start(Trace(path=path), 1).doppler_speeds_m_s() == pytest.approx([54 / 6])


def test_a_single_sample_is_a_moment(write: Write) -> None:
    path = write("t,id,x,y\n0,a,0,0\n7,b,1,2\n8,c,0,0\n9,c,0,0\n")
    assert walk(path, 3, [6.999, 7, 7.001]) == [[NOWHERE] * 3, [NOWHERE, [1, 2], NOWHERE], [NOWHERE] * 3]
    assert start(Trace(path=path), 3).doppler_speeds_m_s().tolist() == [0, 0, 0]


@given(
    data=st.dictionaries(
        st.sampled_from("abc"),
        st.dictionaries(st.integers(0, 50), st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1),
        min_size=1,
    ),
    times=st.lists(st.floats(0, 60), max_size=10),
)
@settings(max_examples=60)
def test_any_trace_is_interpolated(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, dict[int, tuple[int, int]]], times: list[float]
) -> None:
    path = tmp_path_factory.mktemp("any") / "trace.csv"
    rows = [(t, id_, *data[id_][t]) for id_ in data for t in sorted(data[id_])]
    path.write_text("t,id,x,y\n" + "".join(f"{t},{id_},{x},{y}\n" for t, id_, x, y in rows))
    movement = start(Trace(path=path, begin_s=0.0, max_gap_s=1e9), len(data))
    for time_s in times:
        for device, samples in enumerate(data.values()):
            at = sorted(samples)
            inside = at[0] <= time_s <= at[-1]
            expected = [
                np.interp(time_s, at, [samples[t][axis] for t in at]) if inside else np.nan for axis in (0, 1)
            ]
            assert np.allclose(movement.positions_m(time_s)[device], expected, equal_nan=True, atol=1e-9)


# -- SUMO ---------------------------------------------------------------------------------------------


def sumo_samples(path: Path) -> dict[tuple[str, str], dict[float, list[float]]]:
    """Return the time -> position samples of each (element, id), read without edgefl."""
    samples: dict[tuple[str, str], dict[float, list[float]]] = {}
    for timestep in ElementTree.parse(path).getroot():
        for element in timestep:
            place = [float(element.attrib[axis]) for axis in "xy"]
            device = samples.setdefault((element.tag, element.attrib["id"]), {})
            device[float(timestep.attrib["time"])] = place
    return samples


def test_sumo_floating_car_data(tmp_path: Path) -> None:
    samples = sumo_samples(GOLDEN)
    assert list(samples) == [("vehicle", "bus"), ("person", "walker"), ("person", "bus"), ("vehicle", "car")]
    # the file may also be compressed, as SUMO does if the name ends with .gz
    packed = tmp_path / "fcd.xml.gz"
    packed.write_bytes(gzip.compress(GOLDEN.read_bytes()))
    for path in (GOLDEN, packed):
        movement = start(Trace(path=path), 4)
        for time_s in range(40):
            expected = [device.get(float(time_s), [np.nan, np.nan]) for device in samples.values()]
            assert np.array_equal(movement.positions_m(time_s), expected, equal_nan=True)
    # the rider waits, and then is where the bus is until the bus leaves the file
    riding = [
        samples["person", "bus"][t] == samples["vehicle", "bus"].get(t) for t in samples["person", "bus"]
    ]
    assert riding == sorted(riding)
    assert sum(riding) > 10


def test_sumo_kinds(write: Write) -> None:
    text = GOLDEN.read_text().replace('<person id="walker"', '<container id="walker"')
    path = write(text, "fcd.xml")
    for kinds, devices in ((["vehicle"], 2), (["person"], 1), (["container", "vehicle"], 3)):
        assert start(Trace(path=path, kinds=kinds), devices).positions_m(0.0).shape == (devices, 2)
    with refused_at("devices.mobility.path", "container"):
        start(Trace(path=GOLDEN, kinds=["container"]), 1)


def as_table(samples: dict[tuple[str, str], dict[float, list[float]]], separator: str = ";") -> str:
    """Return the table that SUMO or its xml2csv.py writes, in which a row fills only the columns of its kind."""
    kinds = sorted({kind for kind, _ in samples})
    lines = [["timestep_time", *(f"{kind}_{what}" for kind in kinds for what in ("id", "speed", "x", "y"))]]
    for time_s in sorted({t for device in samples.values() for t in device}):
        lines.append([f"{time_s:.2f}", *[""] * 4 * len(kinds)])  # a row without devices
        for (kind, id_), places in samples.items():
            if time_s in places:
                row = [f"{time_s:.2f}", *[""] * 4 * len(kinds)]
                at = 1 + 4 * kinds.index(kind)
                row[at : at + 4] = [id_, "1.00", *map(str, places[time_s])]
                lines.append(row)
    return "\n".join(separator.join(line) for line in lines) + "\n"


@pytest.mark.parametrize("separator", [";", ","])
def test_sumo_tables_are_the_same_as_its_xml(write: Write, separator: str) -> None:
    path = write(as_table(sumo_samples(GOLDEN), separator), "fcd.csv")
    for kinds, devices in ((["vehicle", "person"], 4), (["vehicle"], 2), (["person"], 2)):
        table, xml = (start(Trace(path=one, kinds=kinds), devices) for one in (path, GOLDEN))
        for time_s in (0.0, 3.5, 17.2, 39.0):
            assert np.array_equal(table.positions_m(time_s), xml.positions_m(time_s), equal_nan=True)


def test_a_time_step_of_sumo_without_a_device_is_an_absence(write: Write) -> None:
    """At 20 s nothing is listed, and at 5 s only b is; the file has no steps in 30 to 60 s, as with `skip-empty`."""
    listed = {0: "ab", 5: "b", 10: "ab", 20: "", 30: "ab", 60: "ab"}
    steps = {
        time_s: "".join(f'<vehicle id="{id_}" x="{time_s}" y="0"/>' for id_ in ids)
        for time_s, ids in listed.items()
    }
    xml = "".join(f'<timestep time="{time_s}">{step}</timestep>' for time_s, step in steps.items())
    rows = [
        f"{time_s},{id_},{time_s if id_ else ''},{0 if id_ else ''}"
        for time_s, ids in listed.items()
        for id_ in ids or [""]
    ]
    table = "\n".join(["timestep_time,vehicle_id,vehicle_x,vehicle_y", *rows])
    for path in (write(f"<fcd-export>{xml}</fcd-export>", "fcd.xml"), write(table, "fcd.csv")):
        seen = walk(path, 2, [2, 7, 12, 25, 45])
        assert seen == [[NOWHERE, [2, 0]], [NOWHERE, [7, 0]], *[[NOWHERE, NOWHERE]] * 3]
        assert walk(path, 2, [2, 25], max_gap_s=20) == [[[2, 0]] * 2, [[25, 0]] * 2]


def test_plain_tables_with_semicolons(write: Write) -> None:
    """Tables may have the column names of `--output.column-header plain`."""
    path = write("time;id;x;y;speed\n0.00;a;1.00;2.00;7\n2.00;a;3.00;2.00;7\n")
    assert walk(path, 1, [0, 1]) == [[[1, 2]], [[2, 2]]]


# -- degrees ------------------------------------------------------------------------------------------

MUNICH = Places(plane=LocalPlane(11.57, 48.13))
ROUTE = [(11.57, 48.13), (11.571, 48.13), (11.571, 48.131)]


def test_longitudes_and_latitudes(write: Write) -> None:
    """Near Munich, 0.001 degrees are 74.44 m to the east and 111.19 m to the north; `origin_m` is subtracted."""
    lines = [f"{t},a,{lat},{lon}" for t, (lon, lat) in enumerate(ROUTE)]
    table = write("t,id,lat,lon\n" + "\n".join(lines))
    named = write("t,id,y,x\n" + "\n".join(lines), "named.csv")
    steps = "".join(
        f'<timestep time="{t}"><vehicle id="a" x="{lon}" y="{lat}"/></timestep>'
        for t, (lon, lat) in enumerate(ROUTE)
    )
    comment = '<!-- <fcd-output.geo value="true"/> -->'
    sumo = write(f"{comment}<fcd-export>{steps}</fcd-export>", "fcd.xml")
    expected = LocalPlane(11.57, 48.13).to_m(ROUTE)
    assert expected[2] == pytest.approx([74.44, 111.19], abs=0.01)
    for model in (Trace(path=table), Trace(path=named, geo=True), Trace(path=sumo, geo=True)):
        movement = start(model.within(MUNICH), 1)
        assert np.allclose([movement.positions_m(t)[0] for t in (0, 1, 2)], expected, atol=1e-9)
        moved = start(model.model_copy(update={"origin_m": (10.0, -5.0)}).within(MUNICH), 1)
        assert moved.positions_m(2.0)[0] == pytest.approx(expected[2] - [10, -5])


def test_degrees_far_from_the_origin(write: Write) -> None:
    path = write("t,id,lon,lat\n0,a,48.13,11.57\n")
    with refused_at("devices.mobility.path", "origin_lon_lat"):
        start(Trace(path=path).within(MUNICH), 1)


# -- Parquet ------------------------------------------------------------------------------------------


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # pyarrow counts as not installed
    path = tmp_path / "fcd.parquet"
    path.touch()
    with refused_at("devices.mobility.path", "pyarrow"):
        start(Trace(path=path), 1)
    with refused_at("devices.mobility.path", "no.parquet"):
        start(Trace(path=tmp_path / "no.parquet"), 1)


def test_sumo_tables_in_parquet(tmp_path: Path) -> None:
    """A Parquet file has the same samples as XML; the test needs pyarrow."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lines = [line.split(";") for line in as_table(sumo_samples(GOLDEN)).splitlines()]
    texts = {name: [line[at] or None for line in lines[1:]] for at, name in enumerate(lines[0])}
    numbers = {
        name: column if name.endswith("_id") else [None if cell is None else float(cell) for cell in column]
        for name, column in texts.items()
    }
    path = tmp_path / "fcd.parquet"
    parquet.write_table(pyarrow.table(numbers), path)
    table, xml = (start(Trace(path=one), 4) for one in (path, GOLDEN))
    for time_s in (0.0, 3.5, 17.2, 39.0):
        assert np.array_equal(table.positions_m(time_s), xml.positions_m(time_s), equal_nan=True)
    path.write_bytes(b"PAR1")
    with refused_at("devices.mobility.path", path):
        start(Trace(path=path), 1)


# -- numbers of devices -------------------------------------------------------------------------------


def test_number_of_devices(write: Write) -> None:
    trace = Trace(path=write("t,id,x,y\n0,a,1,0\n0,b,2,0\n1,a,1,0\n"))
    with refused_at("devices.count", "trace.csv", "devices.count: 2, or", "in a class, set its own count"):
        start(trace, 3)
    assert start(trace, 1).positions_m(0.0).tolist() == [[1, 0]]
    assert "2 devices, of which the first 1" in trace.places.notes[0]
    assert "a class's count" in trace.places.notes[0]


# -- faults -------------------------------------------------------------------------------------------

CSV_FAULTS = {
    "t,id,x\n0,a,1\n": ":1: none of the columns t, id, x is y; name the columns in the first line t,id,x,y",
    "a b\n1 2\n": ":1: none of the columns a, b is t; .* columns: {t: NAME, id: NAME, x: NAME, y: NAME}, with lon",
    "time_ms,id,x,y\n0,a,1,1\n": ":1: .* is t; set columns: {t: time_ms} and time_scale: 0.001, or name the columns",
    "t,id,x_km,y_km\n0,a,1,1\n": ":1: .* is x; set columns: {x: x_km, y: y_km} and scale: 1000, or name the columns",
    "timestep_time;vehicle_id;vehicle_x\n0;a;1\n": ":1: column 'vehicle_y' occurs 0 times",
    "timestep_time;edge_id\n0;a\n": ":1: column 'vehicle_id' occurs 0 times",
    "t,id,lon\n0,a,1\n": ":1: none of the columns t, id, lon is lat",
    "t,id,lon,lat\n0,a,1,1\n": r": .* set origin_lon_lat: .* the centre of this file is \[1.0, 1.0\]",
    "t,id,x,y,x\n0,a,1,1,1\n": ":1: column 'x' occurs 2 times",
    "": ":1: is empty; name the columns in the first line t,id,x,y",
    "t,id,x,y\n": ": has no SUMO vehicle or person, no row and no track point; a trace needs one",
    "t,id,x,y\n0,a,1,1\n0,b,1\n": ":3: 3 cells in a table of 4 columns; complete the line",
    "t,id,x,y\n0,a,1,5,2,5\n": ":2: 6 cells in a table of 4 columns; remove cells; if numbers have decimal commas",
    "t;id;x;y\n0;a;1;-2,5e3\n": ":2: y holds '-2,5e3', not .* its comma is a decimal comma, write a point: -2.5e3$",
    "t;id;x;y\n0,5;a;1;2\n": ":2: t holds '0,5', not a time; .* a decimal comma, write a point: 0.5$",
    "t,id,lon,lat\n0,a,84000000,490000000\n": ":2: 'a' is at longitude 8.4e.07, .* degrees times 1e7 or 1e6: if so",
    "t,id,x,y\n0,a,84000000,490000000\n": r":2: 'a' is at \(8.4e.07, 4.9e.08\) m, .* degrees times 1e7 or 1e6",
    "t,id,x,y\n0,,1,1\n": ":2: id is empty; name the device",
    "t,id,x,y\n0,a,1,here\n": ":2: y holds 'here', not a number; write a number",
    "t,id,x,y\n\n0,a,nan,1\n": ":3: x holds 'nan', not a number",
    "t,id,x,y\n0,a,1,1\n1,a,1e308,1\n": r":3: 'a' is at \(1e\+308, 1\) m, but at most 1e\+08 m from",
    "t,id,x,y\ninf,a,0,1\n": ":2: t holds 'inf', not a time; write a number",
    "date,time,id,x,y\n2026-01-05,8:00:05,a,0,1\n": ":2: time holds '8:00:05', .* the date must be in the same cell$",
    "t,id,x,y\n0,a,,1\n": ":2: x holds '', not a number",
    "t,id,x,y\n5,a,0,0\n5,b,0,0\n4,a,0,0\n5,a,1,0\n": ": 'a' has the time 5 s twice; keep one sample per time",
    "t,x,y\n5,0,0\n4,0,0\n": ":3: has the time 4 s after 5 s, but no column has ids; .*, or sort the rows by time",
    "t,x,y\n2026-01-05T08:00:00+01:00,0,0\n2026-01-05T00:00:00Z,0,0\n": (
        ":3: has the time 2026-01-05T00:00:00Z after 2026-01-05T07:00:00Z, but no column has ids"
    ),
    "t,id,x,y\n2026-01-05T08:00:00+01:00,a,0,0\n2026-01-05T08:00:05,b,0,0\n": (
        ":3: t holds '2026-01-05T08:00:05', but earlier rows have dates with a time zone; use one form throughout"
    ),
    "t,id,x,y\n2026-01-05,a,0,0\n2026-01-05 08:00:05Z,b,0,0\n": ":3: .* earlier rows have dates without a time zone",
    "t,id,x,y\n5,a,0,0\n5,a,1,0\n": ":3: 'a' has the time 5 s twice; keep one sample per time",
}


def fcd(*steps: str) -> str:
    return "<fcd-export>\n" + "\n".join(steps) + "\n</fcd-export>\n"


CAR = '<vehicle id="0" x="1.00" y="2.00" angle="90.00" type="t" speed="0.00"/>'
XML_FAULTS = {
    "<routes/>": ":1: <routes> is neither GPX nor SUMO's floating-car data; write it with `sumo --fcd-output FILE`",
    fcd(): ": has no SUMO vehicle or person",
    fcd(CAR): ":2: <vehicle> is outside a <timestep>",
    fcd(f"<timestep>{CAR}</timestep>"): ":2: <timestep> time is missing",
    fcd(
        '<timestep time="00:00:01"/>'
    ): ":2: <timestep> time holds '00:00:01', .* without --human-readable-time",
    fcd('<timestep time="2"/>', '<timestep time="1"/>'): ":3: <timestep> 1 s follows 2 s; sort timesteps",
    fcd('<timestep time="2"/>', '<timestep time="2"/>'): ":3: <timestep> 2 s follows 2 s",
    fcd(f'<timestep time="0">\n{CAR}\n{CAR}</timestep>'): ":4: '0' has the time 0 s twice",
    fcd('<timestep time="0"><person x="0" y="0"/></timestep>'): ":2: <person> has no id; name the device",
    fcd('<timestep time="0"><vehicle id="7" x="0"/></timestep>'): (
        r":2: <vehicle id='7'> y is missing; keep x and y in --fcd-output.attributes"
    ),
    fcd('<timestep time="0"><vehicle id="7" x="0" y="?"/></timestep>'): r":2: <vehicle id='7'> y holds '\?'",
    fcd(
        f'<timestep time="0">{CAR}'
    ): r":3: not well-formed XML \(mismatched tag\); perhaps the file is truncated",
    '<?xml version="1.0" encoding="klingon"?><net/>': r": cannot be read \(unknown encoding: klingon",
    "<fcd-export>\n<timestep": r":2: not well-formed XML \(unclosed token\)",
    '<!-- \n<fcd-output.geo value="true"/>\n--><fcd-export/>': (
        ":1: x and y are degrees; set geo: true .*, or run SUMO without"
    ),
}


@pytest.mark.parametrize("text", [*CSV_FAULTS, *XML_FAULTS])
def test_faults_are_named_with_their_line(write: Write, text: str) -> None:
    said = CSV_FAULTS.get(text) or XML_FAULTS[text]
    path = write(text, "trace.csv" if text in CSV_FAULTS else "fcd.xml")
    where = re.escape(str(path)) if said[0] == ":" else ""
    with pytest.raises(EdgeflError, match=f"^{where}{said}") as caught:
        start(Trace(path=path), 1)
    assert caught.value.place == ("devices", "mobility", "path")


def test_files_that_cannot_be_read(tmp_path: Path, write: Write) -> None:
    with refused_at("devices.mobility.path", "nowhere.csv"):
        start(Trace(path=tmp_path / "nowhere.csv"), 1)
    for broken in (write("no gzip", "a.csv.gz"), write("no gzip", "a.xml.gz"), tmp_path / "folder.xml"):
        if broken.suffix == ".xml":
            broken.mkdir()
        with refused_at("devices.mobility.path", broken):
            start(Trace(path=broken), 1)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(b"t,id,x,y\n0,a,1,1\n1,a,1,1\n2,a,1,1\n")[:-9])
    with refused_at("", "cut.csv.gz"):
        start(Trace(path=cut), 1)
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    with refused_at("", "binary.csv"):
        start(Trace(path=binary), 1)
    (tmp_path / "zip.csv").write_bytes(b"PK\x03\x04\x00\x00")
    with refused_at("devices.mobility.path", "zip.csv", "not a known file type", "GPX"):
        start(Trace(path=tmp_path / "zip.csv"), 1)
    with refused_at("kinds", "vehicle, person or container"):
        Trace(path="trace.xml", kinds=[])


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_text("t,id,x,y\r\n0,a,1,1\r\n", encoding="utf-8-sig")
    assert start(Trace(path=path), 1).positions_m(0.0).tolist() == [[1, 1]]


def test_the_shipped_trace_is_what_its_script_writes(capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(__file__).parents[3]
    runpy.run_path(str(root / "examples" / "make_trace.py"))
    assert capsys.readouterr().out == (root / "scenarios" / "traces" / "manhattan.fcd.csv").read_text()


def test_a_column_of_ids_with_an_unknown_name_is_asked_for(tmp_path: Path) -> None:
    """Without a known column of ids, all rows would count as one device; the error proposes `columns` instead."""
    file = tmp_path / "walks.csv"
    file.write_text("time,person,x,y\n0,anna,0,10\n0,bert,50,10\n1,anna,1,10\n1,bert,51,10\n")
    with refused_at("", "walks.csv:3", "are time, person, x, y (known: id, device,", "columns: {id: NAME}"):
        start(Trace(path=file), 2)
    named = Trace(path=file, columns={"id": "person"})
    assert start(named, 2).positions_m(1.0).tolist() == [[1, 10], [51, 10]]
