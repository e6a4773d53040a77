"""Observers of rounds, which add columns about access, link failures, learning and stale updates."""

from collections.abc import Mapping
from typing import Any

from edgefl.contract import AGGREGATION, TRAINING, UPLOAD
from edgefl.engine.federation.made import Columns, Made
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.parts import NO_STALL, Outcome
from edgefl.engine.records import average_columns

# additional columns of rounds.csv and devices.csv if rounds overlap
STALENESS_MEAN, STALENESS_MAX, WORKING = "staleness_mean", "staleness_max", "working"
STALENESS, DISPATCH, BEGAN_FROM = "staleness", "dispatch", "version"


def access(made: Made) -> Columns:
    """Return the total access time before each device's transfers."""
    return Columns(of_devices={"access_s": [down.time_s + up.time_s for down, up in made.accesses]})


def stalls(simulation: Simulation, made: Made) -> Columns:
    """Return each device's time and energy without a link and its link failures; book the energy in the ledger."""
    both = [
        [span.stall if span else NO_STALL for span in (part.downlink, part.uplink)] for part in made.parts
    ]
    columns: dict[str, list[Any]] = {
        "stalled_s": [down.time_s + up.time_s for down, up in both],
        "stalled_j": [down.energy_j + up.energy_j for down, up in both],
        "link_failures": [down.failures + up.failures for down, up in both],
    }
    simulation.ledger.book_stalls(list(made.local.ids), columns["stalled_s"], columns["stalled_j"])
    return Columns(of_devices=columns)


def learning(made: Made) -> Columns:
    """Return the learner's scalars and their averages; a scalar is empty for devices that did not reach its step."""
    local, parts = made.local, made.parts
    done = {
        TRAINING: [part.has_trained for part in parts],
        AGGREGATION: made.taken,
        UPLOAD: [part.has_uploaded for part in parts],
    }
    of_devices = {
        name: [value if there else None for value, there in zip(values, done[local.after[name]], strict=True)]
        if name in local.after
        else values
        for name, values in local.scalars.items()
    }
    of_round = made.evaluation.scalars if made.evaluation else {}
    return Columns({**of_round, **average_columns(local.averaged, of_devices)}, of_devices)


def versions(made: Made) -> Columns:
    """Return the staleness of aggregated updates and the number of devices at work; no staleness without overlap."""
    jobs = made.jobs
    if not made.overlaps:
        empty = [None] * len(jobs)
        return Columns(
            {STALENESS_MEAN: None, STALENESS_MAX: None, WORKING: 0},
            dict.fromkeys((DISPATCH, BEGAN_FROM, STALENESS), empty),
        )
    taken = [one.staleness if one.taken else None for one in jobs]
    stale = [staleness for staleness in taken if staleness is not None]
    return Columns(
        {
            STALENESS_MEAN: sum(stale) / len(stale) if stale else None,
            STALENESS_MAX: max(stale, default=None),
            WORKING: made.working,
        },
        {
            DISPATCH: [one.dispatch.number for one in jobs],
            BEGAN_FROM: [one.dispatch.version for one in jobs],
            STALENESS: taken,
        },
    )


def not_taken(columns: Mapping[str, Any]) -> int:
    """Return how many updates among rows of devices.csv arrived, but were not aggregated; 0 without overlap."""
    rows = zip(columns["outcome"], columns.get(STALENESS, ()), columns.get(DISPATCH, ()), strict=False)
    return sum(
        how == Outcome.COMPLETED and staleness is None and dispatch is not None
        for how, staleness, dispatch in rows
    )
