"""Test that the check of a run's tables finds each kind of fault, and no fault in the golden runs."""
# ruff: noqa: E501 - a row of a table is a line

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tables import rows as rows_of
from tests.tools.invariants import CHECKS, check_run

GOLDEN = Path(__file__).parents[2] / "golden"
RUNS = sorted(path.parent for path in GOLDEN.glob("*/scenario.yaml"))
Row = dict[str, str]
Choose = Callable[[Row], bool]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_golden_runs_hold(run: Path) -> None:
    assert check_run(run) == []


def corrupted(tmp_path: Path, run: str, table: str, change: Callable[[list[Row]], None]) -> list[str]:
    """Return the faults that are found after a change to one table of a golden run."""
    copy = shutil.copytree(GOLDEN / run, tmp_path / "run")
    with (copy / f"{table}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = list(rows[0])
    change(rows)
    with (copy / f"{table}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    return check_run(copy)


def put(column: str, value: str, of: Choose = lambda row: True) -> Callable[[list[Row]], None]:
    """Write a value into the last of the chosen rows."""

    def change(rows: list[Row]) -> None:
        [row for row in rows if of(row)][-1][column] = value

    return change


def double(of: Choose) -> Callable[[list[Row]], None]:
    """Write the first of the chosen rows twice."""

    def change(rows: list[Row]) -> None:
        number = next(number for number, row in enumerate(rows) if of(row))
        rows.insert(number, dict(rows[number]))

    return change


def drop(of: Choose) -> Callable[[list[Row]], None]:
    """Remove the first of the chosen rows."""

    def change(rows: list[Row]) -> None:
        rows.remove(next(row for row in rows if of(row)))

    return change


def earlier(rows: list[Row]) -> None:
    """Move all of a device's activities in a round to time 0."""
    times = [name for name in rows[-1] if name.endswith("_s")]
    shift_s = float(rows[-1]["downlink_start_s"])
    rows[-1].update({name: str(float(rows[-1][name]) - shift_s) for name in times if rows[-1][name]})


def elsewhere(rows: list[Row]) -> None:
    """Change the handovers so that devices enter a wrong cell."""
    for row in filter(event("handover"), rows):
        row["cell"] = "99"


def has_the_clouds(row: Row) -> bool:
    """Return whether a round ended with the cloud's model."""
    return bool(row["cloud_version"])


def event(name: str) -> Choose:
    return lambda row: row["event"] == name


# check | run | table | change | fault that is found
CASES = """
_numbers | one_cell | devices | put("energy_rx_j", "nan") | energy_rx_j is nan
_numbers | several_cells | rounds | put("latency_s", "-1") | latency_s is -1.0
_numbers | several_cells | events | put("time_s", "inf") | time_s is inf
_stages | one_cell | devices | put("compute_start_s", "0") | stages are not in order
_stages | one_cell | devices | put("compute_end_s", "") | an earlier stage is missing
_stages | one_cell | devices | put("outcome", "left_compute") | left_compute, but its last stage was
_stages | one_cell | devices | put("energy_j", "1") | energy_j is not the sum of its four parts
_rounds_sum_their_devices | one_cell | rounds | put("energy_tx_j", "1") | energy_tx_j is 1.0, its devices' sum
_rounds_sum_their_devices | one_cell | rounds | put("downlink_bits", "7") | downlink_bits is 7.0
_rounds_sum_their_devices | one_cell | rounds | put("completed", "0") | participants, completed are
_rounds_sum_their_devices | one_cell | rounds | put("energy_wasted_j", "9") | energy_wasted_j 9.0 is
_rounds_sum_their_devices | one_cell | rounds | put("latency_s", "9") | latency_s is not end_s
_rounds_sum_their_devices | one_cell | devices | earlier | works outside the round
_rounds_sum_their_devices | one_cell | rounds | drop(lambda row: True) | rounds.csv does not
_rounds_sum_their_devices | one_cell | devices | double(lambda row: True) | a device occurs twice
_ledger_sums_the_devices | batteries | ledger | put("transmit_j", "1") | has transmit_j 1.0
_ledger_sums_the_devices | batteries | ledger | put("total_j", "1") | has total_j 1.0, which is not
_ledger_sums_the_devices | batteries | ledger | put("wasted_j", "1") | has wasted more
_ledger_sums_the_devices | batteries | ledger | put("wasted_j", "0") | wasted_j sums to
_ledger_sums_the_devices | batteries | ledger | drop(lambda row: True) | lacks device 0
_one_round_at_a_time | one_cell | rounds | put("start_s", "0") | begins before
_one_round_at_a_time | one_cell | rounds | put("version", "1") | version 1 after
_one_round_at_a_time | several_cells | rounds | put("round", "9") | round 9 follows
_one_round_at_a_time | one_cell | devices | earlier | at once
_events_alternate | one_cell | events | double(event("arrival")) | arrives, but was already there
_events_alternate | one_cell | events | double(event("departure")) | departs, but was already gone
_events_alternate | several_cells | events | double(event("handover")) | handover from
_events_alternate | batteries | events | double(event("switched_off")) | switched_off twice
_events_alternate | batteries | events | double(event("battery_back")) | battery_back twice
_events_alternate | one_cell | events | drop(event("session_end")) | begins after
_events_alternate | one_cell | events | double(event("session_end")) | ends, None is open
_events_alternate | one_cell | events | put("time_s", "0") | comes after
_parts_take_place | several_cells | events | elsewhere | 'cell': 99
_sessions_fit | one_cell | sessions | double(lambda row: True) | has session 1 twice
_sessions_fit | one_cell | sessions | put("start_s", "99") | begins before its session
cloud_keeps_its_books | hierarchy | rounds | put("backhaul_s", "9", has_the_clouds) | backhaul_s is 9.0
cloud_keeps_its_books | hierarchy | rounds | put("energy_backhaul_j", "0", has_the_clouds) | energy_backhaul_j is 0.0
cloud_keeps_its_books | hierarchy | rounds | put("backhaul_bits", "0", has_the_clouds) | sent no bits over the backhaul
cloud_keeps_its_books | hierarchy | rounds | put("cloud_version", "99", has_the_clouds) | events.csv has no model 99
cloud_keeps_its_books | hierarchy | rounds | put("cloud_wait_s", "50", has_the_clouds) | at the wrong time
cloud_keeps_its_books | hierarchy | events | drop(event("cloud_model")) | the cloud's models are [2
"""


@pytest.mark.parametrize(("check", "run", "table", "change", "message"), rows_of(CASES))
def test_a_fault_is_found(
    check: str, run: str, table: str, change: str, message: str, tmp_path: Path
) -> None:
    problems = corrupted(tmp_path, run, table, eval(change))
    assert any(message in problem for problem in problems), problems


def test_every_check_has_a_fault() -> None:
    assert {check.__name__ for check in CHECKS} == {case[0] for case in rows_of(CASES)}


def test_who_is_elsewhere_or_off_does_not_take_part(tmp_path: Path) -> None:
    """A device that is switched off or departs at the beginning must not take part in later rounds."""
    for number, lines in enumerate(
        (
            ["0.0001,switched_off,{},,0,,,,"],
            ["0.0001,departure,{},,0,,,,"],
            ["0.0001,battery_empty,{},,0,,,,"],
        )
    ):
        copy = shutil.copytree(GOLDEN / "shared_band", tmp_path / str(number))
        with (copy / "devices.csv").open() as file:
            device = [row["device"] for row in csv.DictReader(file)][-1]
        text = (copy / "events.csv").read_text().splitlines()
        text[2:2] = [line.format(device) for line in lines]
        (copy / "events.csv").write_text("\n".join(text) + "\n")
        assert any(f"device {device}, cell 0" in problem for problem in check_run(copy))


def test_tables_that_are_not_there_are_a_problem(tmp_path: Path) -> None:
    (problem,) = check_run(tmp_path)
    assert problem.startswith("the tables cannot be read")


def test_a_run_that_has_not_ended_has_no_ledger_yet(tmp_path: Path) -> None:
    copy = shutil.copytree(GOLDEN / "batteries", tmp_path / "run")
    (copy / "ledger.csv").write_text((copy / "ledger.csv").read_text().splitlines()[0] + "\n")
    assert check_run(copy)
    (copy / "run.json").write_text('{"status": "interrupted"}')
    assert check_run(copy) == []


def test_many_faults_of_a_kind_are_counted(tmp_path: Path) -> None:
    def all_negative(rows: list[Row]) -> None:
        for row in rows:
            row["distance_m"] = "-1"

    problems = corrupted(tmp_path, "one_cell", "devices", all_negative)
    assert len(problems) == 6
    assert problems[-1].endswith("more of numbers")
