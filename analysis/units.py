"""The unit in which a key's values are shown, by the end of its name: bandwidth_hz in MHz."""

from collections.abc import Iterable

from analysis.formatting import ENERGY_UNITS, TIME_UNITS, unit_for

UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "hz": (("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)),
    "s": TIME_UNITS,
    "j": ENERGY_UNITS,
    "w": (("mW", 1e-3), ("W", 1.0), ("kW", 1e3)),
    "m": (("m", 1.0), ("km", 1e3)),
    "bits": (("bit", 1.0), ("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)),
    **{name: ((shown, 1.0),) for name, shown in (("db", "dB"), ("dbm", "dBm"), ("mps", "m/s"))},
}


def axis_of(key: str, values: Iterable[float]) -> tuple[str, float]:
    """Return what an axis of a dotted key is called, with its unit, and the size of that unit."""
    name, _, ending = key.rpartition(".")[2].rpartition("_")
    if not name or ending not in UNITS:
        return key.rpartition(".")[2].replace("_", " "), 1.0
    unit, size = unit_for(values, UNITS[ending])
    return f"{name.replace('_', ' ')} ({unit})", size
