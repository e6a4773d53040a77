"""Rows that come a few at a time, by column, and are turned into text together."""

from collections.abc import Mapping
from typing import Any

import numpy as np

# Rows of a block that is gathered, and that are gathered before they are handed on: 100 KB
SMALL, MOST = 100, 500


class Gathered:
    """Small blocks of one table, such as the handovers of each moment: a call for each costs more than its rows."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Mapping[str, Any], int]] = []
        self._rows = 0
        self._kinds: list[tuple[str, str]] = []

    def take(self, block: Mapping[str, Any], rows: int) -> bool:
        """Gather a block; False: not one of this size or kind, it is to be written for itself, after those before.

        Args:
            block: name -> an array [rows], which is not written to any more, or one value for all rows.
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
        """Return what was gathered as one block, and its number of rows; nothing is gathered any more.

        The texts of its rows are those of the single blocks: values of blocks become a list, whose decimals are
        rounded as those of one value are.
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
