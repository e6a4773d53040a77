"""What a run says of its town's day: who was where at each time, served by whom, and how good a cell's model was."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.html.places import areas_of, layout_of, streets_of
from analysis.load import Runs
from analysis.metrics import of_run, training_rounds
from analysis.scenario_keys import scenario_of

TRAIL_S = 900.0


@dataclass(frozen=True)
class TownDay:
    """What a run says of its town.

    Attributes:
        layout: sites and shape of the cells, see `layout_of`. areas, streets: see `areas_of`, `streets_of`.
        times_s: [times] at which places were recorded. places_m: [times, devices, 2], nan: absent.
        serving: [times, devices] the cell, nan: none.
        federations: cells with a server, that whose day it is first.
        classes: class -> [devices] who is of it.
        accuracy: start_s and accuracy of the cell's training rounds.
        sessions: start_s of each of the cell's sessions, and words on who was there.
        begin_hour: hour of the day at time 0.
    """

    layout: dict[str, Any]
    areas: list[dict[str, Any]]
    streets: list[list[list[float]]]
    times_s: np.ndarray
    places_m: np.ndarray
    serving: np.ndarray
    federations: list[int]
    classes: dict[str, np.ndarray]
    accuracy: pd.DataFrame
    sessions: list[tuple[float, str]]
    begin_hour: float

    def at(self, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return [devices, 2] where people are, on straight lines between two records, and [devices] their cells."""
        after = int(np.searchsorted(self.times_s, time_s).clip(1, len(self.times_s) - 1))
        before_s, after_s = self.times_s[after - 1], self.times_s[after]
        share = float(np.clip((time_s - before_s) / (after_s - before_s), 0, 1))
        here_m, there_m = self.places_m[after - 1], self.places_m[after]
        jumped = np.hypot(*(there_m - here_m).T) > 0.5 * self.layout["radius_m"]  # came in on the other side
        between_m = (1 - share) * here_m + share * there_m
        return np.where(jumped[:, None], there_m, between_m), self.serving[after - (share < 0.5)]

    def trails(self, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return [pieces, 2 ends, 2] the last ways of those on the way, and [pieces] the cell on each."""
        some = np.flatnonzero((self.times_s > time_s - TRAIL_S) & (self.times_s <= time_s))
        if len(some) < 2:
            return np.empty((0, 2, 2)), np.empty(0)
        ways_m = self.places_m[some]
        pieces = np.stack([ways_m[:-1], ways_m[1:]], axis=2)  # [times, devices, 2 ends, 2]
        length_m = np.hypot(*(ways_m[1:] - ways_m[:-1]).transpose(2, 0, 1))
        kept = (length_m > 1.0) & (length_m < 0.5 * self.layout["radius_m"])
        return pieces[kept], self.serving[some][1:][kept]


def town_day(runs: Runs, cell: int, begin_hour: float) -> TownDay:
    """Read what is drawn of a run."""
    if len(runs.info) > 1:
        raise ValueError(f"{runs.path} holds {len(runs.info)} runs: give the folder of one")
    run = next(runs.info.itertuples())
    if not 0 <= begin_hour < 24:
        raise ValueError(f"begin_hour is {begin_hour}: an hour of the day, from 0 to below 24")
    positions = of_run(runs.positions, run)
    with scenario_of(str(run.path)) as scenario:
        layout, notes = layout_of(scenario), list[str]()
        areas, streets = areas_of(scenario, notes), streets_of(scenario, layout["radius_m"], notes)
    rounds = training_rounds(of_run(runs.rounds, run))
    federations = sorted(rounds["cell"].unique().tolist())
    mine = rounds[rounds["cell"] == cell].dropna(subset=["accuracy"]).sort_values("start_s")
    if mine.empty:
        raise ValueError(
            f"no accuracy of cell {cell}; cells with a federation: {', '.join(map(str, federations))}"
        )
    ledger = of_run(runs.ledger, run)
    ids = np.sort(ledger["device"].to_numpy(int))
    times_s = np.sort(positions["time_s"].unique())
    if len(times_s) < 2:
        raise ValueError("positions of one time only: run it with a smaller record.positions_s")
    row, column = np.searchsorted(times_s, positions["time_s"]), np.searchsorted(ids, positions["device"])
    places_m = np.full((len(times_s), len(ids), 2), np.nan)
    places_m[row, column] = positions[["x_m", "y_m"]].to_numpy(float)
    serving = np.full((len(times_s), len(ids)), np.nan)
    serving[row, column] = positions["cell"].to_numpy(float)
    serving[serving < 0] = np.nan
    of = (
        ledger.set_index("device")["class"].reindex(ids).to_numpy(str)
        if "class" in ledger
        else np.full(len(ids), "devices")
    )
    classes = {str(name): of == name for name in pd.unique(of)}
    sessions = of_run(runs.sessions, run)
    sessions = sessions[sessions["cell"] == cell].sort_values("start_s")
    return TownDay(
        layout=layout,
        areas=areas,
        streets=streets,
        times_s=times_s,
        places_m=places_m,
        serving=serving,
        federations=[cell, *(other for other in federations if other != cell)],
        classes=classes,
        accuracy=mine[["start_s", "accuracy"]],
        sessions=[
            (float(start_s), _most(str(devices), ids, of))
            for start_s, devices in zip(sessions["start_s"], sessions["devices"], strict=True)
        ],
        begin_hour=begin_hour,
    )


def _most(devices: str, ids: np.ndarray, of: np.ndarray) -> str:
    """Say of whom a session has most: `45 workers`."""
    some = np.array([int(device) for device in devices.split() if device.isdigit()], int)
    if not len(some):
        return "nobody"
    names, counts = np.unique(of[np.searchsorted(ids, some)], return_counts=True)
    return f"{counts.max()} {names[counts.argmax()]}"
