"""Gather small blocks of rows by column and format them together."""

from collections.abc import Mapping
from typing import Any

import numpy as np

# Largest block to gather, and rows to gather before they are passed on (100 KB)
SMALL, MOST = 100, 500


class Gathered:
    """Small blocks of one table, such as a moment's handovers: a call per block would take longer than its rows."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Mapping[str, Any], int]] = []
        self._rows = 0
        self._kinds: list[tuple[str, str]] = []

    def take(self, block: Mapping[str, Any], rows: int) -> bool:
        """Gather a block; return False if its size or kind does not fit, to be written by itself afterwards.

        Args:
            block: name -> array [rows], which must not be changed any more, or one value for all rows.
        """
        if rows > SMALL or self._rows >= MOST:
            return False
        kinds = [
            (name, values.dtype.kind) for name, values in block.items() if isinstance(values, np.ndarray)
        ]
        if any(isinstance(values, list | tuple) for values in block.values()) or not kinds:
            return False
        if self._blocks and kinds != self._kinds:
            return False
        self._blocks.append((block, rows))
        self._kinds = kinds
        self._rows += rows
        return True

    def give(self) -> tuple[dict[str, Any], int]:
        """Return the gathered rows as one block, with their number, and clear them.

        Their text is the same as that of the single blocks: single values become a list, and decimals of a list are
        rounded as those of a single value.
        """
        blocks, rows, self._blocks, self._rows = self._blocks, self._rows, [], 0
        if not rows:
            return {}, 0
        arrays = {name for name, _ in self._kinds}
        return {
            name: np.concatenate([block[name] for block, _ in blocks])
            if name in arrays
            else _column([(block[name], many) for block, many in blocks])
            for name in blocks[0][0]
        }, rows


def _column(values: list[tuple[Any, int]]) -> Any:
    first = values[0][0]
    if all(value is first for value, _ in values):
        return first
    return [value for value, many in values for _ in range(many)]
