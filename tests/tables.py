"""Read tables of test cases from text, with one line per row and " | " between cells."""

import re
from collections.abc import Mapping
from typing import Any

from edgefl.config.yaml_source import parse_value


def rows(table: str, short: Mapping[str, str] | None = None) -> list[tuple[str, ...]]:
    """Return a table's rows, with abbreviations replaced in the given order."""
    for word, meaning in (short or {}).items():
        table = table.replace(word, meaning)
    return [tuple(cell.strip() for cell in line.split(" | ")) for line in table.strip().splitlines()]


def sections(keys: str) -> dict[str, Any]:
    """Return a scenario's sections from text such as "layout.rings=1; radio={preset: nr}", on one or more lines."""
    found: dict[str, Any] = {}
    for key, value in (one.strip().split("=", 1) for one in re.split("; |\n", keys) if one.strip()):
        *outer, last = key.split(".")
        inner = found
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = parse_value(value, key)
    return found
