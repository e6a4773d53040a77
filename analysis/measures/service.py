"""Count the devices in service over time: those that each cell serves, and those that any cell could serve.

The first counts weight the cells' models in averages. Devices in service are in the area of the cells, switched on
and charged.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edgefl.analysis.measures.metrics import RUN, of_run, training_rounds
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.reading import forms, read_all
from edgefl.analysis.runs.vocabulary import CONDITIONS, HANDOVER

COMING = ("arrival", "switched_on", "battery_back", HANDOVER)
LEAVING = ("departure", "switched_off", "battery_empty")
WAITING = "waiting_for_devices"
STARTS = "session_start"
MOVES = ("arrival", "departure", HANDOVER)


class Service:
    """The devices that each cell of one run serves, from sessions.csv and events.csv.

    A session's row lists the devices at the session's start; a waiting cell has no devices. During the session,
    arrivals, departures and handovers change these devices. A link that fails and is re-established in its cell
    changes nothing; a link that is re-established in another cell counts as a handover.
    """

    def __init__(self, sessions: pd.DataFrame, events: pd.DataFrame) -> None:
        some = ("row", "time_s", "event", "cell", "from_cell", "interruption_s")
        events = events.assign(row=np.arange(len(events)))
        self._sessions = sessions
        self._events = events.loc[
            _acts(events) | (events["event"] == HANDOVER).to_numpy(),
            [name for name in some if name in events],
        ]

    @classmethod
    def of(cls, runs: Runs, run: Any) -> "Service":
        """Read the served devices from the tables of one run, a row of `runs.info`."""
        return cls(of_run(runs.sessions, run), of_run(runs.events, run))

    @property
    def changes_s(self) -> np.ndarray:
        """The ascending times at which the number of devices that a cell serves may change."""
        times_s, starts_s = (
            one.to_numpy(float) for one in (self._events["time_s"], self._sessions["start_s"])
        )
        if "interruption_s" in self._events:
            times_s = np.append(times_s, times_s + self._events["interruption_s"].fillna(0.0))
        return np.union1d(times_s, starts_s)

    def at(self, cell: int, times_s: np.ndarray) -> np.ndarray:
        """Count the devices that a cell serves at given times; 0 before the cell's first session.

        A device that comes or leaves at the instant at which a session starts is in the session's list if its event
        is before the session's in events.csv.
        """
        changes, known = self._changes(cell), self._known(cell)
        if known.empty:
            return np.zeros(len(times_s))
        changed_s, rows = changes["time_s"].to_numpy(float), changes["row"].to_numpy()
        sums = np.append(0.0, changes["by"].cumsum())
        known_s = known["time_s"].to_numpy(float)
        ties = zip(*(np.searchsorted(changed_s, known_s, side) for side in ("left", "right")), strict=True)
        counted = [
            first + np.searchsorted(rows[first:after], row)
            for (first, after), row in zip(ties, known["row"], strict=True)
        ]
        latest = np.searchsorted(known_s, times_s, side="right") - 1
        since = np.maximum(latest, 0)
        now = sums[np.searchsorted(changed_s, times_s, side="right")]
        many = known["many"].to_numpy(float)[since] + now - sums[counted][since]
        return np.where(latest >= 0, np.maximum(many, 0.0), 0.0)

    def _changes(self, cell: int) -> pd.DataFrame:
        """List when a cell begins (by: 1) or ceases (-1) to serve a device, in order of time and row."""
        events = self._events
        here = events["cell"] == cell
        coming, leaving = (events[here & events["event"].isin(words)] for words in (COMING, LEAVING))
        if "from_cell" in events:
            leaving = pd.concat(
                [leaving, events[(events["from_cell"] == cell) & (events["event"] == HANDOVER)]]
            )
        comes_s = coming["time_s"]
        if "interruption_s" in events:
            # after a handover, a cell serves the device once the interruption is over
            comes_s = comes_s + coming["interruption_s"].fillna(0.0)
        changes = pd.concat([coming.assign(time_s=comes_s, by=1), leaving.assign(by=-1)])
        return changes[["time_s", "row", "by"]].sort_values(["time_s", "row"])

    def _known(self, cell: int) -> pd.DataFrame:
        """List how many devices a cell serves at the start of each session, and when it waits for devices."""
        events = self._events[self._events["cell"] == cell]
        sessions = self._sessions[self._sessions["cell"] == cell]
        starts = events[events["event"] == STARTS]
        row_at = dict(zip(starts["time_s"], starts["row"], strict=True))
        known = pd.DataFrame(
            {
                "time_s": sessions["start_s"],
                "row": sessions["start_s"].map(row_at).fillna(math.inf),
                "many": sessions["devices"].astype(str).str.split().str.len(),
            }
        )
        empty = events.loc[events["event"] == WAITING, ["time_s", "row"]].assign(many=0)
        return pd.concat([empty, known]).sort_values("time_s", kind="stable")

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

    def accuracy(self, rounds: pd.DataFrame, times_s: np.ndarray) -> np.ndarray:
        """Return the accuracy of the cells' latest tested models, averaged by `mean`; NaN before the first test.

        The rounds of the run are in order of their ends; the accuracy at a time that is NaN is NaN.
        """
        tested = training_rounds(rounds).dropna(subset="accuracy")
        cells = {
            int(number): step(cell["end_s"].to_numpy(), cell["accuracy"].to_numpy(), times_s)
            for number, cell in tested.groupby("cell")
        }
        return self.mean(cells, np.nan_to_num(times_s)) if cells else np.full(len(times_s), np.nan)


def step(places: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Evaluate a step function: the value of the last step so far, or NaN before the first step."""
    index = np.searchsorted(places, at, side="right") - 1
    return np.where((index >= 0) & ~np.isnan(at), values[np.maximum(index, 0)], np.nan)


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


class Tables(NamedTuple):
    """A run, which is a row of `Runs.info`, and its rows of some tables; `ledger` may be empty."""

    run: Any
    events: pd.DataFrame
    devices: pd.DataFrame
    sessions: pd.DataFrame
    ledger: pd.DataFrame


class InService(NamedTuple):
    """The devices of a run that are ever in the area of the cells, and their time spans out of service.

    devices: number of these devices. gaps_s: [gaps, 2] start and end of each span in which one of them is away,
    switched off or empty; the spans of one device do not overlap.
    """

    devices: int
    gaps_s: np.ndarray

    @classmethod
    def of(cls, own: Tables) -> "InService":
        """Read the devices in service from the tables of one run."""
        ids = _ever_in_area(own)
        changes = own.events[own.events["event"].isin(CONDITIONS) & own.events["device"].isin(ids)]
        gaps = [
            gap
            for _, rows in changes.groupby("device")
            for gap in _gaps_of(zip(rows["time_s"], rows["event"], strict=True), own.run.simulated_s)
        ]
        return cls(len(ids), np.array(gaps).reshape(-1, 2))

    def missing_s(self, until_s: np.ndarray) -> np.ndarray:
        """Return the device-seconds out of service before each of the times [n]."""
        since_s, end_s = self.gaps_s.T
        missing_s: np.ndarray = np.clip(until_s[:, None] - since_s, 0.0, end_s - since_s).sum(axis=1)
        return missing_s


def ledgers(runs: Runs) -> pd.DataFrame:
    """Return the ledger of all runs that have one; incomplete runs have none, or an empty file."""
    whole = runs.info[runs.info["status"] == "completed"]
    some = whole[[any(forms(Path(path), "ledger")) for path in whole["path"]]]
    return read_all(some, "ledger") if len(some) else pd.DataFrame(columns=[*RUN, "device", "energy_j"])


def _ever_in_area(own: Tables) -> set[int]:
    """Return the ids of the devices that are in the area of the cells at any time.

    A device that stays in its cell has no event, and may be in no session and no round, because its cell has no
    server or the selector never selects it. If such a device is possible, the table of positions decides.
    """
    events, ledger = own.events, own.ledger
    known = _ids(events.loc[events["event"].isin(MOVES) | events["cell"].notna(), "device"])
    known |= _ids(own.devices["device"]) | _ids(ledger.loc[ledger["energy_j"] > 0, "device"])
    known |= {int(one) for of in own.sessions["devices"] for one in of.split()}
    everyone = _ids(ledger["device"])
    if (everyone and everyone <= known) or not any(forms(Path(own.run.path), "positions")):
        return known
    positions = read_all(pd.DataFrame([own.run]), "positions").dropna(subset="cell")
    # a single cell also serves devices that are switched off
    return known | (_ids(positions["device"]) if positions["cell"].any() else set())


def _ids(devices: pd.Series) -> set[int]:
    return set(devices.dropna().astype(int))


def _gaps_of(changes: Iterable[tuple[float, str]], until_s: float) -> list[tuple[float, float]]:
    """List the gaps in one device's service, from its events (time, name) in order of time."""
    lacks: dict[str, float] = {}  # condition -> its start
    known: set[str] = set()
    gaps: list[tuple[float, float]] = []
    for time_s, event in changes:
        condition, fulfilled = CONDITIONS[event]
        if fulfilled:
            # a device whose first event is an arrival was away from the start
            gaps.append((lacks.pop(condition, 0.0 if condition not in known else time_s), time_s))
        else:
            lacks[condition] = time_s
        known.add(condition)
    gaps += [(since_s, until_s) for since_s in lacks.values()]
    joined: list[tuple[float, float]] = []
    covered_s = 0.0
    for since_s, end_s in sorted(gaps):
        if end_s > max(since_s, covered_s):
            joined.append((max(since_s, covered_s), end_s))
        covered_s = max(covered_s, end_s)
    return joined
