"""Test the charge of batteries over time, from the ledger and the energy of each participation."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from edgefl.analysis.html.replay import _battery

RUN = SimpleNamespace(devices_recorded="all", simulated_s=100.0)


def test_a_battery_falls_by_each_participation_and_by_what_idles() -> None:
    """Device 0 has 40 J: it uses 10 J at 20 s, 10 J at 60 s, and 10 J while idle in 100 s.

    Device 1 uses half of its 20 J while idle. Device 2 is on mains.
    """
    ledger = pd.DataFrame(
        {
            "device": [0, 1, 2],
            "total_j": [30.0, 10.0, 5.0],
            "idle_j": [10.0, 10.0, 0.0],
            "recharged_j": [0.0, 0.0, 0.0],
            "left_j": [10.0, 10.0, np.nan],
        }
    )
    rows = pd.DataFrame(
        {
            "device": [0, 0, 2],
            "downlink_end_s": [5.0, 45.0, 5.0],
            "compute_end_s": [15.0, 55.0, 6.0],
            "uplink_end_s": [20.0, 60.0, 7.0],
            "energy_j": [10.0, 10.0, 5.0],
        }
    )
    times_s = np.array([0.0, 10.0, 20.0, 60.0, 100.0])
    share = _battery(ledger, rows, RUN, np.arange(3), times_s, [])
    assert share is not None
    assert share[0].tolist() == pytest.approx([1.0, 39 / 40, 28 / 40, 14 / 40, 10 / 40])
    assert share[1].tolist() == pytest.approx([1.0, 19 / 20, 18 / 20, 14 / 20, 10 / 20])
    assert np.isnan(share[2]).all()
