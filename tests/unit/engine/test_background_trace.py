"""Test a recorded load against hand derivations: its steps, its repetition, its arrivals, and refused tables."""

import itertools
import math
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
import simpy
from pyarrow import parquet

from edgefl.engine.air.background import BackgroundTraffic
from edgefl.engine.air.background_users import UserLinks
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.backgrounds.trace import LoadTrace
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.testing import small_world
from tests.refusals import refused_at
from tests.tools.constants import made

TABLE = """\
time_s,cell,uplink_load,downlink_load
0,all,0.1,0.2
0,2,0.5,0.6
20,all,0.7,0.8
30,all,0,0
50,2,1,0.3
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("cell", "time_s", "load", "until_s"),
    [
        (0, 0.0, 0.1, 20.0),
        (1, 19.9, 0.1, 20.0),
        (0, 20.0, 0.7, 30.0),
        (0, 35.0, 0.0, math.inf),
        # a cell that has rows of its own uses only these rows
        (2, 20.0, 0.5, 50.0),
        (2, 1e6, 1.0, math.inf),
    ],
)
def test_a_row_holds_until_the_next_one_of_its_cell(
    table: Path, cell: int, time_s: float, load: float, until_s: float
) -> None:
    assert LoadTrace(path=table).load("uplink", cell, time_s) == (load, until_s)


def test_a_trace_repeats_after_its_last_step_which_is_as_long_as_the_one_before(table: Path) -> None:
    """The last step lasts as long as the previous step: a load with steps at 0, 20 and 30 s repeats after 40 s."""
    trace = made(LoadTrace, path=table, repeat=True)
    assert trace.load("downlink", 0, 35.0) == (0.0, 40.0)
    assert trace.load("downlink", 0, 40.0) == (0.2, 60.0)
    assert trace.load("downlink", 0, 3 * 40.0 + 29.0) == (0.8, 150.0)
    assert trace.load("downlink", 2, 151.0) == (0.3, 200.0)
    assert (trace.ends_s, LoadTrace(path=table).ends_s) == (None, 40.0)


def test_one_column_of_loads_is_enough_and_cells_need_none(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("time_s,downlink_load\n0,0.5\n")
    trace = made(LoadTrace, path=path, repeat=True)
    assert trace.load("downlink", 4, 7.0) == (0.5, math.inf)
    assert trace.load("uplink", 4, 7.0) == (0.0, math.inf)
    assert trace.ends_s is None
    # for a direction without load, load() returns inf as end; otherwise the search for the next file would never end
    path.write_text("time_s,downlink_load,uplink_load\n0,0.5,0\n9,0.6,0\n")
    assert trace.load("uplink", 4, 7.0) == (0.0, math.inf)


def test_parquet_says_the_same(table: Path) -> None:
    path = table.with_suffix(".parquet")
    names, *rows = (line.split(",") for line in TABLE.splitlines())
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    numbers = {name: [float(value) for value in columns[name]] for name in names if name != "cell"}
    parquet.write_table(pa.table({**numbers, "cell": list(columns["cell"])}), path)
    for cell, time_s in itertools.product(range(3), np.arange(0.0, 60.0, 5.0).tolist()):
        assert LoadTrace(path=path).load("uplink", cell, time_s) == LoadTrace(path=table).load(
            "uplink", cell, time_s
        )


def test_a_file_that_has_changed_is_read_again(table: Path) -> None:
    trace = LoadTrace(path=table)
    assert trace.load("uplink", 0, 0.0)[0] == 0.1
    table.write_text("time_s,uplink_load\n0,0.25\n")
    assert trace.load("uplink", 0, 0.0) == (0.25, math.inf)


HEAD = "time_s,cell,uplink_load\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "load.csv:1: has the columns none; write time_s"),
        ("time_s,cell\n0,1\n", "load.csv:1: has the columns time_s, cell; write time_s, uplink_load or"),
        ("time_s,load\n0,1\n", "load.csv:1: has the column 'load'; write time_s"),
        ("time_s,time_s,uplink_load\n0,0,1\n", "load.csv:1: has the column 'time_s'"),
        (HEAD, "load.csv: has no row"),
        (HEAD + "0,all,0.5\n0,all,0.6\n", "load.csv:3: a row of all cells at 0 s follows 0 s: sort the rows"),
        (HEAD + "0,1,0.5\n9,1,0.5\n8,1,0.6\n", "load.csv:4: a row of cell 1 at 8 s follows 9 s"),
        (HEAD + "5,all,0.5\n", "load.csv:2: the first row of all cells is at 5 s: it must be at 0"),
        (HEAD + "0,all,1.5\n", "load.csv:2: uplink_load is 1.5: a load is a share of time, from 0 to 1"),
        (HEAD + "0,all,-0.1\n", "uplink_load is -0.1"),
        (HEAD + "0,all,nan\n", "load.csv:2: uplink_load is 'nan': write a number"),
        (
            HEAD + '0,all,"0,5"\n',
            "load.csv:2: uplink_load is '0,5': write a number; if its comma is a decimal comma, write a point: 0.5",
        ),
        (HEAD + "noon,all,0.1\n", "load.csv:2: time_s is 'noon': write a number"),
        (HEAD + "0,north,0.1\n", "load.csv:2: cell is 'north': write its number or all"),
        (HEAD + "0,all\n", "load.csv:2: 2 cells in a table of 3 columns"),
    ],
)
def test_a_wrong_table_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "load.csv"
    path.write_text(text)
    with pytest.raises(EdgeflError) as refusal:
        LoadTrace(path=path).check([0, 1])
    assert message in str(refusal.value)
    assert refusal.value.place == ("radio", "background", "path")


def test_a_file_that_is_missing_or_of_no_known_kind(tmp_path: Path) -> None:
    with refused_at("radio.background.path", "no.csv"):
        LoadTrace(path=tmp_path / "no.csv").check([0])
    with refused_at("path", ".parquet"):
        LoadTrace(path=Path("load.txt"))
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"no table")
    with refused_at("radio.background.path", "broken.parquet"):
        LoadTrace(path=broken).check([0])


@pytest.mark.parametrize(
    ("cells", "message"), [([0, 1], "rows of cell 2, which has no federation"), ([2], None), ([0, 2], None)]
)
def test_cells_that_are_not_there_are_refused(table: Path, cells: list[int], message: str | None) -> None:
    if message is None:
        LoadTrace(path=table).check(cells)
        return
    with pytest.raises(EdgeflError, match=message):
        LoadTrace(path=table).check(cells)


def test_a_cell_without_a_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text(HEAD + "0,2,0.5\n")
    with refused_at("radio.background.path", "cell 0"):
        LoadTrace(path=path).check([0, 2])


class Asked:
    """A radio on which each file takes 2 s alone, and which records the arrival times of files."""

    slot_s = 1e-3

    def __init__(self, background: LoadTrace) -> None:
        shared = {"sharing": "dynamic", "budget": {"power_over_share": "per_resource_block"}}
        self.settings = RadioSettings(preset="journal", background=background, **shared)
        self.came_s: list[float] = []
        self.env = simpy.Environment()

    def seconds_alone(self, direction: str, bits: int, snr: np.ndarray, most: np.ndarray) -> np.ndarray:
        return np.full(len(snr), 2.0)

    def next_slot(self, time_s: float) -> int:
        self.came_s.append(time_s)
        return 0

    def until(self, slot: int) -> simpy.Event:
        return self.env.timeout(0.0)

    def band(self, cell: int, direction: str) -> Any:
        return Mock()


def arrivals_s(path: Path, until_s: float, repeat: bool) -> list[float]:
    radio = Asked(made(LoadTrace, path=path, repeat=repeat))
    snr = {"uplink": np.ones(1), "downlink": np.ones(1)}
    traffic = BackgroundTraffic(radio, [0], lambda cell: UserLinks(snr, snr), Streams(5))  # type: ignore[arg-type]
    for process in traffic.processes():
        radio.env.process(process)
    radio.env.run(until=until_s)
    return radio.came_s


@pytest.mark.parametrize("repeat", [False, True])
def test_files_come_when_the_integral_of_the_load_has_grown_by_theirs(tmp_path: Path, repeat: bool) -> None:
    """The load is 0.2 until 10 s, 0 until 30 s, and then 0.5; a file takes 2 s. Let E_n be the sum of n exponentials
    from the stream. File n arrives when the integral of load / 2 s is E_n; the integral is 0.1 t up to 10 s, and 1 +
    0.25 (t - 30) from 30 s on. In a repeated period of 50 s, the integral grows by 1 + 5."""
    path = tmp_path / "load.csv"
    path.write_text("time_s,uplink_load\n0,0.2\n10,0\n30,0.5\n")
    came_s = arrivals_s(path, 200.0, repeat)

    def when_s(files: float) -> float:
        periods = math.floor(files / 6.0) if repeat else 0
        rest = files - 6.0 * periods
        return 50.0 * periods + (10.0 * rest if rest <= 1 else 30.0 + (rest - 1) / 0.25)

    rng, total, expected = Streams(5)("background", "uplink", 0), 0.0, []
    while True:
        total += rng.standard_exponential()
        if when_s(total) >= 200.0:
            break
        expected.append(when_s(total))
        rng.choice(np.arange(1))  # draw the file's user, as the model does
    assert len(came_s) > 15
    assert came_s == pytest.approx(expected)


def test_a_load_that_is_always_the_same_gives_the_files_it_always_gave(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text("time_s,uplink_load\n0,0.5\n100,0.5\n200,0.5\n")
    plain = tmp_path / "plain.csv"
    plain.write_text("time_s,uplink_load\n0,0.5\n")
    assert arrivals_s(path, 400.0, False) == pytest.approx(arrivals_s(plain, 400.0, False))


def test_a_transfer_waits_for_files_only_while_there_are_any(tmp_path: Path) -> None:
    """Files that arrive after 100 s do not slow a transfer at 0 s, though they fill the uplink later."""
    path = tmp_path / "load.csv"
    path.write_text("time_s,uplink_load\n0,0\n100,0.9\n")

    def took_s(background: dict[str, Any] | None) -> list[float]:
        from edgefl.engine.records import DeviceRound
        from edgefl.testing import Scripted

        rows = (
            small_world(
                [60.0],
                learner=Scripted(work=(1, 1, 1, 3_000_000)),
                policy={"name": "schedule", "count": 1, "rounds": 2},
                rules={"every_s": 110.0},
                doppler_speed_m_s=10.0,
                radio={
                    "sharing": "dynamic",
                    "budget": {"power_over_share": "per_resource_block"},
                    "scheduler": "round_robin",
                    "background": background,
                },
            )
            .run()
            .rows.of[DeviceRound]
        )
        return [row.uplink_end_s - row.uplink_start_s for row in rows]

    alone, beside = took_s(None), took_s({"name": "trace", "path": str(path), "file_bits": 1_000_000})
    assert beside[0] == alone[0]
    assert beside[1] > 1.5 * alone[1]
