"""Pack numbers into a short text for a page: whole multiples of a unit, differences, deflated, in base64.

A track of positions changes little from one time to the next, so differences deflate well: 100 devices for an hour
at 5 s take a quarter of a megabyte. A browser unpacks it with DecompressionStream("deflate"); see assets/unpack.js.
"""

import base64
import math
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Column(NamedTuple):
    """Values of any shape, NaN for a missing one, and the unit to which the report rounds them."""

    values: np.ndarray
    unit: float = 1.0


def pack(columns: Mapping[str, Column]) -> dict[str, Any]:
    """Pack columns into values for JSON.

    Integers have 16 bits if these suffice, otherwise 32; the smallest one marks a missing value.

    Raises:
        ValueError: a value has too many units for 32 bits.
    """
    heads, parts = [], []
    for name, (values, unit) in columns.items():
        units = np.asarray(values, float) / unit
        known = np.isfinite(units)
        most = float(np.abs(units[known]).max()) if known.any() else 0.0
        if most >= 2**31 - 1:
            raise ValueError(f"column {name}: {most:.3g} units of {unit:g} do not fit in 32 bits")
        kind = np.dtype("<i2" if most < 2**15 - 1 else "<i4")
        whole = np.where(known, np.round(np.where(known, units, 0.0)), np.iinfo(kind).min).astype(kind)
        steps = np.diff(whole, axis=-1, prepend=kind.type(0))  # wraps round, as does the browser's sum
        # the bytes of one weight together: those of small differences are mostly the same
        parts.append(np.ascontiguousarray(steps).view(np.uint8).reshape(-1, kind.itemsize).T.tobytes())
        heads.append({"name": name, "shape": list(whole.shape), "unit": unit, "bytes": kind.itemsize})
    data = zlib.compress(b"".join(parts), 9)
    return {"columns": heads, "data": base64.b64encode(data).decode()}


def unit_of(largest: float, steps: float = 2e9) -> float:
    """Choose the finest unit, a power of ten, in which `largest` is at most `steps`."""
    return 10.0 ** math.ceil(math.log10(largest / steps)) if largest > 0 else 1.0
