"""Suggest the units of a trace in which its devices would move faster or slower."""

LENGTHS = {"millimetres": 1e-3, "metres": 1.0, "kilometres": 1e3}  # metres per unit
TIMES = {"microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0, "minutes": 60.0, "hours": 3600.0}


def other(scale: float, time_scale: float, *, faster: bool, lengths_first: bool = True) -> str:
    """Return the trace's keys with the next unit of length or time, `scale: 1000 if ..., or time_scale: ...`.

    Args:
        scale, time_scale: m and s per unit of the trace, as set now.
        faster: whether devices should be faster, so that the unit of length is longer, or that of time is shorter.
        lengths_first: whether the remedy begins with the unit of length.
    """
    told = [
        f"{key}: {unit[0]:g} if {what} in {unit[1]}"
        for key, what, unit in (
            ("scale", "x and y are", _next(LENGTHS, scale, longer=faster)),
            ("time_scale", "t is", _next(TIMES, time_scale, longer=not faster)),
        )
        if unit
    ]
    return ", or ".join(told if lengths_first else told[::-1]) or "another scale or time_scale"


def _next(units: dict[str, float], now: float, *, longer: bool) -> tuple[float, str] | None:
    """Return the size and name of the unit that is next above or below the present one."""
    sized = [(size, name) for name, size in units.items()]
    if longer:
        return min((unit for unit in sized if unit[0] > now), default=None)
    return max((unit for unit in sized if unit[0] < now), default=None)
