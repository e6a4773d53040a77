"""Find the devices of a run that are in service: in the area of the cells, switched on and charged."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edgefl.analysis.measures.metrics import RUN
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.reading import forms, read_all
from edgefl.analysis.runs.vocabulary import CONDITIONS, HANDOVER

MOVES = ("arrival", "departure", HANDOVER)


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
