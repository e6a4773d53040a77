"""Test layouts wider than the path loss model's range, in which devices without a site in range are absent."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgefl import simulate
from edgefl.run.plan import prepare
from edgefl.scenario import scenario
from tests.refusals import refused_at

# the range of UMi's and UMa's path loss (TR 38.901, Table 7.4.1-1)
ROAD = [[-3000, 0], [-1500, 0], [0, 0], [1500, 0], [3000, 0]]


def driven(folder: Path, track: str, sites: Any, law: str = "uma", **sections: Any) -> dict[str, Any]:
    """Write a scenario whose devices follow a track of t,id,x,y in line of sight, without shadowing."""
    (folder / "track.csv").write_text(f"t,id,x,y\n{track}")
    devices = len({line.split(",")[1] for line in track.split()})
    return {
        "name": "road",
        "duration_s": 40,
        "layout": {"sites": sites, "radius_m": 9000},
        "radio": {
            "preset": "journal",
            "path_loss": law,
            "propagation": {"shadowing": "spatial", "shadowing_std_db": 0},
        },
        "devices": {"count": devices, "mobility": {"name": "trace", "path": str(folder / "track.csv")}},
        "sessions": {"name": "interval", "length_s": 20},
        "rounds": {"every_s": 10},
        "workload": {"payload_bits": 1e6, "flops_per_sample": 1e6},
        **sections,
    }


@pytest.mark.parametrize("law", ["umi", "uma"])
def test_a_road_of_sites_serves_all_of_the_way(tmp_path: Path, law: str) -> None:
    """A device that drives 6 km in 120 s past five sites completes every round with a nearby site."""
    wide = driven(tmp_path, "0,a,-3000,20\n120,a,3000,20\n", ROAD, law, duration_s=120)
    wide["rounds"]["every_s"] = 20
    run = simulate(wide, tmp_path / "run")
    rows = pd.read_csv(run / "devices.csv")
    assert (rows.outcome == "completed").all()
    assert rows.distance_m.between(0, 1000).all()
    assert not [note for note in prepare(scenario.load(wide)).notes if "farther than" in note]


def test_a_device_is_absent_while_no_site_is_in_range(tmp_path: Path) -> None:
    """A device that moves from 4,800 to 5,200 m from its only site at 40 m/s is out of range from 5 s on.

    Range is checked every 0.2 s. A second device stays in range. The site at -8,500 m reaches neither device.
    """
    track = "0,a,4800,0\n10,a,5200,0\n40,a,5200,0\n0,b,100,0\n40,b,100,0\n"
    wide = driven(tmp_path, track, [[0, 0], [-8500, 0]])
    notes = prepare(scenario.load(wide)).notes
    (note,) = [note for note in notes if "farther than 5,000 m" in note]
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
        prepare(scenario.load(driven(tmp_path, track, [[0, 0], [-8500, 0]])))
    assert "free_space" not in str(refusal.value)


def test_a_short_visit_within_range_is_found(tmp_path: Path) -> None:
    """A device that is in range for 0.04 s of 40 s, between samples 0.2 s apart, is found by finer sampling."""
    track = "0,a,5500,0\n20.1,a,5010,0\n20.3,a,4999,0\n20.5,a,5010,0\n40,a,5500,0\n"
    notes = prepare(scenario.load(driven(tmp_path, track, [[0, 0], [-8500, 0]]))).notes
    (note,) = [note for note in notes if "farther than" in note]
    assert float(re.search(r"\(([\d.]+)%", note)[1]) > 99
