"""Find the joules of tails that still run when a round ends; its row counts them, but they are spent later."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgefl.analysis.measures.metrics import SESSION, of_run
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.reading import forms, read_all
from edgefl.analysis.runs.scenario_keys import keys_of

ROUND = [*SESSION, "phase", "round"]
STARTS, ENDS = ["downlink_start_s", "uplink_start_s"], ["uplink_end_s", "downlink_end_s"]
NEEDED = [*STARTS, *ENDS, "energy_tail_j"]
LASTS = (".release_s", ".tail_s")  # endings of the keys that limit a tail


def with_open_tails(runs: Runs) -> pd.DataFrame:
    """Return the rounds of runs with `open_tail_j`, the joules of the tails of a session that run at a round's end.

    The column is NaN in runs without rows of all devices (`record.devices`), and absent if no radio has tails.
    """
    rounds = runs.rounds
    if not rounds["energy_tail_j"].any():
        return rounds
    parts = [_of_run(of_run(rounds, run), run, runs.info.loc[[run.Index]]) for run in runs.info.itertuples()]
    return rounds.assign(open_tail_j=pd.concat(parts))


def _of_run(rounds: pd.DataFrame, run: Any, info: pd.DataFrame) -> pd.Series:
    """Return the joules of open tails of one run, NaN if they are unknown."""
    if run.devices_recorded == "all" and any(forms(Path(run.path), "devices")):
        devices = read_all(info, "devices")
        if {*NEEDED} <= {*devices}:
            keys = keys_of(run.path).items()
            lasts = [value for key, value in keys if key.endswith(LASTS) and isinstance(value, int | float)]
            return open_tails(rounds, devices, max(lasts, default=math.inf))
    return pd.Series(math.nan, rounds.index)


def open_tails(rounds: pd.DataFrame, devices: pd.DataFrame, longest_s: float) -> pd.Series:
    """Add up, at the end of each round of a run, the tails of the session's rounds so far that are not over.

    A tail is over when the device's next transfer begins, or `longest_s` after the transfer. What follows a round
    does not change the joules that remain without its open tails.

    Returns:
        joules, with the index of `rounds`.
    """
    spells = rounds.sort_values([*SESSION, "start_s"])
    spells = spells[[*ROUND, "end_s"]].assign(place=np.arange(len(spells)))
    spells["after"] = spells.groupby(SESSION)["place"].transform("max") + 1
    begins_s, ends_s = (devices[names].bfill(axis=1).iloc[:, 0] for names in (STARTS, ENDS))
    parts = devices[[*ROUND, "device", "energy_tail_j"]].assign(begins_s=begins_s)
    parts = parts[begins_s.notna()].sort_values("begins_s", kind="stable")
    next_s = parts.groupby("device")["begins_s"].shift(-1).fillna(math.inf)
    parts["over_s"] = np.fmin(next_s, ends_s.reindex(parts.index) + longest_s)
    parts = parts.merge(spells[[*ROUND, "place", "after"]], on=ROUND).sort_values("over_s", kind="stable")
    ends = spells.sort_values("end_s")[[*SESSION, "end_s", "place"]].rename(columns={"place": "last"})
    # a transfer of the next round may begin exactly when this round ends
    how: dict[str, Any] = {"direction": "forward", "allow_exact_matches": False}
    parts = pd.merge_asof(parts, ends, left_on="over_s", right_on="end_s", by=SESSION, **how)
    until = np.maximum(parts["place"], parts["last"].fillna(parts["after"])).astype(int)
    change_j = np.zeros(len(spells) + 1)
    np.add.at(change_j, parts["place"], parts["energy_tail_j"])
    np.subtract.at(change_j, until, parts["energy_tail_j"])
    return pd.Series(change_j.cumsum()[:-1].clip(min=0.0), spells.index).reindex(rounds.index)
