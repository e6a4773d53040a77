"""The remedy for a number in the wrong unit: megahertz for hertz, percent for a share."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# of a key's unit, by the end of its name -> what people write instead, as that many of it
PREFIXES = {
    "hz": {"GHz": 1e9, "MHz": 1e6, "kHz": 1e3},
    "m": {"km": 1e3},
    "s": {"h": 3600.0, "min": 60.0, "ms": 1e-3},
    "w": {"kW": 1e3, "mW": 1e-3},
    "bits": {"Gbit": 1e9, "Mbit": 1e6, "kbit": 1e3},
}
_WITH_UNIT = re.compile(r"\s*([-+]?\d[\d_.]*(?:[eE][-+]?\d+)?)\s*([A-Za-z/%]+)\s*")


def unit_slip(place: Sequence[str], error: Mapping[str, Any]) -> str:
    """Return what to write instead, for a value that looks like a slip of the unit; empty: it does not.

    Args:
        place: the key. error: pydantic's.
    """
    given, context = error["input"], error.get("ctx", {})
    unit = place[-1].rpartition("_")[2] if place else ""
    if isinstance(given, str):
        return with_unit(place[-1], given) if place else ""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return ""
    if error["type"] == "less_than_equal" and context.get("le") == 1 and 1 < given <= 100:
        return f": it is a share, {given:g} % is {given / 100:g}"
    if error["type"] == "greater_than_equal" and unit in PREFIXES and given > 0:
        for name, factor in reversed(PREFIXES[unit].items()):
            if factor > 1 and given * factor >= context["ge"]:
                return f": {given:g} {name} is {_yaml(given * factor)}"
    return ""


def with_unit(key: str, text: str) -> str:
    """Return what to write instead of a number with its unit; empty: that cannot be said."""
    match = _WITH_UNIT.fullmatch(text)
    if match is None:
        return ""
    number, given = float(match[1].replace("_", "")), match[2]
    unit = key.rpartition("_")[2]
    if given == "%":
        return f": write {number / 100:g}"
    if given.lower() == unit:
        return f": write {_yaml(number)}, the unit is in the key's name"
    factors = {name.lower(): factor for name, factor in PREFIXES.get(unit, {}).items()}
    factor = factors.get(given.lower())
    return (
        f": write {_yaml(number * factor)}, without the unit"
        if factor
        else ": write the number without the unit"
    )


def _yaml(number: float) -> str:
    """Return a number as it is best read in YAML, 20.0e+6 for 20 million."""
    if number >= 1e6:
        return f"{number / 1e6:.10g}" + ("" if number % 1e6 else ".0") + "e+6"
    return f"{number:.10g}"
