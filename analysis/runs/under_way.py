"""Compute how many joules the devices at work have spent when an asynchronous server makes a model."""

from typing import Any

import numpy as np
import pandas as pd

from edgefl.analysis.runs.reading import RUN, SESSION, read_all

UNDER_WAY = "under_way_j"  # column of `Runs.rounds`


def asynchronous(info: pd.DataFrame, rounds: pd.DataFrame) -> list[bool]:
    """Return for each run whether devices are at work while one of its models is made."""
    working = rounds.loc[rounds["working"] > 0, RUN] if "working" in rounds else rounds.loc[[], RUN]
    runs = set(working.itertuples(index=False, name=None))
    return [run in runs for run in info[RUN].itertuples(index=False, name=None)]


def with_work_under_way(info: pd.DataFrame, rounds: pd.DataFrame) -> pd.DataFrame:
    """Add the column under_way_j, with the joules spent on updates that are not in a model when a round ends.

    `rounds.csv` counts a device's joules with the model that has its update. At the end of an earlier round, the
    device has spent the joules of finished activities, and of its current activity in proportion to the time, without
    tails, which are in `energy_cut_j`. Only runs with an asynchronous server and with the device rows of all rounds
    have such joules; without such runs, there is no column.
    """
    recorded = info[info["devices_recorded"] == "all"]
    some = recorded[asynchronous(recorded, rounds)]
    if some.empty:
        return rounds
    under_way_j, devices = pd.Series(0.0, rounds.index), read_all(some, "devices")
    parts = devices[devices["phase"] != "probe"].groupby(SESSION)
    for key, own in rounds[rounds["working"] > 0].groupby(SESSION):
        if key in parts.groups:
            own = own.sort_values("round")
            under_way_j[own.index] = _at_ends(own, parts.get_group(key))
    return rounds.assign(**{UNDER_WAY: under_way_j})


def _at_ends(rounds: pd.DataFrame, parts: pd.DataFrame) -> np.ndarray:
    """Return [rounds] the joules spent by then on parts that a later round counts, in one session."""
    ends_s, numbers = rounds["end_s"].to_numpy(float), rounds["round"].to_numpy()
    column = {name: parts[name].to_numpy(float) for name in parts if str(name).endswith(("_s", "_j"))}
    idle_s = np.nan_to_num(column["uplink_start_s"] - column["compute_end_s"])  # access before the upload
    access_s = np.maximum(column.get("access_s", 0.0 * idle_s) - idle_s, 0.0)
    begins_s = column["downlink_start_s"] - access_s
    first = ends_s.searchsorted(begins_s, side="right")
    counts = np.maximum(numbers.searchsorted(parts["round"].to_numpy()) - first, 0)
    # a row for each part and each round that ends while the part is under way
    part = np.repeat(np.arange(len(parts)), counts)
    of_round = np.arange(len(part)) - np.repeat(counts.cumsum() - counts, counts) + first[part]
    now_s, spent_j = ends_s[of_round], np.zeros(len(part))
    for energy, begin_s, end_s in (
        ("energy_rx_j", begins_s, column["downlink_end_s"]),
        ("energy_compute_j", column["compute_start_s"], column["compute_end_s"]),
        ("energy_tx_j", column["compute_end_s"], column["uplink_end_s"]),
    ):
        spent_j += np.nan_to_num(column[energy][part] * _share(now_s, begin_s[part], end_s[part]))
    return np.bincount(of_round, spent_j, minlength=len(rounds))


def _share(now_s: Any, begin_s: Any, end_s: Any) -> Any:
    """Return the share of each activity that is over; NaN for activities that never took place."""
    lasts_s = end_s - begin_s
    share = np.where(now_s >= end_s, 1.0, 0.0)
    running = (now_s > begin_s) & (now_s < end_s)
    share[running] = (now_s[running] - begin_s[running]) / lasts_s[running]
    return np.where(np.isnan(lasts_s), np.nan, share)
