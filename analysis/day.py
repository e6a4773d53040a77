"""A day in one cell: how its population comes and goes, and how well each variant's model serves it."""

from pathlib import Path

from edgefl.analysis.choices import OVERLAP
from edgefl.analysis.clock import of_day, own_clock
from edgefl.analysis.figures.day import day_figure
from edgefl.analysis.figures.style import variant_styles
from edgefl.analysis.load import Paths, Runs
from edgefl.analysis.markup import csv_text
from edgefl.analysis.metrics import training_rounds
from edgefl.analysis.populations import jaccard
from edgefl.analysis.report import Report
from edgefl.analysis.scope import common_seeds, reference_of, variants_of

DAY_NUMBERS = "day.csv"  # name of the PNG's text with its numbers, hour by hour


def draw_day(
    runs: Paths | Runs,
    *,
    cell: int = 0,
    overlap: float = OVERLAP,
    reference: str | None = None,
    out: str | Path | None = None,
) -> Path:
    """Draw the accuracy of each variant over the hours of the day, with sessions and population, as day.png.

    The hour at time 0 is what the scenario says (`begin_hour`, `day_s`), or midnight.

    Args:
        runs: a folder of run directories, or what `load_runs` made of it.
        overlap: from which on a session has the population of an earlier one, the Jaccard index of their devices.
        out: where to write, by default the folder of the runs.

    Raises:
        ValueError: no such cell, no accuracy, or a folder that cannot be written.
    """
    runs = Runs.of(runs)
    seeds = common_seeds(runs.info, [])
    reference = reference_of(runs.info, reference, [])
    rounds = runs.rounds[(runs.rounds["cell"] == cell) & runs.rounds["seed"].isin(seeds)]
    if rounds.empty:
        known = ", ".join(str(number) for number in sorted(runs.rounds["cell"].unique()))
        raise ValueError(f"no rounds in cell {cell}; cells with a federation: {known}")
    if not rounds["accuracy"].notna().any():
        raise ValueError("no run has an accuracy: a day is drawn of runs with training")
    some = set(rounds["variant"])
    names = [name for name in variants_of(runs.info, reference) if name in some]
    shown = reference or names[0]
    mine = runs.sessions[(runs.sessions["variant"] == shown) & (runs.sessions["cell"] == cell)]
    mine = mine[mine["seed"] == seeds[0]].sort_values("session", ignore_index=True)
    members = [frozenset(str(devices).split()) for devices in mine["devices"]]
    pilots = set(rounds.loc[rounds["phase"] == "pilot", "session"])
    clock = own_clock(runs.info.loc[runs.info["variant"] == shown, "path"].iloc[0])
    mine = mine.assign(
        count=[len(some) for some in members],
        pilot=mine["session"].isin(pilots),
        note=_notes(members, [of_day(clock.hours(start_s)) for start_s in mine["start_s"]], overlap),
    )
    day = training_rounds(rounds).dropna(subset=["accuracy"])
    figure = day_figure(
        day,
        mine,
        variant_styles(names, reference),
        clock=clock,
        title=f"The devices in cell {cell}, and the accuracy of its model",
    )
    hours = clock.hours(day["start_s"]).astype(int).rename("hour")
    numbers = day.groupby(["variant", hours])[["accuracy", "participants", "energy_j"]].mean().round(4)
    drawn = Report(
        runs.folder(out),
        score=runs.score,
        figures={"day": figure},
        pdf=False,
        inside={DAY_NUMBERS: csv_text(numbers.reset_index())},
    )
    return drawn.write().out / "day.png"


def _notes(members: list[frozenset[str]], begun: list[str], overlap: float) -> list[str]:
    """Say of each session whose population it has: that of an earlier one, the pilot among them, or a new one."""
    notes = []
    for number, mine in enumerate(members):
        alike = [jaccard(mine, others) for others in members[:number]]
        best = max(range(number), key=lambda other: (alike[other], other), default=None)
        seen = best is not None and alike[best] >= overlap
        notes.append(f"as at {begun[best]}" if seen and best is not None else "new population")
    return notes
