"""Record the model versions from which the updates of overlapping rounds started."""

from collections.abc import Mapping
from typing import Any

from edgefl.engine.federation.made import Columns, Made
from edgefl.engine.parts import Outcome

# additional columns of rounds.csv and devices.csv if rounds overlap
STALENESS_MEAN, STALENESS_MAX, WORKING = "staleness_mean", "staleness_max", "working"
STALENESS, DISPATCH, BEGAN_FROM = "staleness", "dispatch", "version"


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
