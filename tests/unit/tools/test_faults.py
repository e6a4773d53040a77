"""Test that faults can be injected and distinguished, and that checks catch some faults drawn with a seed."""

import csv
import subprocess
import sys
from collections import Counter

import pytest

from tests.faults import Fault
from tests.faults.injecting import constant, edited
from tests.faults.table import FAULTS, RESULTS
from tests.tools import faults
from tests.tools.isolated import FAILED, INTERRUPTED, PASSED, ROOT, SLOW

ROOMS = ("channel", "mobility", "engine", "learning", "analysis")
SOME = 1  # number of drawn faults


def test_there_are_a_hundred_in_five_rooms() -> None:
    rooms = Counter(fault.room for fault in FAULTS)
    assert tuple(rooms) == ROOMS
    assert min(rooms.values()) >= 20
    assert len({fault.id for fault in FAULTS}) == len(FAULTS) >= 100


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_each_fits_the_code_and_has_a_check(fault: Fault) -> None:
    """Each fault's code fragment exists, without which it cannot be injected, and each fault has a check."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        fault.inject(monkeypatch)
    file, _, test = fault.check.partition("::")
    assert f"def {test}(" in (ROOT / file).read_text()


def test_all_were_caught_in_the_last_run() -> None:
    with RESULTS.open() as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    verdicts = {id_: row["verdict"] for id_, row in rows.items()}
    assert verdicts == {fault.id: "caught" for fault in FAULTS}, "run `make faults`"
    assert all(float(row["cpu_s"]) > 0 for row in rows.values()), "each check has a cost"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (FAILED, "caught"),
        (PASSED, "not caught"),
        (SLOW, "slow"),
        (INTERRUPTED, "not tried"),
        (4, "not tried"),
    ],
)
def test_only_a_check_that_fails_has_caught_its_fault(
    code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that times out, or cannot be collected, has not caught its fault."""
    monkeypatch.setattr(faults, "run_pytest", lambda *asked: (code, "", 2.0))
    assert faults.verdict(FAULTS[0])[:2] == (said, 2.0)


def test_a_fault_is_met_by_whoever_has_imported_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgefl.channel.units import db_to_linear

    edited("edgefl.channel.units:db_to_linear", "10.0 ** (value_db", "20.0 ** (value_db")(monkeypatch)
    assert db_to_linear(10.0) == 20.0
    monkeypatch.undo()
    assert db_to_linear(10.0) == 10.0


def test_a_constant_changes_wherever_it_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from edgefl.channel import fading

    constant("edgefl.channel.units:SPEED_OF_LIGHT_M_S", 1.0)(monkeypatch)
    assert fading.doppler_hz(2.0, carrier_hz=3.0) == 6.0


@pytest.mark.parametrize("old", ["no such text", "value_db"], ids=["missing", "twice"])
def test_what_does_not_stand_there_once_is_refused(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LookupError, match="occurs"):
        edited("edgefl.channel.units:db_to_linear", old, "")(monkeypatch)


def test_some_are_caught() -> None:
    command = [sys.executable, "-m", "tests.tools.faults", "--some", str(SOME)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SOME} of {SOME} caught" in done.stdout
