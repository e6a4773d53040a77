"""Suggest the units of a trace in which its devices would move faster or slower."""

from collections.abc import Collection

import numpy as np

from edgefl.mobility._traces._speeds import too_fast

LENGTHS = {"millimetres": 1e-3, "centimetres": 1e-2, "metres": 1.0, "kilometres": 1e3}  # metres per unit
WALK_M_S = 0.1  # if all moving devices are slower than this, the trace is probably in other units
TOWN_KM = 30.0  # if all coordinates lie within this range, they are probably kilometres in a town
TIMES = {"microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}


def doubt(
    steps_m_s: np.ndarray, extent_m: float, scale: float, time_scale: float, known: Collection[str]
) -> str:
    """Return a note on impossible speeds and on the units that may be their cause; '' without either.

    Args:
        steps_m_s: speed of each step between two samples.
        extent_m: width of the area of all positions.
        scale, time_scale, known: as in `remedy`.
    """
    fastest_m_s = float(steps_m_s.max(initial=0.0))
    slow = 0.0 < fastest_m_s < WALK_M_S
    if not (slow or too_fast(steps_m_s)) or (slow and len(known) == 2):
        return ""
    found = f"between two samples a device moves at {fastest_m_s:,.0f} m/s"
    if len(known) == 2:
        return f"{found}; correct positions or times of the trace"
    # in a small area, coordinates are probably in kilometres
    town = not slow or extent_m < TOWN_KM
    change = remedy("devices.mobility", scale, time_scale, faster=slow, lengths_first=town, known=known)
    units = ", and ".join(
        [
            *["x and y must be in metres"] * ("scale" not in known),
            *["t must be in seconds" if known else "t in seconds"] * ("time_scale" not in known),
        ]
    )
    if not slow:
        return f"{found}; {units}: {change}"
    within_m = float(f"{extent_m:.2g}")
    return (
        f"no device is faster than {fastest_m_s:.2g} m/s; {units}: all positions lie within {within_m:g} m, so"
        f" {change}"
    )


def remedy(
    place: str,
    scale: float,
    time_scale: float,
    *,
    faster: bool,
    lengths_first: bool = True,
    known: Collection[str] = (),
) -> str:
    """Say which keys to set to the next units of length and time: `set PLACE.scale: 1000 if ..., or ...`.

    Args:
        place: the trace's key in the scenario.
        scale, time_scale: m and s per unit of the trace, as set now.
        faster: whether devices should be faster, so that the unit of length is longer, or that of time is shorter.
        lengths_first: whether the remedy begins with the unit of length.
        known: which of the two keys need no change, since degrees and dates have only one unit.
    """
    lengths = _next(LENGTHS, scale, longer=faster)[: 1 if faster else 2]  # centimetres and millimetres
    times = _next(TIMES, time_scale, longer=not faster)[:1]
    told = [
        " or ".join(
            [f"{key}: {units[0][0]:g} if {what} in {units[0][1]}"]
            + [f"{n:g} if in {u}" for n, u in units[1:]]
        )
        for key, what, units in (("scale", "x and y are", lengths), ("time_scale", "t is", times))
        if units and key not in known
    ]
    if not told:
        return f"set another {' or '.join(key for key in ('scale', 'time_scale') if key not in known)} in {place}"
    return f"set {place}.{', or '.join(told if lengths_first else told[::-1])}"


def _next(units: dict[str, float], now: float, *, longer: bool) -> list[tuple[float, str]]:
    """Return the sizes and names of the units above or below the present one, the next unit first."""
    sized = sorted(((size, name) for name, size in units.items()), reverse=not longer)
    return [unit for unit in sized if (unit[0] > now if longer else unit[0] < now)]
