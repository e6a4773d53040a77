"""Find the gaps of a trace: pairs of successive samples of a device between which the device is absent."""

from collections.abc import Sequence

import numpy as np

from edgefl.mobility._traces._samples import LISTED

# twice the 30 s in which satellites repeat the ephemeris, needed after a loss of signal (IS-GPS-200, 20.3.3)
RECEPTION_S = 60.0


# groups of devices, each with the ascending times of the time steps at which files list all present devices
Listings = Sequence[tuple[Sequence[int], np.ndarray]]


def presence(
    times_s: np.ndarray,
    counts: np.ndarray,
    lost: np.ndarray,
    listings: Listings,
    max_gap_s: float | None = None,
) -> np.ndarray:
    """Return whether a device is present between a sample and the next sample, bool [samples - 1].

    Args:
        times_s: [samples] times, device after device.
        counts: [devices] how many samples each device has.
        lost: [devices] how many usual intervals a gap must exceed to count as an absence. In files that list all
            devices at each time step, the usual interval is that of the time steps, and a device is also absent if a
            time step does not list it. In other files, the usual interval is each device's median, and the limit is
            at least RECEPTION_S.
        listings: the time steps of the files that list each device; files may have different time steps.
        max_gap_s: the longest time between two samples of a present device, or None for the rules of `lost`.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    same, span_s = owner[1:] == owner[:-1], np.diff(times_s)
    if max_gap_s is not None:
        return np.asarray(same & (span_s <= max_gap_s))
    present = np.asarray(same & (span_s <= _limits_s(times_s, counts, lost, listings)[owner[1:]]))
    ends = np.cumsum(counts)
    for numbers, steps_s in listings:
        for number in numbers:
            first, last = ends[number] - counts[number], ends[number] - 1
            present[first:last] &= np.diff(np.searchsorted(steps_s, times_s[first : last + 1])) == 1
    return present


def _limits_s(times_s: np.ndarray, counts: np.ndarray, lost: np.ndarray, listings: Listings) -> np.ndarray:
    """Return the longest usual time [devices] between two samples."""
    limits_s = np.full(len(counts), np.inf)
    for numbers, steps_s in listings:
        if len(steps_s) > 1:
            limits_s[numbers] = LISTED * np.median(np.diff(steps_s))
    ends = np.cumsum(counts)
    for number in np.flatnonzero((lost != LISTED) & np.isfinite(lost) & (counts > 1)).tolist():
        span_s = np.diff(times_s[ends[number] - counts[number] : ends[number]])
        limits_s[number] = max(lost[number] * np.median(span_s), RECEPTION_S)
    return limits_s
