"""Choose display units by the end of a key's name, such as MHz for bandwidth_hz."""

from collections.abc import Iterable, Sequence

from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, unit_for

UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "hz": (("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)),
    "s": TIME_UNITS,
    "j": ENERGY_UNITS,
    "w": (("mW", 1e-3), ("W", 1.0), ("kW", 1e3)),
    "m": (("m", 1.0), ("km", 1e3)),
    "bits": (("bit", 1.0), ("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)),
    **{name: ((shown, 1.0),) for name, shown in (("db", "dB"), ("dbm", "dBm"), ("mps", "m/s"))},
}

MOST_DIGITS = 3  # more significant digits than this need a smaller unit


def axis_of(key: str, values: Iterable[float]) -> tuple[str, float]:
    """Return the axis label of a dotted key, with its unit, and the size of that unit."""
    name, _, ending = key.rpartition(".")[2].rpartition("_")
    if not name or ending not in UNITS:
        return key.rpartition(".")[2].replace("_", " "), 1.0
    unit, size = unit_for(values, UNITS[ending])
    return f"{name.replace('_', ' ')} ({unit})", size


def bare(key: str) -> str:
    """Return the last part of a dotted key without its unit, which is printed with the values."""
    last = key.rpartition(".")[2]
    name, _, ending = last.rpartition("_")
    return name if name and ending in UNITS else last


def written(key: str, values: Sequence[float]) -> list[str]:
    """Format the values of a dotted key in one unit that needs few digits: `5 MHz`, `20 MHz`."""
    name, _, ending = key.rpartition(".")[2].rpartition("_")
    if not name or ending not in UNITS:
        return list(map(str, values))
    fitting = [unit for unit in UNITS[ending] if max(map(abs, values), default=0.0) >= unit[1]]
    for unit, size in reversed(fitting or [UNITS[ending][0]]):
        texts = [f"{value / size:.12g}" for value in values]
        # a number written with an exponent counts as having too many digits
        digits = [len(text.replace(".", "").replace("-", "").strip("0")) for text in texts]
        if max(digits) <= MOST_DIGITS and not any("e" in text for text in texts):
            return [f"{text} {unit}" for text in texts]
    unit = next(name for name, size in UNITS[ending] if size == 1.0)
    return [f"{value:.12g} {unit}" for value in values]
