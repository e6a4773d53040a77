"""Test that a run's files are read with their written types, or cause an error with file, place and remedy."""

import json
import os
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.resuming import left_behind
from edgefl.run_directory.reading import RoundRows, about_of, claim_of
from edgefl.run_directory.status import give_up, resumable, this_process
from tests.refusals import refused_at

WHOLE: dict[str, Any] = {
    "schema_version": 1,
    "status": "running",
    "name": "small",
    "seed": 3,
    "process": {**this_process(), "heartbeat": "2026-01-02T03:04:05+00:00"},
    "identity": {"hash": "ab", "data": {}, "results_version": 1},
    "notes": ["one"],
}
HERE = {"host": "here", "pid": 1}
ROW = Round(1, 1, 1, "train", 0.0, 0.5, 0.5, 0.4, 3, 3, 9, 9, 2.5, 1.0, 1.0, 0.5, 0.0, 0.25, None)
HEAD = ",".join(field.name for field in fields(Round)) + "\n"


def line(row: Round = ROW) -> str:
    return ",".join("" if value is None else str(value) for value in asdict(row).values()) + "\n"


def test_what_is_whole_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(WHOLE))
    assert about_of(tmp_path) == WHOLE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be read"),
        ('{"status": "run', "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[1, 2]", r"it holds \[1, 2\], not a description"),
        ('"x"', "not a description of a run"),
        ("{}", "its status is null"),
        ('{"status": 3}', "its status is 3"),
        ('{"status": "begun"}', "not one of running, completed, interrupted, failed"),
    ],
)
def test_another_document_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(EdgeflError, match=rf"run\.json: .*{message}.*; delete {tmp_path}"):
        about_of(tmp_path)


@pytest.mark.parametrize("content", ['{"status": "run', "{}"])
@pytest.mark.parametrize("table", ["rounds.csv", "phones/rounds.csv"])
def test_a_directory_with_rows_is_kept(table: str, content: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(content)
    (tmp_path / table).parent.mkdir(exist_ok=True)
    (tmp_path / table).write_text("round,start_s\n1,0.0\n")
    with pytest.raises(
        EdgeflError, match=rf"run\.json: .*damaged.*; its tables .*keep {tmp_path}"
    ) as refusal:
        about_of(tmp_path)
    assert not re.search("delete|starting", str(refusal.value))
    (tmp_path / "run.json").write_text(json.dumps({**WHOLE, "status": "interrupted"}))
    with pytest.raises(EdgeflError, match=rf"no scenario\.yaml.*; its tables .*keep {tmp_path}"):
        left_behind(tmp_path)
    (tmp_path / "run.json").write_text(content)
    (tmp_path / table).write_text("round,start_s\n")
    with pytest.raises(EdgeflError, match=f"; delete {tmp_path} and run again"):
        about_of(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seed", "3", 'its seed is "3"'),
        ("seed", True, "its seed is true"),
        ("notes", {"a": 1}, "its notes is"),
        ("process", "x", 'its process is "x"'),
        ("process", {}, "its process has no host"),
        ("process", {"host": "here"}, "its process has no pid"),
        ("process", {**HERE, "pid": "1"}, r"its process\.pid is \"1\""),
        ("process", {**HERE, "pid": -1}, r"its process\.pid is -1"),
        ("process", {**HERE, "pid": 2**70}, r"its process\.pid is"),
        ("process", {**HERE, "heartbeat": "soon"}, 'its process.heartbeat is "soon"'),
        (
            "process",
            {**HERE, "heartbeat": "2026-01-02"},
            "its process.heartbeat is .*, not a time with a time zone",
        ),
        ("identity", {}, "its identity has no hash"),
        ("identity", {"hash": 3, "data": {}, "results_version": 1}, r"its identity\.hash is 3"),
    ],
)
def test_a_key_of_another_kind_is_named(key: str, value: object, message: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(WHOLE | {key: value}))
    with pytest.raises(EdgeflError, match=rf"run\.json: is damaged: {message}"):
        about_of(tmp_path)


@pytest.mark.parametrize(
    "content", ["", "[1]", '"x"', '{"host": "here"}', '{"host": "h", "pid": "1"}', "\x00"]
)
def test_a_damaged_claim_has_no_owner(content: str, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(content)
    assert claim_of(tmp_path / "1.json") == {}
    assert claim_of(tmp_path / "2.json") is None


def test_what_is_no_file_is_one_message(tmp_path: Path) -> None:
    """A folder or a link to itself in place of a file, unreadable even for root, causes one message."""
    (tmp_path / "run.json").mkdir()
    (tmp_path / "rounds.csv").symlink_to("rounds.csv")
    os.symlink("1.json", tmp_path / "1.json")
    assert claim_of(tmp_path / "1.json") == {}
    with refused_at("", "run.json"):
        about_of(tmp_path)
    with refused_at("", "rounds.csv"):
        list(RoundRows(tmp_path).new())


def test_rows_are_read_as_they_are_written(tmp_path: Path) -> None:
    rows, file = RoundRows(tmp_path), tmp_path / "rounds.csv"
    assert list(rows.new()) == []
    file.write_text(HEAD + line() + line()[:9])
    assert list(rows.new()) == [ROW]
    file.write_text(HEAD + 2 * line())
    assert list(rows.new()) == [ROW]
    assert not rows.began_anew()
    file.write_text(HEAD + line())
    assert rows.began_anew()
    assert list(RoundRows(tmp_path).new()) == [ROW]


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (line().replace("0.25", '"'), "is not a line of a table"),
        (line()[:-3] + "\n", r"has \d+ cells, but the header has \d+"),
        (line().replace("2.5", "x"), "energy_j is 'x', not a number"),
        (line().replace("2.5", ""), "energy_j is '', not a number"),
        ("1.5" + line()[1:], "session is '1.5', not a number"),
    ],
)
def test_a_damaged_row_is_named_by_its_line(damaged: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "rounds.csv").write_text(HEAD + line() + damaged)
    with pytest.raises(EdgeflError, match=rf"rounds\.csv:3: {message}"):
        list(RoundRows(tmp_path).new())


def test_rows_of_other_bytes_are_named_by_their_line(tmp_path: Path) -> None:
    (tmp_path / "rounds.csv").write_bytes(HEAD.encode() + b"\xa8\xff\n")
    with refused_at("", "rounds.csv:2"):
        list(RoundRows(tmp_path).new())


def test_a_damaged_description_is_given_up_on_demand(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(EdgeflError, match="is damaged"):
        give_up(tmp_path)
    give_up(tmp_path, damaged=True)
    assert resumable(tmp_path) == {"status": "interrupted"}


def test_a_study_is_told_from_a_run(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("name: s\n")
    with refused_at("", "is not a run directory", "continue a study with the same `edgefl study` command"):
        about_of(tmp_path)
