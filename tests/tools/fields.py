"""Worlds of one seed and area whose fields are made once: half of what a short run in several cells takes."""

from collections import deque
from functools import cached_property

import pytest

from edgefl.channel.field_stack import FieldStack
from edgefl.channel.gaussian_fields import Float32Array

KEPT = 4  # tables, the newest ones: 70 MB each for seven cells


def keep_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stacks with equal values share a table: it never changes."""
    made: deque[tuple[FieldStack, Float32Array]] = deque(maxlen=KEPT)
    make = FieldStack.__dict__["_table"].func

    def table(stack: FieldStack) -> Float32Array:
        for other, its in made:
            if other.equals(stack):
                return its
        made.append((stack, make(stack)))
        return made[-1][1]

    kept = cached_property(table)
    kept.__set_name__(FieldStack, "_table")
    monkeypatch.setattr(FieldStack, "_table", kept)
