"""Test the joules of work under way when an asynchronous server makes a model."""

import pandas as pd
import pytest

from edgefl.analysis.runs.under_way import _at_ends


def test_a_part_has_spent_the_elapsed_share_of_each_activity() -> None:
    """A device connects from 0.5 s, receives until 2 s, computes until 4 s, and connects and sends until 6 s."""
    part = {
        "round": 3,
        "downlink_start_s": 1.0,
        "downlink_end_s": 2.0,
        "compute_start_s": 2.0,
        "compute_end_s": 4.0,
        "uplink_start_s": 4.5,
        "uplink_end_s": 6.0,
        "access_s": 1.0,
        "energy_rx_j": 3.0,
        "energy_compute_j": 1.0,
        "energy_tx_j": 2.0,
    }
    cut_off = part | {"compute_end_s": None, "uplink_start_s": None, "uplink_end_s": None}
    cut_off |= {"downlink_start_s": 1.5, "energy_compute_j": 0.0, "energy_tx_j": 0.0}
    rounds = pd.DataFrame({"round": [1, 2, 3], "end_s": [1.25, 5.0, 7.0]})
    # half of the 3 J after 0.75 of 1.5 s; all of receiving and computing, and half of the 2 J after 1 of 2 s
    assert _at_ends(rounds, pd.DataFrame([part])).tolist() == pytest.approx([1.5, 5.0, 0.0])
    # the whole access was before this part's download, which lasts from 0.5 s to 2 s as well
    assert _at_ends(rounds, pd.DataFrame([cut_off])).tolist() == pytest.approx([1.5, 3.0, 0.0])
