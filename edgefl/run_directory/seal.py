"""JSON lines that end in a checksum, by which damaged or incomplete lines are detected."""

import json
import re
from typing import Any
from zlib import crc32

_SEALED = re.compile(rb'(.+),"crc":"([0-9a-f]{8})"\}\n', re.DOTALL)


def sealed(entry: dict[str, Any]) -> str:
    """Return a non-empty object as a JSON line that ends in a checksum; floats keep all their digits."""
    body = json.dumps(entry, separators=(",", ":"), default=_plain)
    return f'{body[:-1]},"crc":"{crc32(body.encode()):08x}"}}\n'


def unsealed(line: bytes) -> dict[str, Any] | None:
    """Return the object in a JSON line, or None if any part of the line is changed or missing."""
    parts = _SEALED.fullmatch(line)
    if parts is None:
        return None
    body = parts[1] + b"}"
    if crc32(body) != int(parts[2], 16):
        return None
    entry: dict[str, Any] = json.loads(body)
    return entry


def _plain(value: Any) -> Any:
    """Convert NumPy numbers to Python numbers."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"JSON cannot hold {type(value).__name__}")
