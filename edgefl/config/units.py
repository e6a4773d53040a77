"""Units at the end of keys' names, and suggestions for numbers in a different unit, such as MHz or per cent."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt
from typing import Any

from pydantic.fields import FieldInfo

UNITS = {
    "per_km2": "1/km²",
    "dbm_hz": "dBm/Hz",
    "m_s": "m/s",
    "m_s2": "m/s²",
    "per_s": "1/s",
    "per_m": "1/m",
    "per_hour": "1/h",
    "per_cycle": "per cycle",
    "deg_s": "degrees/s",
    "s": "s",
    "m": "m",
    "hz": "Hz",
    "dbm": "dBm",
    "dbi": "dBi",
    "db": "dB",
    "w": "W",
    "j": "J",
    "min": "min",
    "deg": "degrees",
    "bits": "bits",
    "gb": "GB",
    "hour": "h",
    "hours": "h",
    "flops_per_sample": "FLOPs",
}
# unit at the end of a key's name -> units that a user may write instead, as multiples of the key's unit
PREFIXES = {
    "hz": {"GHz": 1e9, "MHz": 1e6, "kHz": 1e3},
    "m": {"km": 1e3},
    "s": {"h": 3600.0, "min": 60.0, "ms": 1e-3, "us": 1e-6},
    "w": {"kW": 1e3, "mW": 1e-3},
    "j": {"Wh": 3600.0, "kJ": 1e3},
    "bits": {"Gbit": 1e9, "Mbit": 1e6, "kbit": 1e3},
}
WRITTEN = (0.01, 1e6)  # range of the numbers that a user writes in a unit of choice
MOST_APART = 2.0  # maximum distance, in orders of magnitude, between a suggested number and the default
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {"ge": ge, "gt": gt, "le": le, "lt": lt}
_WITH_UNIT = re.compile(r"\s*([-+]?\d[\d_.]*(?:[eE][-+]?\d+)?)\s*([A-Za-z/%]+)\s*")


def unit_of(key: str) -> str | None:
    """Return the unit in a key's name, such as Hz for bandwidth_hz, or None if the name has no unit."""
    return next((unit for suffix, unit in UNITS.items() if key == suffix or key.endswith(f"_{suffix}")), None)


def without_unit(key: str) -> str:
    """Return a key's name without the unit, such as bandwidth for bandwidth_hz."""
    return next((key.removesuffix(f"_{suffix}") for suffix in UNITS if key.endswith(f"_{suffix}")), key)


def unit_slip(place: Sequence[str], error: Mapping[str, Any], field: FieldInfo | None = None) -> str:
    """Suggest a number in the key's unit for a number that seems to be in a different unit; '' if unsure.

    Args:
        place: place of the key with the number. error: pydantic's error about this key. field: the key's limits and
            default, if known.
    """
    given, context = error["input"], error.get("ctx", {})
    unit = place[-1].rpartition("_")[2] if place else ""
    if isinstance(given, str):
        wants_text = str(error.get("type", "")).startswith("string")  # such as a name that breaks its pattern
        return with_unit(place[-1], given) if place and not wants_text else ""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return ""
    if unit not in PREFIXES:
        share = error["type"] == "less_than_equal" and context.get("le") == 1 and 1 < given <= 100
        return f": it is a share, so write {given / 100:g} for {given:g} %" if share else ""
    if not WRITTEN[0] <= given <= WRITTEN[1]:
        return ""
    limits = [context, *(_limit(one) for one in (field.metadata if field else ()))]
    default = field.default if field and isinstance(field.default, int | float) else None
    numbers = {
        name: given * factor
        for name, factor in sorted(PREFIXES[unit].items(), key=lambda one: abs(math.log(one[1])))
        if (factor > 1) == error["type"].startswith("greater_than") and _within(given * factor, limits)
    }
    if default:
        numbers = {name: number for name, number in numbers.items() if _apart(number, default) <= MOST_APART}
    if not numbers:
        return ""
    name = min(numbers, key=lambda one: _apart(numbers[one], default) if default else 0.0)
    return f": {given:g} {name} is {yaml_number(float(f'{numbers[name]:.4g}'))}"


def _limit(one: Any) -> dict[str, Any]:
    return {kind: getattr(one, kind) for kind in COMPARISONS if hasattr(one, kind)}


def _within(number: float, limits: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a number meets limits such as {'ge': 0}."""
    return all(
        compare(number, limit[kind])
        for limit in limits
        for kind, compare in COMPARISONS.items()
        if isinstance(limit.get(kind), int | float)
    )


def _apart(number: float, default: float) -> float:
    """Return by how many orders of magnitude two numbers differ."""
    return abs(math.log10(number / default)) if default > 0 else 0.0


def with_unit(key: str, text: str) -> str:
    """Suggest a number in the key's unit for a text such as '20 MHz'; '' if unsure."""
    match = _WITH_UNIT.fullmatch(text)
    if match is None:
        return ""
    number, given = float(match[1].replace("_", "")), match[2]
    unit = key.rpartition("_")[2]
    if given == "%":
        return f": write {number / 100:g}"
    if given.lower() == unit:
        return f": write {yaml_number(number)}, as the unit is part of the key's name"
    factors = {name.lower(): factor for name, factor in PREFIXES.get(unit, {}).items()}
    factor = factors.get(given.lower())
    return (
        f": write {yaml_number(number * factor)}, without the unit"
        if factor
        else ": write the number without the unit"
    )


def yaml_number(number: float) -> str:
    """Format a number readably in YAML: 20.0e+6 for 20 million, 3.5e+9 for 3.5 billion."""
    if not 1e6 <= abs(number) < 1e15:
        short = f"{number:.10g}"
        return short if float(short) == number else repr(number)
    scale = 9 if abs(number) >= 1e9 else 6
    mantissa = f"{number / 10**scale:.10g}"
    text = f"{mantissa}{'' if '.' in mantissa else '.0'}e+{scale}"
    return text if float(text) == number else repr(number)
