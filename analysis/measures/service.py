"""Count the devices that each cell serves over time; the counts weight the cells' models in averages."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from edgefl.analysis.measures.metrics import of_run
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.vocabulary import CONDITIONS, HANDOVER

COMING = ("arrival", "switched_on", "battery_back", HANDOVER)
LEAVING = ("departure", "switched_off", "battery_empty")
WAITING = "waiting_for_devices"


class Service:
    """The devices that each cell of one run serves, from sessions.csv and events.csv.

    A session's row lists the devices at the session's start; a waiting cell has no devices. During the session,
    arrivals, departures and handovers change these devices. A link that fails and is re-established in its cell
    changes nothing; a link that is re-established in another cell counts as a handover.
    """

    def __init__(self, sessions: pd.DataFrame, events: pd.DataFrame) -> None:
        known = [
            name for name in ("time_s", "event", "cell", "from_cell", "interruption_s") if name in events
        ]
        self._sessions = sessions
        self._events = events.loc[_acts(events) | (events["event"] == HANDOVER).to_numpy(), known]

    @classmethod
    def of(cls, runs: Runs, run: Any) -> "Service":
        """Read the served devices from the tables of one run, a row of `runs.info`."""
        return cls(of_run(runs.sessions, run), of_run(runs.events, run))

    def at(self, cell: int, times_s: np.ndarray) -> np.ndarray:
        """Count the devices that a cell serves at given times; 0 before the cell's first session."""
        events = self._events
        here = events["cell"] == cell
        coming, leaving = (here & events["event"].isin(words) for words in (COMING, LEAVING))
        if "from_cell" in events:
            leaving |= (events["from_cell"] == cell) & (events["event"] == HANDOVER)
        comes_s = events.loc[coming, "time_s"]
        if (
            "interruption_s" in events
        ):  # after a handover, a cell serves the device once the interruption is over
            comes_s = comes_s + events.loc[coming, "interruption_s"].fillna(0.0)
        changes = pd.concat(
            [comes_s.to_frame("time_s").assign(by=1), events.loc[leaving, ["time_s"]].assign(by=-1)]
        ).sort_values("time_s", kind="stable")
        changed_s, sums = changes["time_s"].to_numpy(float), np.append(0.0, changes["by"].cumsum())

        mine = self._sessions[self._sessions["cell"] == cell]
        known = pd.DataFrame(
            {"time_s": mine["start_s"], "many": mine["devices"].astype(str).str.split().str.len()}
        )
        empty = events.loc[here & (events["event"] == WAITING), ["time_s"]].assign(many=0)
        known = pd.concat([empty, known], ignore_index=True).sort_values("time_s", kind="stable")
        known_s = known["time_s"].to_numpy(float)
        if not len(known_s):
            return np.zeros(len(times_s))

        def until(at_s: np.ndarray) -> np.ndarray:
            return sums[np.searchsorted(changed_s, at_s, side="right")]

        latest = np.searchsorted(known_s, times_s, side="right") - 1
        since = np.maximum(latest, 0)
        many = known["many"].to_numpy(float)[since] + until(times_s) - until(known_s[since])
        return np.where(latest >= 0, np.maximum(many, 0.0), 0.0)

    def mean(self, of_cells: Mapping[int, np.ndarray], times_s: np.ndarray) -> np.ndarray:
        """Average the cells' values at given times, weighted by devices served; skip NaN (a cell without a value).

        While no cell serves any device, the mean keeps its last value.
        """
        if len(of_cells) == 1:
            return next(iter(of_cells.values()))
        values = np.stack(list(of_cells.values()))
        weights = np.stack([self.at(cell, times_s) for cell in of_cells])
        weights = np.where(np.isnan(values), 0.0, weights)
        total = weights.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(total > 0, np.nansum(weights * values, axis=0) / total, np.nan)
        return pd.Series(mean).ffill().to_numpy()


def _acts(events: pd.DataFrame) -> np.ndarray:
    """Return [events] whether each event begins or ends the service of its device, or is of no device.

    In a single cell, devices also arrive and depart while they are switched off, or are switched while empty.
    """
    before, after = np.ones((2, len(events)), dtype=bool)
    for condition in {of for of, _ in CONDITIONS.values()}:
        words = {word: float(begins) for word, (of, begins) in CONDITIONS.items() if of == condition}
        own = events["event"].map(words).astype(float).groupby(events["device"])
        at_first = 1.0 - own.transform("first")  # the first change tells the state before it; nan: no change
        since = own.ffill().fillna(at_first).fillna(1.0)
        until = since.groupby(events["device"]).shift().fillna(at_first).fillna(1.0)
        before, after = before & (until > 0).to_numpy(), after & (since > 0).to_numpy()
    return (before != after) | events["device"].isna().to_numpy()


Services = Mapping[tuple[str, int], Service]  # service of each variant and seed


def services_of(runs: Runs) -> Services:
    """Read the devices that cells serve in each run."""
    return {(run.variant, run.seed): Service.of(runs, run) for run in runs.info.itertuples()}
