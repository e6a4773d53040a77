"""Test the energy of tails that later transfers cut short, by hand."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from edgefl.engine.devices.tails import Tails
from edgefl.engine.federation.open_tails import OpenTails

TAIL = ((1.0, 2.0), (2.0, 1.0))  # 4 J: 1 s at 2 W, then 2 s at 1 W


def part(device: int, end_s: float) -> Any:
    return SimpleNamespace(device=device, downlink=None, uplink=SimpleNamespace(end_s=end_s))


@pytest.mark.parametrize(("second", "cut_j"), [("same", [4.0, 1.0]), ("next", [4.0, 0.0])])
def test_a_row_has_the_joules_by_which_tails_at_its_end_are_cut(second: str, cut_j: list[float]) -> None:
    """Device 1 sends again after 0.5 s, which cuts 3 J, and device 0 after 2 s, which cuts 1 J.

    Device 0's tail still runs when the second round ends, so its 1 J count there again, if the session is the same.
    """
    tails, rows = Tails([TAIL, TAIL]), list[float]()
    open_ = OpenTails(tails)
    for device in (0, 1):
        tails.begins(device, 10.0)
    open_.add([part(0, 10.0), part(1, 10.0)], 10.0, "same", lambda _, cut: rows.append(cut))
    tails.ends(1, 10.5)
    tails.begins(1, 11.0)
    open_.add([part(1, 11.0)], 11.0, second, lambda _, cut: rows.append(cut))
    tails.ends(0, 12.0)
    open_.release(math.inf)
    assert rows == pytest.approx(cut_j)


def test_devices_at_work_would_have_a_full_tail_after_that_of_their_downlink() -> None:
    """Devices 0 and 1 began at 10 s; the uplink of device 0 cut the tail of its downlink after 1.5 s (2.5 J)."""
    tails = Tails([TAIL, (), TAIL])
    for device, since_s, end_s in ((0, 9.0, 9.5), (0, 11.0, 12.5), (2, 11.0, 12.0)):
        tails.begins(device, since_s)
        tails.ends(device, end_s)
    assert OpenTails(tails).of_work_j({0: 10.0, 1: 10.0}) == pytest.approx(4.0 + 2.5)
    assert OpenTails(tails).of_work_j({}) == 0.0
