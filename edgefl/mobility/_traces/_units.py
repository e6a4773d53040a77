"""Suggest the units of a trace in which its devices would move faster or slower."""

LENGTHS = {"millimetres": 1e-3, "centimetres": 1e-2, "metres": 1.0, "kilometres": 1e3}  # metres per unit
TIMES = {"microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}


def other(scale: float, time_scale: float, *, faster: bool, lengths_first: bool = True) -> str:
    """Return the trace's keys with the next units of length and time, `scale: 1000 if ..., or time_scale: ...`.

    Args:
        scale, time_scale: m and s per unit of the trace, as set now.
        faster: whether devices should be faster, so that the unit of length is longer, or that of time is shorter.
        lengths_first: whether the remedy begins with the unit of length.
    """
    lengths = _next(LENGTHS, scale, longer=faster)[: 1 if faster else 2]  # centimetres and millimetres
    times = _next(TIMES, time_scale, longer=not faster)[:1]
    told = [
        " or ".join(
            [f"{key}: {units[0][0]:g} if {what} in {units[0][1]}"]
            + [f"{n:g} if in {u}" for n, u in units[1:]]
        )
        for key, what, units in (("scale", "x and y are", lengths), ("time_scale", "t is", times))
        if units
    ]
    return ", or ".join(told if lengths_first else told[::-1]) or "another scale or time_scale"


def _next(units: dict[str, float], now: float, *, longer: bool) -> list[tuple[float, str]]:
    """Return the sizes and names of the units above or below the present one, the next unit first."""
    sized = sorted(((size, name) for name, size in units.items()), reverse=not longer)
    return [unit for unit in sized if (unit[0] > now if longer else unit[0] < now)]
