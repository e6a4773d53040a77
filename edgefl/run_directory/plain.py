"""Convert the contract's values to JSON and back, exactly, and compactly if devices have equal values."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from operator import lt
from typing import Any

import numpy as np

from edgefl import contract

VALUES: dict[str, Any] = {name: value for name, value in vars(contract).items() if is_dataclass(value)}
# In a list, [value, TIMES, count] repeats value count times, and [first, TO, last] is the range first..last.
TIMES, TO = "x", "to"
PAIRS = "pairs"
LONGEST_TEXT = 60
_PLAIN = {int, float, str, bool, type(None)}  # JSON's own types


def encoded(value: Any) -> Any:
    """Encode a value for JSON: dataclasses by name, mappings as pairs, equal or successive items shortened."""
    if is_dataclass(value):
        return {type(value).__name__: {one.name: encoded(getattr(value, one.name)) for one in fields(value)}}
    if isinstance(value, Mapping):
        return {PAIRS: [[key, encoded(of)] for key, of in value.items()]}
    if isinstance(value, list | tuple):
        return _short(list(value) if _PLAIN.issuperset(map(type, value)) else [_python(one) for one in value])
    return _python(value)


def decoded(value: Any) -> Any:
    """Return the value that `encoded` encoded, with tuples for all sequences."""
    if isinstance(value, dict):
        ((name, of),) = value.items()
        if name == PAIRS:
            return {key: decoded(one) for key, one in of}
        return VALUES[name](**{key: decoded(one) for key, one in of.items()})
    return _long(value) if isinstance(value, list) else value


def words(value: Any) -> str:
    """Return an encoded value as text for error messages."""
    text = str(value)
    if isinstance(value, list | tuple):
        text = " ".join(
            f"{part[0]}{'-' if part[1] == TO else TIMES}{part[2]}" if isinstance(part, list) else str(part)
            for part in encoded(value)
        )
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "..."


def _python(value: Any) -> Any:
    """Convert NumPy numbers to Python numbers."""
    return value if isinstance(value, int | str | None) or type(value) is float else value.item()


def _short(values: list[Any]) -> list[Any]:
    if len(values) < 3:
        return values
    kinds = set(map(type, values))
    # 0.0 equals -0.0
    if len(kinds) == 1 and (values[0] or kinds != {float}) and values.count(values[0]) == len(values):
        return [[values[0], TIMES, len(values)]]
    if kinds == {int} and all(map(lt, values, values[1:])):
        return _ranges(values)
    return values


def _ranges(values: Sequence[int]) -> list[Any]:
    """Shorten a list of increasing integers: three or more consecutive integers become one range."""
    far = values[0] < -(2**63) or values[-1] >= 2**63
    ids = np.array(values, dtype=object if far else np.int64)
    breaks = np.flatnonzero(np.diff(ids) != 1)
    firsts, lasts = (ids[at].tolist() for at in (np.append(0, breaks + 1), np.append(breaks, len(ids) - 1)))
    short: list[Any] = []
    for first, last in zip(firsts, lasts, strict=True):
        short += [[first, TO, last]] if last - first >= 2 else range(first, last + 1)
    return short


def _long(values: Sequence[Any]) -> tuple[Any, ...]:
    long: list[Any] = []
    for value in values:
        if not isinstance(value, list):
            long.append(value)
        elif value[1] == TIMES:
            long += [value[0]] * value[2]
        else:
            long += range(value[0], value[2] + 1)
    return tuple(long)
