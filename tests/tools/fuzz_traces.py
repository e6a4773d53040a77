"""Change trace files of every format at random: bytes, words, lines, compression."""

import gzip
from random import Random

from tests.tools.fuzz_mutations import FuzzCase

SCENARIO = """\
name: trace
duration_s: 20
origin_lon_lat: [11.57, 48.13]
devices: {count: all, mobility: {name: trace, path: trace, bad_rows: %s}}
sessions: {name: interval, length_s: 10}
rounds: {every_s: 5}
workload: {payload_bits: 1000000, flops_per_sample: 1.0e+6}
"""
_PLACES = [(11.57 + 1e-4 * number, 48.13) for number in range(6)]
_POINTS = "".join(
    f'<trkpt lat="{lat}" lon="{lon:.5f}"><time>2026-01-05T07:30:0{number}Z</time></trkpt>\n'
    for number, (lon, lat) in enumerate(_PLACES)
)
_STEPS = "".join(
    f'<timestep time="{number}"><vehicle id="a" x="{9 * number}" y="4.5" type="car"/>'
    f'<person id="b" x="5" y="{number}"/></timestep>\n'
    for number in range(6)
)
FORMS = {
    "fcd": f"<fcd-export>\n{_STEPS}</fcd-export>\n",
    "gpx": f'<?xml version="1.0"?>\n<gpx version="1.1"><trk><trkseg>\n{_POINTS}</trkseg></trk></gpx>\n',
    "sumo table": "timestep_time;vehicle_id;vehicle_x;vehicle_y\n0;a;1;2\n1;a;2;2\n2;;;\n3;a;4;2\n",
    "metres": "t,id,x,y\n0,a,1,2\n1,a,11,2\n0,b,5,5\n2,b,9,9\n",
    "degrees": "id,timestamp,lat,lon\n"
    + "".join(f"7,2026-01-05 07:30:0{at},{lat},{lon:.5f}\n" for at, (lon, lat) in enumerate(_PLACES)),
    "t-drive": "1,2008-02-02 15:36:08,11.57172,48.13123\n1,2008-02-02 15:46:08,11.57135,48.13883\n",
    "porto": '"TRIP_ID","TAXI_ID","TIMESTAMP","POLYLINE"\n"1","2","1372636858","[[11.57,48.13],[11.571,48.13]]"\n',
    "geolife": "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
    "48.13,11.57,0,492,39744.1201851852,2008-10-23,02:53:04\n48.131,11.57,0,492,39744.1202546296,2008-10-23,x\n",
    "ns-2": '$node_(0) set X_ 1.5\n$node_(0) set Y_ 2\n$ns_ at 1.0 "$node_(0) setdest 9.0 2.0 2.0"\n',
    "bonnmotion": "0.0 10.0 10.0 5.0 20.0 10.0 9.0 20.0 10.0\n0.0 1.0 2.0 9.0 3.0 4.0\n",
    "one": "0 10 0 100 0 100\n0 a 1 2\n0 b 3 4\n5 a 9 2\n10 b 3 50\n",
}
STRANGE = (
    *["nan", "inf", "-1", "1e308", "-1e-308", "0x1f", "1,5", "<", "]]", '"', "ä"],
    "",
    "\0",
    "a b",
    "9" * 400,
)


def trace_case(seed: int, number: int) -> FuzzCase:
    """Return the case of this number: a scenario, and a trace with a few changes."""
    rng = Random(f"trace {seed} {number}")
    text = rng.choice(list(FORMS.values()))
    for _ in range(rng.choice((1, 1, 2, 4))):
        text = _changed(text, rng)
    content = text.encode(rng.choice(("utf-8",) * 8 + ("utf-16", "latin-1")), errors="replace")
    if rng.random() < 0.2:
        content = _spoilt(content, rng)
    if rng.random() < 0.2:
        content = gzip.compress(content, mtime=0)
        content = content if rng.random() < 0.6 else _spoilt(content, rng)
    scenario = SCENARIO % rng.choice(("error", "skip"))
    return FuzzCase({"scenario.yaml": scenario.encode(), "trace": content})


def _changed(text: str, rng: Random) -> str:
    """Change a word, or repeat, remove or swap lines."""
    lines = text.splitlines(keepends=True) or [""]
    at = rng.randrange(len(lines))
    what = rng.randrange(6)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif what == 2:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    else:
        marks = [place for place, letter in enumerate(lines[at]) if letter in ' ,;"\n']
        begin = rng.choice(marks or [0])
        end = next((place for place in marks if place > begin), len(lines[at]))
        lines[at] = lines[at][: begin + 1] + rng.choice(STRANGE) + lines[at][end:]
    return "".join(lines)


def _spoilt(content: bytes, rng: Random) -> bytes:
    """Cut off bytes, or change one."""
    at = rng.randrange(len(content) + 1)
    return (
        content[:at] if rng.random() < 0.5 else content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    )
