"""The labels of a grid's points, which name folders too: values as people write them, `5 MHz`."""

from collections.abc import Sequence
from typing import Any

# twin of UNITS and `written` in analysis/units.py: the wall between the two packages forces it
UNITS: dict[str, tuple[tuple[str, float], ...]] = {
    "hz": (("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)),
    "s": (("ms", 1e-3), ("s", 1.0), ("h", 3600.0)),
    "j": (("mJ", 1e-3), ("J", 1.0), ("kJ", 1e3), ("MJ", 1e6)),
    "w": (("mW", 1e-3), ("W", 1.0), ("kW", 1e3)),
    "m": (("m", 1.0), ("km", 1e3)),
    "bits": (("bit", 1.0), ("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)),
    "db": (("dB", 1.0),),
    "dbm": (("dBm", 1.0),),
}
MOST_DIGITS = 3  # of a value that people would write in this unit


def bare(key: str) -> str:
    """Return the last part of a dotted key without its unit, which then stands beside the values."""
    last = key.rpartition(".")[2]
    name, _, ending = last.rpartition("_")
    return name if name and ending in UNITS else last


def written(key: str, values: Sequence[Any]) -> list[str]:
    """Write the values of a dotted key, in one unit that needs few digits; of a component name and parameters."""
    ending = key.rpartition(".")[2].rpartition("_")[2]
    if not all(map(is_number, values)) or bare(key) == key.rpartition(".")[2]:
        return list(map(_text, values))
    fitting = [unit for unit in UNITS[ending] if max(map(abs, values)) >= unit[1]]
    for unit, size in reversed(fitting or [UNITS[ending][0]]):
        texts = [f"{value / size:.12g}" for value in values]
        if max(map(_digits, texts)) <= MOST_DIGITS:
            return [f"{text} {unit}" for text in texts]
    unit = next(name for name, size in UNITS[ending] if size == 1.0)
    return [f"{value:.12g} {unit}" for value in values]


def is_number(value: Any) -> bool:
    """Tell whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _digits(text: str) -> int:
    """Count the digits of a number that carry it; of one with an exponent too many."""
    return MOST_DIGITS + 1 if "e" in text else len(text.replace(".", "").replace("-", "").strip("0"))


def _text(value: Any) -> str:
    """Return the label of a value: of a component its name and parameters."""
    if isinstance(value, dict):
        return " ".join(_text(one) if key == "name" else f"{key} {_text(one)}" for key, one in value.items())
    return str(value)
