"""Test that devices without a link are told from devices outside the cells, with remedies that reach them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl.engine.air.coverage import Coverage
from edgefl.run.api import simulate
from edgefl.run.plan import prepare
from edgefl.scenario.scenario import load
from tests.refusals import refused_at
from tests.tables import rows, sections

SMALL = sections("""
    name=a; sessions={name: schedule, count: 1, rounds: 1}; devices={count: 6}
    workload={payload_bits: 1000, flops_per_sample: 1.0e6}; radio.preset=nr
""")
WALK = {"name": "random_waypoint", "area_factor": 1}
TWO_SITES = {"layout": {"sites": [[0, 0], [400, 0]], "radius_m": 600}}


def notes(**changes: Any) -> list[str]:
    return prepare(load({**SMALL, **changes})).notes


def linked(monkeypatch: pytest.MonkeyPatch, *cells: int) -> None:
    """Let only the devices of these cells have a link."""
    monkeypatch.setattr(Coverage, "among", lambda _, cell, ids, __: np.full(len(ids), cell in cells))


# layout | keys that bring sites closer
CLOSER = """
layout.rings=0 | closer sites (cell.radius_m)
layout.rings=1 | closer sites (layout.isd_m)
layout={sites: [[0, 0]], radius_m: 300} | closer sites (layout.sites)
"""


@pytest.mark.parametrize(("layout", "closer"), rows(CLOSER))
def test_still_devices_without_a_link_are_refused_with_what_reaches_them(layout: str, closer: str) -> None:
    """More devices, or a mobility model, would not help devices that are too weak in their cell."""
    weak = {"count": 6, "transmit_power_dbm": -40}
    with refused_at("devices", "6 devices of session 1", "no link", closer, "transmit_power_dbm") as refusal:
        notes(devices=weak, **sections(layout))
    assert "mobility" not in str(refusal.value)
    assert not [note for note in notes(**sections(layout)) if "no link" in note]


def test_the_remedy_names_walls_only_if_a_device_can_be_behind_one() -> None:
    for share in (0.0, 0.5):
        weak = {"count": 6, "transmit_power_dbm": -40, "indoor_share": share}
        with refused_at("devices") as refusal:
            notes(devices=weak)
        assert ("indoor_share" in str(refusal.value)) == (share > 0)


def test_a_cell_of_still_devices_without_a_link_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The note on an empty cell is another: here devices are in the cell."""
    linked(monkeypatch, 0)
    (note,) = [note for note in notes(**TWO_SITES) if "cell 1" in note]
    assert "all devices in cell 1 are out of coverage" in note
    assert "layout.federations" in note


def test_moving_devices_that_begin_without_a_link_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = {"devices": {"count": 6, "mobility": WALK}}
    assert not [note for note in notes(**walk) if "no device has a link" in note]
    linked(monkeypatch)
    (note,) = [note for note in notes(**walk) if "no device has a link" in note]
    assert "6 are in cells with a server, but out of coverage; closer sites (cell.radius_m)" in note


def test_a_run_ends_with_the_cause_that_no_device_had_a_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With duration_s the run ends with a note, without it with an error after rounds.max_wait_s."""
    linked(monkeypatch)
    walk = {"devices": {"count": 6, "mobility": WALK}, "rounds": {"max_wait_s": 5}}
    found = simulate(load({**SMALL, **walk, "duration_s": 10}), tmp_path / "a", progress=False).notes
    (note,) = [note for note in found if "no round ever took place" in note]
    assert "no device with a link was in a cell with a server, but 6 without one; closer sites" in note
    reason = "no device with a link for 5 s", "6 devices are there, out of coverage", "closer sites"
    with refused_at("rounds.max_wait_s", *reason) as refusal:
        simulate(load({**SMALL, **walk}), tmp_path / "b", progress=False)
    assert "devices.count" not in str(refusal.value)
