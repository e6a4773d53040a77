"""Codecs in a whole run, in which devices change cells and lose updates: interrupted, it goes on byte for byte."""

from pathlib import Path
from typing import Any

import pytest

import edgefl
from tests.tools.leaving import goes_on

MOVING: dict[str, Any] = {
    "name": "moving",
    "seed": 4,
    "layout": {"rings": 1, "isd_m": 300},
    "devices": {
        "count": 24,
        "mobility": {"name": "random_waypoint", "speed_min_m_s": 40, "speed_max_m_s": 60},
    },
    "radio": {"preset": "journal", "bandwidth_hz": 1e5, "propagation": {"shadowing": "spatial"}},
    "sessions": {"name": "schedule", "count": 3, "rounds": 3},
    "learning": {
        "dataset": "digits",
        "model": {"name": "mlp2", "hidden": 100},
        "partition": {"name": "dirichlet", "alpha": 0.5},
        "local": {"lr": 0.05, "batch": 16},
        "uplink_codec": {"name": "qsgd", "error_feedback": True, "levels": 3},
        "downlink_codec": {"name": "top_k", "share": 0.2},
    },
}
ROUND = 17
# updates of several models wait for the server, each with what its device would have received
OVERLAPPING = {
    "radio.sharing": "dynamic",
    "radio.scheduler": "round_robin",
    "handover.policy": "finish",
    "rounds.server": {"name": "fedbuff", "buffer": 2, "concurrency": 4},
}


@pytest.mark.parametrize("server", [{}, OVERLAPPING], ids=["synchronous", "fedbuff"])
def test_an_interrupted_run_with_codecs_goes_on_byte_for_byte(server: dict[str, Any], tmp_path: Path) -> None:
    whole = goes_on(edgefl.load_scenario(MOVING).with_(server), tmp_path, ROUND, every=3)
    devices = whole.devices
    assert devices.groupby("device").cell.nunique().max() > 1, "somebody learns in two cells"
    assert (devices.outcome != "completed").any(), "somebody's update is lost"
