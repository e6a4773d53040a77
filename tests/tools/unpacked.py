"""Unpack a report's data as the JavaScript of its page does."""

import base64
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def unpack(packed: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Undo `edgefl.analysis.html.replay.pack`, as assets/unpack.js does."""
    data, at, columns = zlib.decompress(base64.b64decode(packed["data"])), 0, {}
    for head in packed["columns"]:
        kind = np.dtype(f"<i{head['bytes']}")
        length = math.prod(head["shape"]) * kind.itemsize
        rows = np.frombuffer(data[at : at + length], np.uint8).reshape(kind.itemsize, -1).T
        steps = np.ascontiguousarray(rows).reshape(-1).view(kind).reshape(head["shape"])
        whole = np.cumsum(steps, axis=-1, dtype=kind)
        columns[head["name"]] = np.where(whole == np.iinfo(kind).min, np.nan, whole * head["unit"])
        at += length
    return columns
