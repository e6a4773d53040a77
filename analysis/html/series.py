"""Compute the report's charts of accuracy, length of rounds, energy, and devices present, as plain numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from edgefl.analysis.figures.energy import COLOURS
from edgefl.analysis.measures.metrics import of_run, training_rounds
from edgefl.analysis.measures.service import Service
from edgefl.analysis.page.score_words import said
from edgefl.analysis.runs.load import Runs

MOST_POINTS = 2000  # number of points of one line
MOST_CELLS = 8  # if there are more cells, their mean or sum is shown
DIGITS = 6
OVER_CELLS = "The value at a round's number is the mean over the cells that have had so many rounds."
WEIGHTED = "A mean over cells is that of their latest models, weighted by the devices that each cell serves."
# column -> words, and the colour of the same share in the bars of energy
ACTIVITIES = {
    "energy_rx_j": ("receive", COLOURS["receive_j"]),
    "energy_compute_j": ("compute", COLOURS["compute_j"]),
    "energy_tx_j": ("transmit", COLOURS["amplifier_j"]),
    "energy_tail_j": ("tails of transfers", COLOURS["tail_j"]),
}


def label_of(run: Any, runs: Runs) -> str:
    """Return a run's name in charts, distinct from the names of all other runs in the folder."""
    if len(runs.info) == 1:
        return str(run.name)
    seeds = runs.info["seed"].nunique() > 1
    return f"{run.variant}, seed {run.seed}" if seeds else str(run.variant)


def charts(runs: Runs) -> list[dict[str, Any]]:
    """Make the charts of all runs of a folder, each with one or more views (choices of the x axis)."""
    mine = [(label_of(run, runs), run, of_run(runs.rounds, run)) for run in runs.info.itertuples()]
    charts = []
    if runs.rounds["accuracy"].notna().any():
        charts.append(_accuracy(runs, mine))
    about = "Time from a round's start until its new model is ready."
    charts.append(_chart("latency", "Round time", about, "seconds", _by_round(mine, "latency_s")))
    charts.append(_energy(mine))
    about = "Devices without a link are not counted. Completed: the update arrived."
    charts.append(_chart("participants", "Participants per round", about, "devices", _participants(mine)))
    return charts


def _chart(
    name: str, title: str, about: str, y: str, views: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    return {"id": name, "title": title, "about": about, "y": y, **more, "views": views}


def _by_time(label: str, series: list[dict[str, Any]], about: str = "") -> dict[str, Any]:
    return {"label": label, "about": about, "x": "simulated time, s", "series": series}


def population(frames: Mapping[str, np.ndarray], served: Sequence[int]) -> dict[str, Any]:
    """Count the devices that cells serve at each recorded time; empty without positions at several times.

    If there are many cells, only the cells with a federation are counted; if there are many of these, too, the result
    has only the smallest, mean and largest number of devices in a cell.
    """
    if "cell" not in frames or len(frames["time_s"]) < 2:
        return {"title": "", "time": [], "series": []}
    cells = frames["cell"]
    known = np.unique(cells[~np.isnan(cells)]).astype(int)
    # devices beyond the edge, and with several cells those that are switched off, are not present
    here = (~np.isnan(cells)).sum(axis=0)
    step = max(1, len(here) // MOST_POINTS)
    lines: dict[str, tuple[int | None, np.ndarray]] = {"all present": (None, here)}
    title = "Devices present"
    shown = known if len(known) <= MOST_CELLS else np.array(served)
    if len(known) > 1 and len(shown) <= MOST_CELLS:
        title = (
            "Devices in each cell" if len(shown) == len(known) else "Devices in each cell with a federation"
        )
        lines |= {f"cell {cell}": (int(cell), (cells == cell).sum(axis=0)) for cell in shown}
    elif len(known) > 1:
        title = "Devices per cell: minimum, mean, maximum"
        counts = np.stack([(cells == cell).sum(axis=0) for cell in shown])
        lines |= {
            "minimum": (6, counts.min(axis=0)),
            "mean": (0, counts.mean(axis=0)),
            "maximum": (1, counts.max(axis=0)),
        }
    series = [
        {"label": label, "look": look, "y": np.round(y[::step], 2).tolist()}
        for label, (look, y) in lines.items()
    ]
    return {"title": title, "time": _short(frames["time_s"][::step]), "series": series}


def timeline(runs: Runs, run: Any) -> dict[str, Any]:
    """Return one run's accuracy and joules over simulated time, for the replay."""
    rounds = of_run(runs.rounds, run).sort_values("end_s")
    joules = _thinned(rounds["end_s"], rounds["energy_j"].cumsum())
    sessions = of_run(runs.sessions, run).sort_values("start_s")
    return {
        "accuracy": _mean_of_cells(rounds, Service.of(runs, run)),
        "joules": joules,
        "sessions": [
            [_digits(row.start_s), int(row.session), int(row.cell)] for row in sessions.itertuples()
        ],
    }


def _thinned(x: pd.Series, y: pd.Series) -> dict[str, Any]:
    """Keep every n-th point of a line, and always the last point; `every` is n."""
    every = max(1, -(-len(x) // MOST_POINTS))
    rows = sorted({*range(0, len(x), every), len(x) - 1} - {-1})
    return {"x": _short(x.to_numpy(float)[rows]), "y": _short(y.to_numpy(float)[rows]), "every": every}


def _accuracy(runs: Runs, mine: Sequence[tuple[str, Any, pd.DataFrame]]) -> dict[str, Any]:
    by_time, means = [], ""
    for label, run, rounds in mine:
        cells = sorted(rounds["cell"].unique())
        if len(mine) == 1 and 1 < len(cells) <= MOST_CELLS:
            for cell in cells:
                own = rounds[(rounds["cell"] == cell) & rounds["accuracy"].notna()]
                by_time.append(
                    {"label": f"cell {cell}", "look": int(cell), **_thinned(own["end_s"], own["accuracy"])}
                )
        else:
            means = WEIGHTED if len(cells) > 1 else means
            mean = _mean_of_cells(rounds.sort_values("end_s"), Service.of(runs, run))
            by_time.append({"label": label, **mean})
    about = "Accuracy of each round's new model."
    views, score = [_by_time("by simulated time", by_time, means), *_by_round(mine, "accuracy")], runs.score
    return _chart("accuracy", said("Test accuracy", score), about, said("accuracy", score), views, share=True)


def _mean_of_cells(rounds: pd.DataFrame, service: Service) -> dict[str, Any]:
    """Average the cells' latest accuracies, weighted by devices, at ends of rounds and when cells' devices change."""
    tested_s = np.unique(rounds.loc[rounds["accuracy"].notna(), "end_s"].to_numpy(float))
    times_s = tested_s
    if rounds["cell"].nunique() > 1:
        moved_s = service.changes_s
        times_s = np.union1d(tested_s, moved_s[moved_s > tested_s.min(initial=np.inf)])
    return _thinned(pd.Series(times_s), pd.Series(service.accuracy(rounds, times_s)))


def _by_round(mine: Sequence[tuple[str, Any, pd.DataFrame]], column: str) -> list[dict[str, Any]]:
    """Make a chart's view over round numbers, counted across all sessions of a cell; values are means over cells."""
    series, several, trained = [], False, False
    for label, _, rounds in mine:
        several |= rounds["cell"].nunique() > 1
        trained |= bool(rounds["accuracy"].notna().any())
        known = training_rounds(rounds).sort_values(["cell", "start_s"])
        count = known.groupby("cell").cumcount() + 1
        mean = known.groupby(count)[column].mean().dropna()
        series.append({"label": label, **_thinned(pd.Series(mean.index), mean)})
    about = OVER_CELLS if several else ""
    return [
        {
            "label": "by round",
            "about": about,
            "x": f"{'training ' * trained}round, counted across sessions",
            "series": series,
        }
    ]


def _energy(mine: Sequence[tuple[str, Any, pd.DataFrame]]) -> dict[str, Any]:
    spent = []
    for label, _, rounds in mine:
        rounds = rounds.sort_values("end_s")
        if len(mine) == 1:
            spent += [
                {"label": word, "look": look, **_thinned(rounds["end_s"], rounds[column].cumsum())}
                for column, (word, look) in ACTIVITIES.items()
            ]
        else:
            spent.append({"label": label, **_thinned(rounds["end_s"], rounds["energy_j"].cumsum())})
    about = "Energy of all devices together, cumulative or per round, without idle energy."
    views = [_by_time("by simulated time, cumulative", spent), *_by_round(mine, "energy_j")]
    return _chart("energy", "Energy of the devices", about, "joules", views)


def _participants(mine: Sequence[tuple[str, Any, pd.DataFrame]]) -> list[dict[str, Any]]:
    views = _by_round(mine, "participants")
    if len(mine) == 1:
        views[0]["series"][0]["label"] = "participants"
        views[0]["series"] += _by_round([("completed", *mine[0][1:])], "completed")[0]["series"]
    return views


def _short(values: np.ndarray) -> list[float | None]:
    return [_digits(value) for value in values]


def _digits(value: float) -> float | None:
    """Round values to six significant digits, leaving whole numbers unchanged; NaN becomes None for JSON."""
    if not np.isfinite(value):
        return None
    text = float(f"{value:.{DIGITS}g}")
    return int(text) if text.is_integer() else text
