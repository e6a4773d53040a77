"""Test recorded availability: its formats, the times at which devices switch, and refused files."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from edgefl.engine.churn.availability_trace import AvailabilityTrace
from edgefl.rng import Streams
from edgefl.scenario.scenario import load
from edgefl.testing import check
from tests.refusals import refused_at

# the client quoted in FedScale's documentation; its duration is the sum of its spells
KNOWN = {
    "duration": 211625,
    "inactive": [65881, 133574, 208292, 276575, 295006, 356236, 400906, 475099],
    "finish_time": 518400,
    "active": [12788, 100044, 188992, 271372, 276663, 352625, 356267, 441193],
    "model": "CPH1801",
}


def written(folder: Path, *clients: dict[str, Any]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({str(3834 + i): client for i, client in enumerate(clients)}))
    return path


def switches(path: Path, device: int = 0, number: int = 6, **options: Any) -> list[float]:
    churn = AvailabilityTrace(path=path, **options)
    return list(itertools.islice(churn.switches(device, Streams(1)), number))


def test_a_documented_client_and_its_period(tmp_path: Path) -> None:
    times_s = switches(written(tmp_path, KNOWN), number=18)
    assert times_s[:4] == [12788, 65881, 100044, 133574]
    assert times_s[16:] == [518400 + 12788, 518400 + 65881]
    assert sum(times_s[1:16:2]) - sum(times_s[0:16:2]) == KNOWN["duration"]


@pytest.mark.parametrize(
    ("active", "inactive", "options", "times_s"),
    [
        ([0, 5], [2, 7], {}, [0, 2, 5, 7, 10, 12]),
        ([0, 2], [2, 7], {}, [0, 7, 10, 17, 20, 27]),  # two spells that touch within the period
        ([0, 8], [2, 10], {}, [0, 2, 8, 12, 18, 22]),  # two spells that touch across the period's end
        ([3, 5], [3, 7], {}, [5, 7, 15, 17, 25, 27]),  # a spell of no length
        ([0], [10], {}, [0]),
        ([0, 4], [4, 10], {}, [0]),  # two spells that fill the period
        ([], [], {}, []),
        ([1, 5], [2, 7], {"begin": 6}, [0, 1, 5, 6, 9, 11]),  # the run begins during a spell
        ([1, 5], [2, 7], {"begin": 7}, [4, 5, 8, 10, 14, 15]),
        ([1, 5], [2, 7], {"begin": 21.5}, [0, 0.5, 3.5, 5.5, 9.5, 10.5]),
        ([0, 8], [2, 10], {"begin": 11}, [0, 1, 7, 11, 17, 21]),  # in a spell of the previous period
        ([1, 5], [2, 7], {"begin": 6, "time_scale": 60}, [0, 60, 300, 360, 540, 660]),
    ],
)
def test_times_by_hand(
    active: list[float], inactive: list[float], options: Any, times_s: list[float], tmp_path: Path
) -> None:
    path = written(tmp_path, {"active": active, "inactive": inactive, "finish_time": 10})
    assert switches(path, **options) == times_s


# ---- lists and tables

TABLE = "client,on_s,off_s\na,0,30\nb,20,\na,90,120\nc,,\n"
LISTS = {"a": [[0, 30], [90, 120]], "b": [20], "c": []}
FLAT = [[0, 30, 90, 120], [[20]], []]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", TABLE),
        ("t.json", json.dumps(LISTS)),
        ("u.json", json.dumps(FLAT)),
        ("u.csv", TABLE.replace(",", ";")),
    ],
)
@pytest.mark.parametrize(
    ("options", "of_a", "of_b", "of_c"),
    [
        ({}, [0, 30, 90, 120], [20], []),  # not repeated, so b stays on
        ({"begin": 10, "time_scale": 2}, [0, 40, 160, 220], [20], []),
        ({"begin": 100}, [0, 20], [0], []),
        ({"begin": 500}, [], [0], []),
        ({"period": 200}, [0, 30, 90, 120, 200, 230, 290], [20, 200, 220, 400, 420, 600, 620], []),
        (
            {"period": 120},
            [0, 30, 90, 150, 210, 270, 330],
            [20, 120, 140, 240, 260, 360, 380],
            [],
        ),  # spells touch across the period's end
    ],
)
def test_lists_and_tables_by_hand(
    name: str,
    text: str,
    options: Any,
    of_a: list[float],
    of_b: list[float],
    of_c: list[float],
    tmp_path: Path,
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert [switches(path, device, 7, **options) for device in range(3)] == [of_a, of_b, of_c]


WRONG_TABLES = r"""
t.csv:1 | on_s | client,on,off|a,1,2
t.csv:3 | on_s 5 and off_s 6 | client,on_s,off_s|a,1,9|a,5,6
t.csv:2 | off_s 1 | client,on_s,off_s|a,2,1
t.csv:3 | not ascend from inf | client,on_s,off_s|a,2,|a,5,6
t.csv:2 | write a point: 1.5 | client;on_s;off_s|a;1,5;9
t.csv:2 | on_s is 'x' | client,on_s,off_s|a,x,1
t.csv:2 | on_s is -1 | client,on_s,off_s|a,-1,1
t.csv:2 | without on_s | client,on_s,off_s|a,,1
t.csv:2 | 2 cells | client,on_s,off_s|a,1
"""


@pytest.mark.parametrize(
    ("where", "noun", "text"), [line.split(" | ") for line in WRONG_TABLES.strip().splitlines()]
)
def test_a_wrong_table_is_refused_with_its_row(where: str, noun: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text.replace("|", "\n"))
    with refused_at("devices.churn.path", where, noun):
        switches(path)


@pytest.mark.parametrize(
    ("text", "nouns"),
    [
        ('{"a": [1, "x"]}', ("'a'", "[1] is 'x'")),
        ('{"a": [[1, 2, 3]]}', ("'a'", "[1, 2, 3]", "pairs")),
        ('{"a": [[1, 5], [4, 6]]}', ("'a'", "pair 1, 4 to 6", "ascend from 5")),
        ('{"a": ["on", [54, 890]]}', ("'a'", "[0] is 'on'")),  # the format that users of Plato propose
    ],
)
def test_a_wrong_list_is_refused(text: str, nouns: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with refused_at("devices.churn.path", *nouns):
        switches(path)


def test_a_period_must_hold_all_times_and_is_not_fedscales(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    with refused_at("devices.churn.period", "pair 1, 90 to 120", "period 100"):
        switches(path, period=100)
    with refused_at("devices.churn.period", "finish_time", "leave period out"):
        switches(written(tmp_path, KNOWN), period=100)


def test_devices_are_clients_in_the_files_order(tmp_path: Path) -> None:
    spells = [{"active": [i], "inactive": [i + 1], "finish_time": 10} for i in (5, 2, 7)]
    path = written(tmp_path, *spells)
    assert [switches(path, device, 1) for device in range(3)] == [[5], [2], [7]]
    assert switches(path, 4, 1, reuse=True) == [2]
    with refused_at("", "3 clients", "reuse"):
        switches(path, 3)
    check(AvailabilityTrace, path=path, reuse=True)


# words that the message must contain | the file
REFUSED = r"""
trace.json:1 | {
no clients | []
no clients | {}
'7' | {"7": [2, 1]}
'7' | {"7": 3}
finish_time | {"7": {"active": [1], "inactive": [2]}}
'activ' | {"7": {"activ": [1], "inactive": [2], "finish_time": 10}}
2 times in active, but 1 in inactive | {"7": {"active": [1, 3], "inactive": [2], "finish_time": 9}}
active[0] 3 and inactive[0] 2 | {"7": {"active": [3], "inactive": [2], "finish_time": 9}}
active[1] 1 | {"7": {"active": [1, 1], "inactive": [2, 3], "finish_time": 9}}
finish_time 9 | {"7": {"active": [1], "inactive": [12], "finish_time": 9}}
active[0] is true | {"7": {"active": [true], "inactive": [2], "finish_time": 9}}
active[0] is -1 | {"7": {"active": [-1], "inactive": [2], "finish_time": 9}}
active is 1 | {"7": {"active": 1, "inactive": [2], "finish_time": 9}}
above 0 | {"7": {"active": [], "inactive": [], "finish_time": 0}}
1e-300 s | {"7": {"active": [0], "inactive": [5e-324], "finish_time": 1e-300}}
NaN | {"7": {"active": [NaN], "inactive": [2], "finish_time": 9}}
'7' occurs twice | {"7": {"active": [1], "inactive": [2], "finish_time": 9}, "7": {}}
"""


@pytest.mark.parametrize(
    ("noun", "text"),
    [line.split(" | ") for line in REFUSED.strip().splitlines()] + [["pickle", "\x80\x04}q."]],
)
def test_what_is_refused(noun: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(text.encode("latin-1"))
    with refused_at("", noun, path):
        switches(path)


def test_a_run_is_refused_before_it_writes_anything(tmp_path: Path) -> None:
    """The error names the line of the `churn` key in its class."""
    from edgefl import simulate

    text = """name: a
devices:
  count: 4
  classes:
    phone:
      count: 2
      churn: {name: availability_trace, path: nowhere.json}
    rest: {}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1, flops_per_sample: 1}
"""
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with refused_at("devices.classes.phone.churn.path", "a.yaml:7", "nowhere.json"):
        simulate(load(file), tmp_path / "run")
    assert not (tmp_path / "run").exists()
