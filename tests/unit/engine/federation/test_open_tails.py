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
