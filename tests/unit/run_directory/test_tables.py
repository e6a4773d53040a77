"""Test that columns are written byte for byte as Python's csv module writes rows."""

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.run_directory.tables import TIME_DIGITS, Table, column
from tests.refusals import refused_at


@dataclass
class Row:
    device: int
    start_s: float | None = None
    energy_j: float = 0.0
    outcome: str = ""


def as_csv(name: str, values: list[Any]) -> list[str]:
    """Return a column as the csv module writes it, with a second column so that empty cells are not quoted."""
    timed = name.endswith("_s")
    texts = []
    for value in values:
        text = io.StringIO()
        cell = "" if value is None else round(value, TIME_DIGITS) if timed else value
        csv.writer(text, lineterminator="\n").writerow([cell, 0])
        texts.append(text.getvalue().removesuffix(",0\n"))
    return texts


# magnitudes at which a float's text changes its notation
edges = st.sampled_from(
    [0.0, -0.0, 1e-9, 9.999e-5, 1e-4, 0.1 + 0.2, 999999.9999999999, 1e6, 1e15, 1e16, 5e-324]
)
positive = st.floats(0, 1e17) | edges
times = st.floats(0, 1e7) | st.integers(0, 10**9).map(lambda slots: slots * 1e-3) | edges
anything = (
    st.lists(positive)
    | st.lists(st.floats())
    | st.lists(st.integers())
    | st.lists(positive | st.none())
    | st.lists(st.integers() | st.none())
    | st.lists(st.none())
)


@given(
    anything | st.lists(st.text('ab,"\n', max_size=3)) | st.lists(st.sampled_from([0, 0.0, -0.0, True, 1]))
)
def test_a_column_is_what_csv_writes(values: list[Any]) -> None:
    cells = column("energy_j", values)
    assert cells == as_csv("energy_j", values)


@given(st.lists(times) | st.lists(times | st.none()))
def test_times_are_rounded_as_python_rounds(values: list[Any]) -> None:
    assert column("start_s", values) == as_csv("start_s", values)


def test_one_value_is_one_text() -> None:
    assert column("outcome", "a,b") == '"a,b"'
    assert column("start_s", 0.1 + 0.2) == "0.3"
    assert column("start_s", None) == ""


def test_numbers_that_are_none() -> None:
    assert column("energy_j", [math.nan, math.inf, -math.inf]) == ["nan", "inf", "-inf"]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "rows.csv", Row, grows=True)


def test_further_columns_come_with_the_first_rows(table: Table) -> None:
    table.write_columns({"loss": [0.5, None]}, {"device": [3, 4], "start_s": np.array([1.0, 2.0])})
    table.write_columns({}, {"device": [5], "start_s": 3.0, "outcome": "late"})
    table.write(Row(6))
    table.close()
    assert table.path.read_text() == (
        "device,start_s,energy_j,outcome,loss\n3,1.0,0.0,,0.5\n4,2.0,0.0,,\n5,3.0,0.0,late,\n6,,0.0,,\n"
    )


def test_columns_that_do_not_fit_are_refused(table: Table) -> None:
    """An additional column is refused if its name is in use, its length differs, or rows are already written."""
    with refused_at("", "outcome"):
        table.write_columns({"outcome": [0.5]}, {"device": [3]})
    with refused_at("", "[1, 2]", kind=ValueError):
        table.write_columns({}, {"device": [3, 4], "start_s": [1.0]})
    table.write_columns({}, {"device": [3]})
    with refused_at("", "column loss"):
        table.write_columns({"loss": [0.5]}, {"device": [3]})


def test_no_rows_and_a_single_one(table: Table) -> None:
    table.write_columns({}, {"device": [], "start_s": np.array([])})
    table.write_columns({}, {"device": 7})
    table.close()
    assert table.path.read_text() == "device,start_s,energy_j,outcome\n7,,0.0,\n"


def test_few_rows_at_a_time_are_what_they_are_alone_and_in_their_order(tmp_path: Path) -> None:
    """Small batches at many times, with single rows in between, keep their order and are written like single rows."""
    rng = np.random.default_rng(3)
    subject, lines = Table(tmp_path / "rows.csv", Row), ["device,start_s,energy_j,outcome"]
    for number in range(400):
        devices = rng.integers(9, size=number % 7)
        joules = rng.normal(size=number % 7) * 10.0 ** rng.integers(-8, 8)
        start_s: float | None = (0, 1 / 3 * number, 2.5, None)[number // 100]
        outcomes = np.where(joules > 0, "left, late", "")
        if number % 50 == 30:  # integers in a column of floats
            joules = np.arange(len(devices))
        if number % 90 == 60:
            subject.write(Row(-number))
            lines.append(f"{-number},,0.0,")
        if number % 90 == 61:  # a list, which batches do not support
            subject.write_columns({}, {"device": [7, 8], "start_s": [2.25, None]})
            lines += ["7,2.25,0.0,", "8,,0.0,"]
        subject.write_columns(
            {}, {"device": devices, "start_s": start_s, "energy_j": joules, "outcome": outcomes}
        )
        time = "" if start_s is None else str(round(start_s, TIME_DIGITS))
        lines += [
            f"{device},{time},{joule!r}," + ('"left, late"' if outcome else "")
            for device, joule, outcome in zip(devices.tolist(), joules.tolist(), outcomes, strict=True)
        ]
        if number % 150 == 149:
            subject.flush()
            assert subject.path.read_text() == "\n".join(lines) + "\n"
    subject.close()
    assert subject.path.read_text() == "\n".join(lines) + "\n"


@dataclass
class Stay:
    time_s: float
    stay_s: float
    interruption_s: float


def test_times_of_few_rows_at_a_time_stand_beside_those_of_one_moment(tmp_path: Path) -> None:
    """Batches with a time per row may alternate with batches whose rows share one time."""
    subject = Table(tmp_path / "rows.csv", Stay)
    for time_s, interruption_s in ((3.2, 0.05), (3.52, 0.1)):
        stays_s = np.array([time_s, 1.5])
        subject.write_columns({}, {"time_s": time_s, "stay_s": stays_s, "interruption_s": interruption_s})
    subject.close()
    rows = ["3.2,3.2,0.05", "3.2,1.5,0.05", "3.52,3.52,0.1", "3.52,1.5,0.1"]
    assert subject.path.read_text().splitlines()[1:] == rows


def test_a_table_without_rows_has_its_header(table: Table) -> None:
    table.close()
    table.close()
    assert table.path.read_text() == "device,start_s,energy_j,outcome\n"
