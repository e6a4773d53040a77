"""JSON lines that know whether they are whole: each ends in the checksum of what stands before it."""

import json
import re
from typing import Any
from zlib import crc32

_SEALED = re.compile(rb'(.+),"crc":"([0-9a-f]{8})"\}\n', re.DOTALL)


def sealed(entry: dict[str, Any]) -> str:
    """A line for an object that is not empty; floats keep all their digits."""
    body = json.dumps(entry, separators=(",", ":"), default=_plain)
    return f'{body[:-1]},"crc":"{crc32(body.encode()):08x}"}}\n'


def unsealed(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None if anything of the line has changed or is missing."""
    parts = _SEALED.fullmatch(line)
    if parts is None:
        return None
    body = parts[1] + b"}"
    if crc32(body) != int(parts[2], 16):
        return None
    entry: dict[str, Any] = json.loads(body)
    return entry


def _plain(value: Any) -> Any:
    """NumPy's numbers are Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is nothing that JSON can hold")
