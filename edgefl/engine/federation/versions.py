"""Which versions of the model updates began from: an observer of rounds where they overlap."""

from edgefl.engine.federation.made import Columns, Made

# further columns where rounds overlap, of rounds.csv and of devices.csv
STALENESS_MEAN, STALENESS_MAX, WORKING = "staleness_mean", "staleness_max", "working"
STALENESS, DISPATCH, BEGAN_FROM = "staleness", "dispatch", "version"


def versions(made: Made) -> Columns:
    """Return the staleness of what was taken, and how many work on; empty for a round that overlaps with none."""
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
