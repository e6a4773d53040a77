"""Write a command's output for programs as one JSON document with the same keys for every command."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

Rows = Iterable[Mapping[str, Any]]


def document(
    command: str,
    *,
    out: Path | None = None,
    answers: Sequence[str] = (),
    notes: Sequence[str] = (),
    table: "pd.DataFrame | Rows" = (),
) -> str:
    """Write a command's result as JSON: `command`, `out`, `answers`, `notes` and `table`.

    Answers and notes are sentences; a number in the table that is not finite becomes null.
    """
    rows = table.to_dict("records") if isinstance(table, pd.DataFrame) else table
    whole = {
        "command": command,
        "out": None if out is None else str(out),
        "answers": list(answers),
        "notes": list(notes),
        "table": [{str(name): _plain(value) for name, value in row.items()} for row in rows],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value that JSON can represent, or None for a number that is not finite."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int) else str(value)
