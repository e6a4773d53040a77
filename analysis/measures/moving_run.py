"""Read a moving network: its devices' positions and serving cells, and a cell's accuracy over time."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from edgefl.analysis.measures.metrics import of_run, training_rounds
from edgefl.analysis.page.formatting import count_of
from edgefl.analysis.runs.clock import Clock, own_clock
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.places import Ground, map_of
from edgefl.analysis.runs.vocabulary import HANDOVER

ANY = "devices"  # the class of devices without classes
JUST_NOW = 0.5  # share of the trail in which handovers are marked
TRAIL_S, TRAIL_SHARE = 900.0, 0.08  # longest trail; its share of a shorter run


@dataclass(frozen=True)
class MovingRun:
    """The moving network of a run.

    Attributes:
        ground: cells, areas and streets of the map.
        times_s: [times] of recorded positions. places_m: [times, devices, 2], nan while a device is absent.
        serving: [times, devices] the serving cell, nan without a serving cell.
        served: cells with a server, beginning with the cell whose curve is drawn.
        classes: class -> [devices] whether each device belongs to the class.
        handovers: time_s of each handover, and the device's index in places_m.
        curve: end_s of the cell's training rounds, and the value that holds from then on: accuracy in percent or,
            without training, joules spent so far; curve_name is the value's name.
        sessions: start_s of each of the cell's sessions, and a description of the session's devices.
        clock: the run's clock, which shows the hour of the day or the time since the start.
    """

    ground: Ground
    times_s: np.ndarray
    places_m: np.ndarray
    serving: np.ndarray
    served: list[int]
    classes: dict[str, np.ndarray]
    handovers: tuple[np.ndarray, np.ndarray]
    curve: pd.DataFrame
    curve_name: str
    sessions: list[tuple[float, str]]
    clock: Clock

    def at(self, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return device positions [devices, 2], interpolated between two records, and serving cells [devices]."""
        after = int(np.searchsorted(self.times_s, time_s).clip(1, len(self.times_s) - 1))
        before_s, after_s = self.times_s[after - 1], self.times_s[after]
        share = float(np.clip((time_s - before_s) / (after_s - before_s), 0, 1))
        here_m, there_m = self.places_m[after - 1], self.places_m[after]
        # a device that wraps around to the other side is not interpolated
        jumped = np.hypot(*(there_m - here_m).T) > 0.5 * self.ground.layout["radius_m"]
        between_m = (1 - share) * here_m + share * there_m
        return np.where(jumped[:, None], there_m, between_m), self.serving[after - (share < 0.5)]

    @property
    def trail_s(self) -> float:
        """The simulated time that a drawn trail covers, s."""
        return min(TRAIL_S, TRAIL_SHARE * float(self.times_s[-1]))

    def handed_over(self, time_s: float) -> np.ndarray:
        """Return places [handovers, 2] of the handovers near the end of the time that `trails` shows."""
        times_s, rows = self.handovers
        some = (times_s > time_s - JUST_NOW * self.trail_s) & (times_s <= time_s)
        columns = np.searchsorted(self.times_s, times_s[some]).clip(max=len(self.times_s) - 1)
        return self.places_m[columns, rows[some]]

    def trails(self, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the recent trails [pieces, 2 ends, 2] of moving devices, and each piece's serving cell [pieces]."""
        some = np.flatnonzero((self.times_s > time_s - self.trail_s) & (self.times_s <= time_s))
        if len(some) < 2:
            return np.empty((0, 2, 2)), np.empty(0)
        ways_m = self.places_m[some]
        pieces = np.stack([ways_m[:-1], ways_m[1:]], axis=2)  # [times, devices, 2 ends, 2]
        length_m = np.hypot(*(ways_m[1:] - ways_m[:-1]).transpose(2, 0, 1))
        kept = (length_m > 1.0) & (length_m < 0.5 * self.ground.layout["radius_m"])
        return pieces[kept], self.serving[some][1:][kept]


def moving_run(runs: Runs, cell: int) -> MovingRun:
    """Read the moving network of a run."""
    if len(runs.info) > 1:
        raise ValueError(f"{runs.path} holds {len(runs.info)} runs: give the folder of one run")
    run = next(runs.info.itertuples())
    positions = of_run(runs.positions, run)
    rounds = training_rounds(of_run(runs.rounds, run))
    served = sorted(rounds["cell"].unique().tolist())
    mine = rounds[rounds["cell"] == cell].sort_values("end_s")
    if mine.empty:
        raise ValueError(f"no rounds of cell {cell}; cells with rounds: {', '.join(map(str, served))}")
    curve, name = mine.assign(value=100 * mine["accuracy"]), f"Test accuracy of cell {cell}'s model (%)"
    if mine["accuracy"].isna().all():
        curve, name = mine.assign(value=mine["energy_j"].cumsum()), f"Joules spent in cell {cell}'s rounds"
    ledger = of_run(runs.ledger, run)
    ids = np.sort(ledger["device"].to_numpy(int))
    times_s = np.sort(positions["time_s"].unique())
    if len(times_s) < 2:
        raise ValueError("the run recorded positions only once: run it with a smaller record.positions_s")
    x_m, y_m, serving = (track(positions, name, ids, times_s).T for name in ("x_m", "y_m", "cell"))
    serving[serving < 0] = np.nan
    of = np.full(len(ids), ANY)
    if "class" in ledger:
        of = ledger.set_index("device")["class"].reindex(ids).to_numpy(str)
    classes = {str(name): of == name for name in pd.unique(of)}
    events = of_run(runs.events, run)
    moved = events[events["event"] == HANDOVER]
    sessions = of_run(runs.sessions, run)
    sessions = sessions[sessions["cell"] == cell].sort_values("start_s")
    return MovingRun(
        ground=map_of(str(run.path), []),
        times_s=times_s,
        places_m=np.stack([x_m, y_m], axis=-1),
        serving=serving,
        served=[cell, *(other for other in served if other != cell)],
        classes=classes,
        handovers=(moved["time_s"].to_numpy(float), np.searchsorted(ids, moved["device"].to_numpy(int))),
        curve=curve[["end_s", "value"]].dropna(),
        curve_name=name,
        sessions=[
            (float(start_s), _most(str(devices), ids, of))
            for start_s, devices in zip(sessions["start_s"], sessions["devices"], strict=True)
        ],
        clock=own_clock(str(run.path)),
    )


def track(positions: pd.DataFrame, name: str, ids: np.ndarray, times_s: np.ndarray) -> np.ndarray:
    """Return a column of the table positions as [devices, times]; NaN where a device has no row."""
    table = np.full((len(ids), len(times_s)), np.nan)
    row, column = np.searchsorted(ids, positions["device"]), np.searchsorted(times_s, positions["time_s"])
    table[row, column] = positions[name].to_numpy(float)
    return table


def _most(devices: str, ids: np.ndarray, of: np.ndarray) -> str:
    """Name the largest device class of a session, with its count: `45 workers`."""
    some = np.array([int(device) for device in devices.split() if device.isdigit()], int)
    if not len(some):
        return "no devices"
    names, counts = np.unique(of[np.searchsorted(ids, some)], return_counts=True)
    name = names[counts.argmax()]
    return count_of(int(counts.max()), "device") if name == ANY else f"{counts.max()} {name}"
