"""Select rows of devices' vectors, and divide rows into blocks."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.algorithms import Notes

AT_ONCE_BYTES = 256_000_000  # bytes of devices' vectors in one call of `upload` or `keep`


def blocks(count: int, like: Tensor, most: int = AT_ONCE_BYTES) -> Iterator[tuple[int, int]]:
    """Divide `count` rows of `like`'s size into blocks of at most `most` bytes; yield (begin, end) of each block."""
    size = max(1, most // (4 * max(1, like.shape[-1])))
    for begin in range(0, count, size):
        yield begin, min(begin + size, count)


def notes_at(positions: Sequence[int], notes: Notes) -> dict[str, Tensor]:
    """Return an algorithm's notes about the devices at these indices."""
    return {name: note[list(positions)] for name, note in notes.items()}


def like_rows(values: np.ndarray, rows: Tensor) -> Tensor:
    """Convert values [k] to a tensor with the type and torch device of `rows`."""
    return torch.as_tensor(values, dtype=rows.dtype, device=rows.device)


def rebased(sent: Tensor, start: Tensor, model: Tensor, weights: Tensor, *, received: bool) -> Tensor:
    """Return K devices' uploads as if all had started from the current model w, with weighted changes.

    row' = w + weight (row - start), or with `received` False, w + weight (row - w). A row that started from w with
    weight 1 stays exactly the same.

    Args:
        sent: uploads [K, M]. start: models received, [M] or [K, M]. model: w, [M] or [K, M]. weights: [K].
    """
    base = (start if received else model).expand_as(sent)
    same = (weights == 1) & (base == model).all(1)
    return torch.where(same.unsqueeze(1), sent, model + weights.unsqueeze(1) * (sent - base))
