"""Runs whose devices never come into the cells are refused, or noted, before they begin."""

import re
from pathlib import Path
from typing import Any

import pytest

from edgefl.run.plan import prepare
from edgefl.scenario.scenario import load
from tests.refusals import refused_at

FAR = "t,id,x,y\n0,a,5000,6000\n100,a,5200,6000\n0,b,7000,6000\n100,b,7200,6500\n"


def notes(devices: dict[str, Any], **sections: Any) -> list[str]:
    scenario = {
        "name": "a",
        "devices": devices,
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": 1000, "flops_per_sample": 1.0e6},
        **sections,
    }
    return prepare(load(scenario)).notes


def traced(folder: Path, text: str, **trace: Any) -> dict[str, Any]:
    path = folder / "town.csv"
    path.write_text(text)
    ids = {line.split(",")[1] for line in text.splitlines()[1:]}
    return {"count": len(ids), "mobility": {"name": "trace", "path": str(path), **trace}}


def commute(**addresses: tuple[float, float]) -> dict[str, Any]:
    plan = [{"leave": 8, "to": "work"}, {"leave": 17, "to": "home"}]
    return {"count": 5, "mobility": {"name": "itinerary", "addresses": addresses, "plan": plan}}


def test_a_trace_elsewhere_is_refused_with_its_distance_and_origin(tmp_path: Path) -> None:
    """a begins hypot(5000, 6000) = 7,810 m away; the mean of both ways is [(5100 + 7100) / 2, (6000 + 6250) / 2]."""
    with refused_at("devices.mobility", "7,810 m", "250 m", "layout.sites") as refusal:
        notes(traced(tmp_path, FAR))
    found = re.search(r"origin_m: \[(\d+), (\d+)\]", str(refusal.value))
    assert found is not None
    assert [float(each) for each in found.groups()] == pytest.approx([6_100, 6_125], abs=2)
    shifted = traced(tmp_path, FAR, origin_m=[5000, 6000])
    assert not [note for note in notes(shifted) if "no device" in note]


def test_a_trace_that_is_over_is_refused(tmp_path: Path) -> None:
    with refused_at("devices.mobility", "no device is anywhere", "begin_s"):
        notes(traced(tmp_path, FAR, begin_s=-10_000), duration_s=600)


def test_devices_that_come_later_are_waited_for(tmp_path: Path) -> None:
    late = "t,id,x,y\n0,a,90000,0\n2000,a,0,0\n2010,a,0,0\n"
    assert not [note for note in notes(traced(tmp_path, late)) if "no device" in note]
    with refused_at("devices.mobility", "first 600 s"):
        notes(traced(tmp_path, late), duration_s=600)


def test_a_device_that_may_pass_between_two_looks_is_noted(tmp_path: Path) -> None:
    """At 50 m/s it is inside from 95 to 105 s; the looks are 1e6 s / 4,999 = 200 s apart."""
    fast = "t,id,x,y\n0,a,-5000,0\n400,a,15000,0\n"
    found = [note for note in notes(traced(tmp_path, fast), duration_s=1e6) if "no device" in note]
    assert len(found) == 1
    assert "5,000 times" in found[0]


def test_people_who_live_and_work_elsewhere() -> None:
    """For a day they are looked at, which is certain for a run of a day, but not for one of a week."""
    elsewhere = commute(home=(5_000, 0), work=(6_000, 0))
    with refused_at("devices.mobility", "5,000 m", "250 m"):
        notes(elsewhere, duration_s=86_400)
    assert [note for note in notes(elsewhere, duration_s=7 * 86_400) if "no device comes" in note]
    commuters = commute(home=(5_000, 0), work=(0, 0))
    assert not [note for note in notes(commuters, duration_s=86_400) if "no device" in note]
