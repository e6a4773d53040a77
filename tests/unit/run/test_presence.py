"""Test the notes before a run about devices outside the cells, the world or the path loss's range."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgefl.run.api import simulate
from edgefl.run.plan import prepare
from edgefl.run.probe import probe
from edgefl.scenario.scenario import load
from tests.refusals import refused_at
from tests.tables import sections

FAR = "t,id,x,y\n0,a,5000,6000\n100,a,5200,6000\n0,b,7000,6000\n100,b,7200,6500\n"


SMALL = sections("""
    name=a; sessions={name: schedule, count: 1, rounds: 1}
    workload={payload_bits: 1000, flops_per_sample: 1.0e6}
""")


def notes(devices: dict[str, Any], **sections: Any) -> list[str]:
    return prepare(load({**SMALL, "devices": devices, **sections})).notes


def traced(folder: Path, text: str, **trace: Any) -> dict[str, Any]:
    path = folder / "town.csv"
    path.write_text(text)
    ids = {line.split(",")[1] for line in text.splitlines()[1:]}
    return {"count": len(ids), "mobility": {"name": "trace", "path": str(path), **trace}}


def commute(**addresses: tuple[float, float]) -> dict[str, Any]:
    plan = [{"leave": 8, "to": "work"}, {"leave": 17, "to": "home"}]
    return {"count": 5, "mobility": {"name": "itinerary", "addresses": addresses, "plan": plan}}


def test_a_trace_elsewhere_is_refused_with_its_distance_and_origin(tmp_path: Path) -> None:
    """The nearest device is hypot(5000, 6000) = 7,810 m away; devices pass the suggested origin, not their mean."""
    with refused_at(
        "devices.mobility", "7,810 m", "250 m", "layout.sites", "scale and time_scale"
    ) as refusal:
        notes(traced(tmp_path, FAR))
    found = re.search(r"origin_m: \[(\d+), (\d+)\]", str(refusal.value))
    x, y = map(float, found.groups())
    assert not outside(notes(traced(tmp_path, FAR, origin_m=[x, y])))
    with refused_at("devices.mobility", "time_scale: 60 if t is in minutes"):
        notes(traced(tmp_path, FAR, time_scale=1000))
    with refused_at("devices.mobility", f"origin_m: [{x:.0f}, {y:.0f}]"):
        notes(traced(tmp_path, FAR, origin_m=[1000, 1000]))


def test_sites_are_not_suggested_where_none_may_stand(tmp_path: Path) -> None:
    """In millimetres, a device at 60 m seems to be at 60 km; sites may stand within 50 km."""
    with refused_at("devices.mobility", "scale and time_scale") as refusal:
        notes(traced(tmp_path, "t,id,x,y\n0,a,60000,0\n100,a,60100,0\n"))
    assert "layout.sites" not in str(refusal.value)


def test_the_origin_of_a_trace_in_kilometres_is_exact_to_a_metre(tmp_path: Path) -> None:
    """A device stands at 508 m; the origin is in metres, although the trace is in kilometres."""
    text = "t,id,x,y\n0,a,0.508,0.508\n400,a,0.508,0.508\n"
    with refused_at("devices.mobility", "origin_m: [508, 508]"):
        notes(traced(tmp_path, text, scale=1000), duration_s=400)
    assert not outside(notes(traced(tmp_path, text, scale=1000, origin_m=[508, 508]), duration_s=400))


@pytest.mark.parametrize("layout", [{}, {"sites": [[0, 0], [100, 0]], "radius_m": 400}])
def test_recorded_devices_that_are_never_in_a_cell_are_counted(layout: dict, tmp_path: Path) -> None:
    """a stays in the cell, b is far away, and c comes after the run's end."""
    text = "t,id,x,y\n0,a,20,0\n600,a,30,0\n0,b,9000,0\n600,b,9010,0\n700,c,20,0\n900,c,20,9\n"
    found = notes(traced(tmp_path, text), duration_s=600, **({"layout": layout} if layout else {}))
    (note,) = [note for note in found if "in no cell" in note]
    assert "2 of 3 devices" in note
    assert "(devices 1, 2)" in note
    late = notes(traced(tmp_path, text), duration_s=800, **({"layout": layout} if layout else {}))
    assert "1 of 3 devices" in next(note for note in late if "in no cell" in note)


def outside(found: list[str]) -> list[str]:
    return [note for note in found if "no device" in note and "the trace ends" not in note]


def cut_short(found: list[str]) -> list[str]:
    return [note for note in found if "the trace ends" in note]


def test_a_device_is_outside_between_its_samples_too(tmp_path: Path) -> None:
    """A device that passes [0, 0] at 300 m is outside a cell of 250 m; a device that passes at 200 m is inside."""
    passing = "t,id,x,y\n0,a,-9000,{0}\n400,a,9000,{0}\n"
    with refused_at("devices.mobility", "300 m"):
        notes(traced(tmp_path, passing.format(300)), duration_s=400)
    assert not outside(notes(traced(tmp_path, passing.format(200)), duration_s=400))


def test_gaps_of_a_trace_lead_nowhere(tmp_path: Path) -> None:
    """A device is absent in a gap of its trace, so with the default limit on gaps it does not pass the cell."""
    passing = traced(tmp_path, "t,id,x,y\n0,a,-9000,0\n1,a,-8990,0\n400,a,9000,0\n401,a,9010,0\n")
    passing["mobility"]["max_gap_s"] = 1e9
    assert not outside(notes(passing, duration_s=401))
    del passing["mobility"]["max_gap_s"]
    with refused_at("devices.mobility", "8,990 m"):
        notes(passing, duration_s=401)


def test_devices_that_come_later_are_waited_for(tmp_path: Path) -> None:
    """The device moves 45 m/s, so it is 60,000 m away in 667 s and enters the cell after 1,994 s."""
    late = "t,id,x,y\n0,a,90000,0\n2000,a,0,0\n2010,a,0,0\n"
    assert not outside(notes(traced(tmp_path, late)))
    assert not outside(
        notes(traced(tmp_path, late), sessions={"name": "interval", "length_s": 50, "count": 2})
    )
    with refused_at("devices.mobility", "first 600 s", "mobility.begin_s", "duration_s"):
        notes(traced(tmp_path, late), duration_s=600)
    with refused_at("devices.mobility", "first 900 s", "mobility.begin_s", "rounds.max_wait_s"):
        notes(traced(tmp_path, late), rounds={"max_wait_s": 900})
    assert not outside(notes(traced(tmp_path, late, begin_s=1500), duration_s=600))


def test_devices_of_every_class_are_looked_for(tmp_path: Path) -> None:
    """One class never comes near; the other class comes as near as 260 m, outside the cell, or 200 m, inside it."""
    far, path = traced(tmp_path, FAR)["mobility"], tmp_path / "near.csv"
    near = {"name": "trace", "path": str(path), "max_gap_s": 200}
    classes = {"far": {"count": 2, "mobility": far}, "near": {"count": 1, "mobility": near}}
    path.write_text("t,id,x,y\n0,a,0,300\n100,a,0,260\n")
    with refused_at("devices.classes.far.mobility", "260 m"):
        notes({"classes": classes}, duration_s=100)
    path.write_text("t,id,x,y\n0,a,0,300\n100,a,0,200\n")
    assert not outside(notes({"classes": classes}, duration_s=100))


HALF_PAST, MINUTE_LATER = "2026-05-04T07:30:00Z", "2026-05-04T07:31:00Z"


@pytest.mark.parametrize(
    ("times", "begin_s", "begins", "ends", "zero"),
    [
        (("0", "100"), -10_000, "0 s", "100 s", "-10000 s"),
        ((HALF_PAST, MINUTE_LATER), 5, HALF_PAST, MINUTE_LATER, "1970-01-01T00:00:05Z"),
    ],
)
def test_a_trace_that_has_not_begun_is_refused_with_its_times(
    times: tuple[str, str], begin_s: float, begins: str, ends: str, zero: str, tmp_path: Path
) -> None:
    """A number is a time since 1970, not a time since the first sample, so the error names the trace's times."""
    here = f"t,id,x,y\n{times[0]},a,0,0\n{times[1]},a,100,0\n"
    said = f"has samples from {begins} to {ends}, and time 0 is {zero}; begin at a time with samples"
    with refused_at("devices.mobility", said, "leave begin_s out"):
        notes(traced(tmp_path, here, begin_s=begin_s), duration_s=600)


@pytest.mark.parametrize(
    ("times", "time_scale", "said"),
    [
        (
            (1760000000000, 1760000080000),
            0.001,
            "from 2025-10-09T08:53:20Z to 2025-10-09T08:54:40Z, and time 0 is 1970-01-01T00:00:20Z;",
        ),
        ((100, 200), 60, "has samples from 6000 s to 12000 s, and time 0 is 20 s;"),
    ],
)
def test_times_in_other_units_are_told_as_dates_or_seconds(
    times: tuple[int, int], time_scale: float, said: str, tmp_path: Path
) -> None:
    """1.76e9 s after 1970 is 8:53:20 UTC on 9 October 2025; other times are in seconds, as begin_s is."""
    here = f"t,id,x,y\n{times[0]},a,0,0\n{times[1]},a,100,0\n"
    with refused_at("devices.mobility", said):
        notes(traced(tmp_path, here, begin_s=20, time_scale=time_scale), duration_s=60)


def test_a_device_that_passes_between_two_looks_is_noted(tmp_path: Path) -> None:
    """Samples 1e6 s / 999 = 1,001 s apart miss a visit from 95 to 105 s, at 50 m/s, so the device is noted."""
    fast = "t,id,x,y\n0,a,-5000,0\n400,a,15000,0\n"
    (note,) = outside(notes(traced(tmp_path, fast), duration_s=1e6))
    assert "1,000 times" in note


def test_people_who_live_and_work_elsewhere() -> None:
    elsewhere = commute(home=(5_000, 0), work=(6_000, 0))
    for days in (1, 7):
        (note,) = outside(notes(elsewhere, duration_s=days * 86_400))
        assert "5,000 m" in note
    with refused_at("devices", "no round takes place"):
        probe(prepare(load({**SMALL, "devices": elsewhere, "duration_s": 100})))
    commuters = commute(home=(5_000, 0), work=(0, 0))
    assert not outside(notes(commuters, duration_s=86_400))


def test_cells_that_no_device_visits_are_noted_with_the_key_that_leaves_them_out() -> None:
    """Two slow walkers visit few of seven cells; the servers of other cells would wait, and the run would fail."""
    walk = {"name": "random_waypoint", "speed_min_m_s": 0.1, "speed_max_m_s": 0.2}
    town: dict[str, Any] = {"devices": {"count": 2, "mobility": walk}, "rounds": {"max_wait_s": 20}}
    layout = {"rings": 1, "isd_m": 400}
    (note,) = outside(notes(**town, layout=layout))
    assert note.startswith("layout.federations: no device is seen in cells ")
    found = re.search(r"(\[[\d, ]+\])", note)
    kept = json.loads(found[1])
    assert 1 <= len(kept) <= 2
    assert not outside(notes(**town, layout=layout | {"federations": kept}))
    assert not outside(notes(**town, layout=layout, duration_s=30))


def test_the_error_of_a_deserted_cell_names_the_key_that_leaves_cells_out(tmp_path: Path) -> None:
    gone = traced(tmp_path, "t,id,x,y\n0,a,20,0\n1,a,900,0\n60,a,900,0\n")
    scenario = {**SMALL, "devices": gone, "rounds": {"max_wait_s": 5}}
    scenario["sessions"] = {"name": "schedule", "count": 1, "rounds": 1000}
    with refused_at("rounds.max_wait_s", "no device", "layout.federations"):
        simulate(load(scenario), out=tmp_path / "run")


SHORT = "t,id,x,y\n0,a,20,0\n10,b,0,20\n30,b,20,0\n"


@pytest.mark.parametrize(
    "length", [{"duration_s": 600}, {"sessions": {"name": "interval", "length_s": 60, "count": 10}}]
)
def test_a_trace_that_ends_before_the_run_is_noted(length: dict, tmp_path: Path) -> None:
    """The last device leaves at 30 s; devices of another class stay until the end, unless a trace moves them too."""
    devices = traced(tmp_path, SHORT)
    (note,) = cut_short(notes(devices, **length))
    assert note.startswith(
        "devices.mobility: the trace ends at 30 s of 600 s: from then on no device is present"
    )
    assert note.endswith("; set duration_s to at most 30, or use a longer trace")
    assert ("idle power still counts" in note) is ("duration_s" in length)
    assert ("cannot go on without devices" in note) is ("duration_s" not in length)
    (note,) = cut_short(notes({**devices, "idle_power_w": 0}, duration_s=600))
    assert "idle power" not in note
    for lasts_s in (30, 31):  # a trace of one sample per second may end a second before the run
        assert not cut_short(notes(devices, duration_s=lasts_s))
    classes = {"gone": traced(tmp_path, SHORT), "stays": {"count": 1, "mobility": "static"}}
    assert not cut_short(notes({"classes": classes}, **length))
    slow = classes["gone"]["mobility"] | {"time_scale": 2}
    (note,) = cut_short(notes({"classes": {**classes, "stays": {"count": 2, "mobility": slow}}}, **length))
    assert "ends at 60 s" in note


@pytest.mark.parametrize(("rounds", "until_s"), [({"every_s": 10}, 190), ({"every_s": 1}, 0), ({}, 0)])
def test_a_trace_too_short_for_rounds_at_given_times_is_noted(
    rounds: dict[str, Any], until_s: float, tmp_path: Path
) -> None:
    """Without a duration, the last of 20 rounds begins at 19 x every_s or later; the trace ends at 30 s."""
    sessions = {"name": "schedule", "count": 2, "rounds": 10}
    found = cut_short(notes(traced(tmp_path, SHORT), sessions=sessions, rounds=rounds))
    assert [note.partition(":")[2].partition(":")[0] for note in found] == [
        f" the trace ends at 30 s of {until_s} s"
    ] * (until_s > 0)


def test_devices_that_have_left_draw_idle_power_and_those_that_are_off_none(tmp_path: Path) -> None:
    """Devices a and b leave their trace at 0 and 30 s of 600 s; the device of the other class is off all the time."""
    off = {"count": 1, "churn": {"name": "duty_cycle", "on_s": 1e-3, "off_s": 1e6}}
    classes = {"gone": traced(tmp_path, SHORT), "off": off}
    scenario = {**SMALL, "devices": {"idle_power_w": 0.1, "classes": classes}, "duration_s": 600}
    scenario["sessions"] = {"name": "interval", "length_s": 600}
    ledger = pd.read_csv(simulate(load(scenario), out=tmp_path / "run") / "ledger.csv")
    assert (
        ledger.idle_j[:2].between(560 * 0.1, 600 * 0.1).all()
    )  # the radio's tail lasts up to ten seconds longer
    assert ledger.idle_j[2] == 0


@pytest.mark.parametrize(
    "mended", [{"duration_s": 30}, {"sessions": {"name": "schedule", "count": 1, "rounds": 5}}]
)
def test_the_error_after_the_end_of_a_trace_names_what_helps(mended: dict, tmp_path: Path) -> None:
    """No device comes after 30 s, so no longer wait, larger cell or further device lets the run go on."""
    scenario: dict[str, Any] = {**SMALL, "devices": traced(tmp_path, SHORT), "rounds": {"every_s": 5}}
    scenario["sessions"] = {"name": "schedule", "count": 1, "rounds": 20}
    ended = "the trace ended at 30 s, and no device comes after that"
    with refused_at("devices.mobility", ended, "duration_s of at most 30", "fewer rounds") as refusal:
        simulate(load(scenario), out=tmp_path / "run")
    assert not re.search("max_wait_s|radius_m|devices.count", str(refusal.value))
    simulate(load({**scenario, **mended}), out=tmp_path / "mended")


TWENTY = SMALL | sections("rounds.max_wait_s=5; sessions={name: schedule, count: 1, rounds: 20}")


@pytest.mark.parametrize("change", [{"recharge_w": 50}, {"battery_j": 1e4}])
def test_the_error_of_a_cell_with_empty_batteries_names_keys_that_help(
    change: dict[str, float], tmp_path: Path
) -> None:
    """If only some batteries are empty, the error names their keys beside the other remedies."""
    scenario = TWENTY | {"devices": {"count": 2, "battery_j": 0.01}}
    with refused_at("devices.battery_j", "of 2 devices, 2 with an empty battery", "recharge_w") as refused:
        simulate(scenario, tmp_path / "run")
    assert "devices.count" not in str(refused.value)
    simulate({**scenario, "devices": scenario["devices"] | change}, tmp_path / "mended")
    off = {"count": 1, "churn": {"name": "poisson", "on_s": 1e-3, "off_s": 1e9}}
    scenario["devices"] = {"classes": {"empty": {"count": 1, "battery_j": 0.01}, "off": off}}
    own = "raise devices.classes.empty.battery_j, recharge_w beside it, devices.count"
    with refused_at("rounds.max_wait_s", "1 switched off and 1 with an empty", own):
        simulate(scenario, tmp_path / "both")


def test_the_error_of_empty_batteries_names_the_key_of_their_class(tmp_path: Path) -> None:
    """A class may set a battery, or take over the battery of `devices`."""
    own = "devices.classes.small.battery_j"
    with refused_at(own, f"raise {own}, or recharge_w beside"):
        classes = {"small": {"count": 2, "battery_j": 0.01}}
        simulate(TWENTY | {"devices": {"classes": classes}}, tmp_path / "own")
    with refused_at("", f"raise devices.battery_j and {own}, or recharge_w beside"):
        classes = {"small": {"count": 1, "battery_j": 0.02}, "rest": {"count": 1}}
        simulate(TWENTY | {"devices": {"battery_j": 0.01, "classes": classes}}, tmp_path / "both")


# the path losses of UMi and UMa hold up to 5 km (TR 38.901, Table 7.4.1-1)
ROAD = [[-3000, 0], [-1500, 0], [0, 0], [1500, 0], [3000, 0]]
ROADSIDE = sections("""
    name=road; duration_s=40; sessions={name: interval, length_s: 20}; rounds.every_s=10
    radio={preset: journal, propagation: {shadowing: spatial, shadowing_std_db: 0}}
    workload={payload_bits: 1e6, flops_per_sample: 1e6}
""")


def driven(folder: Path, track: str, sites: Any, law: str = "uma", **sections: Any) -> dict[str, Any]:
    """Write a scenario whose devices follow a track of t,id,x,y in line of sight, without shadowing."""
    return {
        **ROADSIDE,
        "layout": {"sites": sites, "radius_m": 9000},
        "radio": {**ROADSIDE["radio"], "path_loss": law},
        "devices": traced(folder, f"t,id,x,y\n{track}"),
        **sections,
    }


def far(distance: str, scenario: dict[str, Any]) -> list[str]:
    """Return the notes on devices that are farther away than a distance."""
    return [note for note in prepare(load(scenario)).notes if f"farther than {distance}" in note]


@pytest.mark.parametrize("law", ["umi", "uma"])
def test_a_road_of_sites_serves_all_of_the_way(tmp_path: Path, law: str) -> None:
    """A device that drives 6 km in 120 s past five sites completes every round with a nearby site."""
    wide = driven(tmp_path, "0,a,-3000,20\n120,a,3000,20\n", ROAD, law, duration_s=120)
    wide["rounds"]["every_s"] = 20
    run = simulate(wide, tmp_path / "run")
    rows = pd.read_csv(run / "devices.csv")
    assert (rows.outcome == "completed").all()
    assert rows.distance_m.between(0, 1000).all()
    assert not far("", wide)


def test_a_device_is_absent_while_no_site_is_in_range(tmp_path: Path) -> None:
    """A device that moves from 4,800 to 5,200 m from its only site at 40 m/s is out of range after 5 s.

    Range is checked every 0.2 s. A second device stays in range. The site at -8,500 m reaches neither device.
    """
    track = "0,a,4800,0\n10,a,5200,0\n40,a,5200,0\n0,b,100,0\n40,b,100,0\n"
    wide = driven(tmp_path, track, [[0, 0], [-8500, 0]])
    (note,) = far("5,000 m", wide)
    assert "1 of 2 devices" in note
    run = simulate(wide, tmp_path / "run")
    events = pd.read_csv(run / "events.csv")
    gone = events[events.event == "departure"]
    assert gone.device.tolist() == [0]
    assert 5.0 <= gone.time_s.iloc[0] <= 5.2 + 1e-9
    rows = pd.read_csv(run / "devices.csv")
    assert set(rows[rows.downlink_start_s > 5.2].device) == {1}


def test_a_device_without_a_site_in_range_on_all_of_its_way_is_refused(tmp_path: Path) -> None:
    track = "0,a,0,0\n40,a,10,0\n0,b,8000,0\n40,b,7000,0\n0,c,0,8000\n40,c,0,8000\n"
    with refused_at("layout.sites", "device 1", "5,000 m", "1 more", "layout.radius_m") as refusal:
        prepare(load(driven(tmp_path, track, [[0, 0], [-8500, 0]])))
    assert "free_space" not in str(refusal.value)


def test_a_short_visit_within_range_is_found(tmp_path: Path) -> None:
    """A device that is in range for 0.04 s of 40 s, between samples 0.2 s apart, is found by finer sampling."""
    track = "0,a,5500,0\n20.1,a,5010,0\n20.3,a,4999,0\n20.5,a,5010,0\n40,a,5500,0\n"
    (note,) = far("", driven(tmp_path, track, [[0, 0], [-8500, 0]]))
    assert float(re.search(r"\(([\d.]+) %", note)[1]) > 99


def test_devices_whose_paths_leave_the_world_are_noted(tmp_path: Path) -> None:
    """Device a is beyond the world's 9,000 m in half of the 40 s, device b always, device c never."""
    track = "0,a,8800,0\n40,a,9200,0\n0,b,9100,0\n40,b,9100,0\n0,c,100,0\n40,c,100,0\n"
    wide = driven(tmp_path, track, [[0, 0], [-8500, 0]], "free_space")
    (note,) = [note for note in far("", wide) if "layout.radius_m" in note]
    assert "2 of 3 devices are farther than 9,000 m from [0, 0] on part of their path (50.0 % of" in note
    wide["layout"] = {"sites": [[0, 0], [-8500, 0]], "radius_m": 9300}
    assert not far("", wide)


@pytest.mark.parametrize(
    ("begin_hour", "said"),
    [
        (
            0,
            "no device moves before 28,800 s, and the run ends at 600 s: no trip begins between 0:00 and 0:10;"
            " set begin_hour, or raise duration_s",
        ),
        (7.9, ""),  # people leave at 8:00, 360 s later
        (23.9, "no trip begins between 23:54 and 0:04; set begin_hour"),
        (12, "no device moves before 18,000 s"),
    ],
)
def test_people_who_stay_at_home_for_the_whole_run_are_noted(begin_hour: float, said: str) -> None:
    devices = commute(work=(100.0, 0.0))
    devices["mobility"]["begin_hour"] = begin_hour
    found = [note for note in notes(devices, duration_s=600.0) if "moves before" in note]
    assert len(found) == bool(said)
    assert all(said in note for note in found)


def test_a_class_that_does_not_move_is_noted_beside_one_that_does() -> None:
    people = commute(work=(100.0, 0.0))
    walk = {"name": "random_waypoint", "area_factor": 1.0}
    classes = {"people": {"count": 2, "mobility": people["mobility"]}, "cars": {"mobility": walk}}
    (found,) = [
        note for note in notes({"count": 5, "classes": classes}, duration_s=600.0) if " move before" in note
    ]
    assert found.startswith("devices.mobility: 2 of 5 devices do not move before 28,800 s")


@pytest.mark.parametrize(("at_m", "outside"), [(1250, 0), (1350, 3)])
def test_places_of_an_itinerary_outside_the_world_are_noted(at_m: float, outside: int) -> None:
    """People may walk to 1.3 x radius_m, their area_factor; beyond, they are absent."""
    plan = [{"leave": 8, "to": "work"}, {"leave": 18, "to": "home"}]
    away = {"name": "itinerary", "addresses": {"home": [at_m, 0], "work": [0, 0]}, "plan": plan}
    town = {**ROADSIDE, "layout": {"sites": [[0, 0], [300, 0]], "radius_m": 1000}}
    found = far(
        "1,300 m (area_factor 1.3 x layout.radius_m)", {**town, "devices": {"count": 3, "mobility": away}}
    )
    assert [f"{outside} of 3 devices are" in note for note in found] == [True] * (outside > 0)
